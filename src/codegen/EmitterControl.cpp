// SPDX-License-Identifier: Apache-2.0
//
// Loops and conditions of the Emitter, built as scf ops. Loops whose trip count is known to be none
// or one are not built, which keeps static kernels small. What threads of a device ask for is a
// call here.
#include "codegen/Emitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

#include "codegen/gpu/ThreadCall.h"
#include "codegen/gpu/Threads.h"

namespace dovetail::codegen {

using namespace mlir;

/// to - from where it is known.
static std::optional<int64_t> knownDistance(Value from, Value to) {
  if (from == to)
    return 0;
  auto low = Emitter::constantIndex(from), high = Emitter::constantIndex(to);
  if (low && high)
    return *high - *low;
  auto sum = to.getDefiningOp<arith::AddIOp>();
  return sum && sum.getLhs() == from ? Emitter::constantIndex(sum.getRhs()) : std::nullopt;
}

void Emitter::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}

Values Emitter::loop(Value from, Value to, int64_t step, ValueRange initial,
                     llvm::function_ref<Values(Value, ValueRange)> body) {
  auto distance = knownDistance(from, to);
  if (distance && *distance <= 0)
    return Values(initial);
  if (distance && *distance <= step)
    return body(from, initial);
  auto loop = scf::ForOp::create(builder, location(), from, to, index(step), initial);
  OpBuilder::InsertionGuard guard(builder);
  // A loop without carried values comes with its terminator, one with them without.
  if (initial.empty()) {
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar(), {});
  } else {
    builder.setInsertionPointToEnd(loop.getBody());
    Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
    scf::YieldOp::create(builder, location(), next);
  }
  return Values(loop.getResults());
}

Values Emitter::unrolledLoop(Value from, Value to, unsigned unroll, ValueRange initial,
                             llvm::function_ref<Values(Value, ValueRange)> body) {
  Values carried(initial);
  Value whole = add(from, sub(sub(to, from), rem(sub(to, from), int64_t(unroll))));
  if (unroll > 1)
    carried = loop(from, whole, unroll, carried, [&](Value i, ValueRange values) {
      Values next(values);
      for (unsigned copy = 0; copy < unroll; ++copy)
        next = body(add(i, int64_t(copy)), next);
      return next;
    });
  return loop(unroll > 1 ? whole : from, to, 1, carried, body);
}

void Emitter::ifTrue(Value condition, llvm::function_ref<void()> then) {
  if (auto known = constantIndex(condition)) {
    if (*known)
      then();
    return;
  }
  auto branch = scf::IfOp::create(builder, location(), condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  then();
}

Values Emitter::ifElse(Value condition, llvm::function_ref<Values()> then,
                       llvm::function_ref<Values()> otherwise) {
  if (auto known = constantIndex(condition))
    return *known ? then() : otherwise();
  // The types of the results are known only when both sides are there, so the sides are built
  // first.
  Region thenRegion, elseRegion;
  auto build = [&](Region &region, llvm::function_ref<Values()> side) {
    OpBuilder::InsertionGuard guard(builder);
    region.push_back(new Block);
    builder.setInsertionPointToEnd(&region.front());
    Values results = side();
    scf::YieldOp::create(builder, location(), results);
    return SmallVector<Type>(ValueRange(results).getTypes());
  };
  SmallVector<Type> types = build(thenRegion, then);
  build(elseRegion, otherwise);
  auto branch = scf::IfOp::create(builder, location(), types, condition, false, false);
  branch.getThenRegion().takeBody(thenRegion);
  branch.getElseRegion().takeBody(elseRegion);
  return Values(branch.getResults());
}

void Emitter::vectorLoop(Value from, Value to, unsigned lanes, unsigned unroll,
                         llvm::function_ref<void(Value, Value)> body) {
  vectorLoop(from, to, lanes, unroll, ValueRange(), [&](Value i, Value mask, ValueRange) {
    body(i, mask);
    return Values();
  });
}

Values Emitter::vectorLoop(Value from, Value to, unsigned lanes, unsigned unroll,
                           ValueRange initial,
                           llvm::function_ref<Values(Value, Value, ValueRange)> body) {
  Values carried(initial);
  Value length = sub(to, from), done = from;
  auto whole = [&](int64_t step, unsigned copies) {
    Value end = add(done, sub(sub(to, done), rem(sub(to, done), step)));
    carried = loop(done, end, step, carried, [&](Value i, ValueRange values) {
      Values next(values);
      for (unsigned copy = 0; copy < copies; ++copy)
        next = body(add(i, int64_t(copy) * lanes), {}, next);
      return next;
    });
    done = end;
  };
  if (unroll > 1)
    whole(int64_t(lanes) * unroll, unroll);
  whole(lanes, 1);
  auto tail = [&] { return body(done, tailMask(sub(to, done), lanes), carried); };
  if (auto known = constantIndex(length))
    return *known % lanes ? tail() : carried;
  if (carried.empty()) {
    ifTrue(lt(done, to), [&] { tail(); });
    return carried;
  }
  return ifElse(
      lt(done, to), [&] { return tail(); }, [&] { return carried; });
}

/// Calls a function of gpu/Threads.h.
static Value callThreads(OpBuilder &builder, Block &entry, StringRef name, Type result) {
  return callThreadFunction(builder, entry.getParentOp()->getParentOfType<ModuleOp>(), name,
                            result);
}

Value Emitter::threadIndex() {
  if (!threadNumber)
    threadNumber = atEntry([&] {
      Value number = callThreads(builder, entry, kThreadIndexFunction, i32Type());
      return builder.createOrFold<arith::ExtUIOp>(location(), i64Type(), number);
    });
  return threadNumber;
}

Value Emitter::blockIndex() {
  if (!blockNumber)
    blockNumber = atEntry([&] {
      Value number = callThreads(builder, entry, kBlockIndexFunction, i32Type());
      return builder.createOrFold<arith::ExtUIOp>(location(), i64Type(), number);
    });
  return blockNumber;
}

void Emitter::barrier() { callThreads(builder, entry, kBarrierFunction, {}); }

Value Emitter::sharedMemory(uint64_t bytes) {
  auto module = entry.getParentOp()->getParentOfType<ModuleOp>();
  std::string name =
      "shared" + std::to_string(std::distance(module.getBody()->begin(), module.getBody()->end()));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(builder, location(), LLVM::LLVMArrayType::get(i8Type(), bytes),
                           /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                           /*alignment=*/16, kSharedSpace);
  }
  sharedBytes = llvm::alignTo(sharedBytes, 16) + bytes;
  return atEntry([&] {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), kSharedSpace);
    return generic(LLVM::AddressOfOp::create(builder, location(), pointer, name));
  });
}

} // namespace dovetail::codegen
