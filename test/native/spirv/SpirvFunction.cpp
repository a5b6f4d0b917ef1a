// SPDX-License-Identifier: Apache-2.0
//
// Goes through a function once and says each operation in SPIR-V. A value becomes as many scalars
// as it has lanes; what loops carry and branches give goes through variables of the function.
#include "SpirvFunction.h"

#include <functional>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

#include "SpirvArithmetic.h"
#include "codegen/gpu/Threads.h"

namespace dovetail::test {

using namespace mlir;

static constexpr unsigned kSharedSpace = codegen::kSharedSpace;

bool isShared(Value pointer) {
  if (auto argument = dyn_cast<BlockArgument>(pointer)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument.getArgNumber() > 0 &&
           isShared(loop.getInitArgs()[argument.getArgNumber() - 1]);
  }
  Operation *operation = pointer.getDefiningOp();
  if (auto address = dyn_cast<LLVM::AddressOfOp>(operation))
    return cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace() == kSharedSpace;
  if (auto select = dyn_cast<arith::SelectOp>(operation))
    return isShared(select.getTrueValue());
  if (auto branch = dyn_cast<scf::IfOp>(operation))
    return isShared(branch.thenYield().getOperand(cast<OpResult>(pointer).getResultNumber()));
  return isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(operation) && isShared(operation->getOperand(0));
}

static uint64_t bytesOf(Type type) {
  return getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
}

SharedPlan SharedPlan::of(LLVM::LLVMFuncOp function) {
  SharedPlan plan;
  auto module = function->getParentOfType<ModuleOp>();
  function.walk([&](LLVM::AddressOfOp address) {
    auto global = module.lookupSymbol<LLVM::GlobalOp>(address.getGlobalName());
    if (global.getAddrSpace() != kSharedSpace || plan.offsets.contains(global.getSymName()))
      return;
    plan.offsets[global.getSymName()] = plan.bytes;
    plan.bytes += (cast<LLVM::LLVMArrayType>(global.getType()).getNumElements() + 15) / 16 * 16;
  });
  function.walk([&](Operation *operation) {
    llvm::TypeSwitch<Operation *>(operation)
        .Case<LLVM::LoadOp>([&](auto load) {
          if (isShared(load.getAddr()))
            plan.unitBytes = std::min(plan.unitBytes, bytesOf(load.getType()));
        })
        .Case<LLVM::StoreOp>([&](auto store) {
          if (isShared(store.getAddr()))
            plan.unitBytes = std::min(plan.unitBytes, bytesOf(store.getValue().getType()));
        });
  });
  return plan;
}

namespace {

class BodyTranslator {
public:
  BodyTranslator(LLVM::LLVMFuncOp from, spirv::FuncOp to, const DeviceLaunch &launch,
                 const SharedPlan &shared, const LiteralOffsets &literals)
      : from(from), to(to), launch(launch), shared(shared), literals(literals),
        builder(to.getContext()), s(builder) {}

  Status run() {
    Block &body = to.getBody().front();
    builder.setInsertionPointToStart(&body);
    first = spirv::UndefOp::create(builder, s.location(), s.i32());
    builder.setInsertionPoint(body.getTerminator());
    threadNumber = builtin("thread");
    blockNumber = builtin("block");
    if (shared.bytes > 0) {
      auto type = spirv::ArrayType::get(s.integer(8 * shared.unitBytes),
                                        unsigned(shared.bytes / shared.unitBytes));
      sharedArray = addressOf("shared", type, spirv::StorageClass::Workgroup);
    }
    auto block = spirv::StructType::get({s.i64()}, {0});
    Value zero = s.number(s.i32(), 0);
    Value place = spirv::AccessChainOp::create(
        builder, s.location(), addressOf("arguments", block, spirv::StorageClass::PushConstant),
        ValueRange{zero});
    argumentArray = spirv::LoadOp::create(builder, s.location(), place);
    for (BlockArgument argument : from.getArguments())
      values[argument] = {argument64(argument.getArgNumber())};
    // The block of arguments leads to that of the body and nowhere else.
    for (Block &block : from.getBody())
      translate(block);
    if (!failure.empty())
      return unavailable("{}", failure);
    return Status::success();
  }

private:
  using Lanes = SmallVector<Value>;

  /// What is translated from then on is thrown away.
  void fail(const std::string &why) {
    if (failure.empty())
      failure = why;
  }

  // --- What a shader is given ---

  Value addressOf(StringRef name, Type type, spirv::StorageClass place) {
    return spirv::AddressOfOp::create(builder, s.location(), spirv::PointerType::get(type, place),
                                      name);
  }
  Value builtin(StringRef name) {
    auto type = VectorType::get({3}, s.i32());
    Value all = spirv::LoadOp::create(builder, s.location(),
                                      addressOf(name, type, spirv::StorageClass::Input));
    return spirv::CompositeExtractOp::create(builder, s.location(), all, ArrayRef<int32_t>{0});
  }
  Value argument64(uint64_t number) {
    return loadGlobal(s.i64(), s.plus(argumentArray, 8 * int64_t(number)), 8);
  }

  // --- Memory ---

  Value pointer64(Type type, Value address) {
    auto pointer = spirv::PointerType::get(type, spirv::StorageClass::PhysicalStorageBuffer);
    return s.make<spirv::ConvertUToPtrOp>(pointer, {address});
  }
  auto aligned() {
    return spirv::MemoryAccessAttr::get(builder.getContext(), spirv::MemoryAccess::Aligned);
  }
  Value loadGlobal(Type type, Value address, uint64_t alignment) {
    return spirv::LoadOp::create(builder, s.location(), pointer64(type, address), aligned(),
                                 builder.getI32IntegerAttr(int32_t(alignment)));
  }
  void storeGlobal(Value value, Value address, uint64_t alignment) {
    spirv::StoreOp::create(builder, s.location(), pointer64(value.getType(), address), value,
                           aligned(), builder.getI32IntegerAttr(int32_t(alignment)));
  }
  /// Of the unit `number` units behind a byte offset.
  Value sharedUnit(Value offset, uint64_t number) {
    Value index = s.make<spirv::UDivOp>(s.i32(), {offset, s.number(s.i32(), shared.unitBytes)});
    index = s.plus(index, int64_t(number));
    return spirv::AccessChainOp::create(builder, s.location(), sharedArray, ValueRange{index});
  }
  Value loadShared(Type type, Value offset) {
    const uint64_t bits = 8 * bytesOf(type), unitBits = 8 * shared.unitBytes;
    Type whole = s.integer(bits);
    Value sum;
    for (uint64_t i = 0; i < bits / unitBits; ++i) {
      Value part = spirv::LoadOp::create(builder, s.location(), sharedUnit(offset, i));
      part = s.resized(part, bits);
      if (i > 0)
        part = s.make<spirv::ShiftLeftLogicalOp>(whole, {part, s.number(whole, i * unitBits)});
      sum = sum ? s.make<spirv::BitwiseOrOp>(whole, {sum, part}) : part;
    }
    return s.sameBits(sum, type);
  }
  void storeShared(Value value, Value offset) {
    const uint64_t bits = 8 * bytesOf(value.getType()), unitBits = 8 * shared.unitBytes;
    Type whole = s.integer(bits);
    value = s.sameBits(value, whole);
    for (uint64_t i = 0; i < bits / unitBits; ++i) {
      Value part = value;
      if (i > 0)
        part = s.make<spirv::ShiftRightLogicalOp>(whole, {part, s.number(whole, i * unitBits)});
      spirv::StoreOp::create(builder, s.location(), sharedUnit(offset, i),
                             s.resized(part, unitBits));
    }
  }

  Value loadFrom(Value pointer, Type element, Value place) {
    return isShared(pointer) ? loadShared(element, place)
                             : loadGlobal(element, place, bytesOf(element));
  }
  void storeTo(Value pointer, Value value, Value place) {
    if (isShared(pointer))
      storeShared(value, place);
    else
      storeGlobal(value, place, bytesOf(value.getType()));
  }

  void load(LLVM::LoadOp op) {
    Type element = getElementTypeOrSelf(op.getType());
    Lanes loaded;
    for (unsigned lane = 0; lane < lanesOf(op.getType()); ++lane) {
      Value place = s.plus(scalar(op.getAddr()), int64_t(lane * bytesOf(element)));
      loaded.push_back(loadFrom(op.getAddr(), element, place));
    }
    values[op.getResult()] = loaded;
  }
  void store(LLVM::StoreOp op) {
    const Lanes stored = values[op.getValue()];
    for (size_t lane = 0; lane < stored.size(); ++lane) {
      const uint64_t bytes = bytesOf(stored[lane].getType());
      storeTo(op.getAddr(), stored[lane], s.plus(scalar(op.getAddr()), int64_t(lane * bytes)));
    }
  }
  void maskedLoad(LLVM::MaskedLoadOp op) {
    Type element = getElementTypeOrSelf(op.getType());
    Lanes loaded;
    const Lanes mask = values[op.getMask()], otherwise = values[op.getPassThru()];
    for (unsigned lane = 0; lane < lanesOf(op.getType()); ++lane) {
      Value variable = makeVariable(element);
      assign(variable, otherwise[lane]);
      branch(mask[lane], [&] {
        Value place = s.plus(scalar(op.getData()), int64_t(lane * bytesOf(element)));
        assign(variable, loadFrom(op.getData(), element, place));
      });
      loaded.push_back(read(variable));
    }
    values[op.getResult()] = loaded;
  }
  void maskedStore(LLVM::MaskedStoreOp op) {
    const Lanes stored = values[op.getValue()], mask = values[op.getMask()];
    for (size_t lane = 0; lane < stored.size(); ++lane)
      branch(mask[lane], [&] {
        const uint64_t bytes = bytesOf(stored[lane].getType());
        storeTo(op.getData(), stored[lane], s.plus(scalar(op.getData()), int64_t(lane * bytes)));
      });
  }

  void addressOfGlobal(LLVM::AddressOfOp op) {
    if (isShared(op.getResult())) {
      values[op.getResult()] = {s.number(s.i32(), shared.offsets.lookup(op.getGlobalName()))};
      return;
    }
    auto found = literals.find(op.getGlobalName());
    if (found == literals.end())
      return fail("a global that is no literal");
    Value base = argument64(launch.arguments.size());
    values[op.getResult()] = {s.plus(base, int64_t(found->second))};
  }

  void offsetPointer(LLVM::GEPOp op) {
    if (op.getIndices().size() != 1 || isa<VectorType>(op.getType()))
      return fail("an address of several indices");
    const bool inShared = isShared(op.getBase());
    const auto bytes = int64_t(bytesOf(op.getElemType()));
    Value base = scalar(op.getBase());
    if (auto constant = dyn_cast<IntegerAttr>(op.getIndices()[0])) {
      values[op.getResult()] = {s.plus(base, bytes * constant.getInt())};
      return;
    }
    Value index = scalar(cast<Value>(op.getIndices()[0]));
    index = s.resizedSigned(index, inShared ? 32 : 64);
    Type type = index.getType();
    Value offset = s.make<spirv::IMulOp>(type, {index, s.number(type, bytes)});
    values[op.getResult()] = {s.make<spirv::IAddOp>(type, {base, offset})};
  }

  // --- Control ---

  Value makeVariable(Type type) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(first.getDefiningOp());
    return spirv::VariableOp::create(builder, s.location(),
                                     spirv::PointerType::get(type, spirv::StorageClass::Function),
                                     spirv::StorageClass::Function, Value());
  }
  void assign(Value variable, Value value) {
    spirv::StoreOp::create(builder, s.location(), variable, value);
  }
  Value read(Value variable) { return spirv::LoadOp::create(builder, s.location(), variable); }
  /// Variables for the lanes of all `initial` values, which they begin with.
  SmallVector<Lanes> makeVariables(ValueRange initial) {
    SmallVector<Lanes> variables;
    for (Value value : initial) {
      Lanes lanes;
      for (Value lane : values[value]) {
        lanes.push_back(makeVariable(lane.getType()));
        assign(lanes.back(), lane);
      }
      variables.push_back(lanes);
    }
    return variables;
  }
  void assignAll(const SmallVector<Lanes> &variables, ValueRange next) {
    for (auto [lanes, value] : llvm::zip_equal(variables, next))
      for (auto [variable, lane] : llvm::zip_equal(lanes, values[value]))
        assign(variable, lane);
  }
  void readAll(const SmallVector<Lanes> &variables, ValueRange into) {
    for (auto [lanes, value] : llvm::zip_equal(variables, into)) {
      Lanes read;
      for (Value variable : lanes)
        read.push_back(this->read(variable));
      values[value] = read;
    }
  }
  void jump(Block *block) { spirv::BranchOp::create(builder, s.location(), block); }

  Block *addBlock(Region &region) {
    auto *block = new Block;
    region.getBlocks().insert(std::prev(region.end()), block); // the last one merges
    return block;
  }

  void branch(Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise = nullptr) {
    auto selection =
        spirv::SelectionOp::create(builder, s.location(), spirv::SelectionControl::None);
    selection.addMergeBlock(builder);
    OpBuilder::InsertionGuard guard(builder);
    Region &region = selection.getBody();
    Block *merge = selection.getMergeBlock(), *header = addBlock(region), *yes = addBlock(region);
    Block *no = otherwise ? addBlock(region) : merge;
    builder.setInsertionPointToEnd(header);
    spirv::BranchConditionalOp::create(builder, s.location(), condition, yes, ValueRange(), no,
                                       ValueRange());
    builder.setInsertionPointToEnd(yes);
    then();
    jump(merge);
    if (otherwise) {
      builder.setInsertionPointToEnd(no);
      otherwise();
      jump(merge);
    }
  }

  void ifElse(scf::IfOp op) {
    SmallVector<Lanes> variables;
    auto side = [&](Region &region) {
      translate(region.front());
      if (!failure.empty())
        return;
      auto yield = cast<scf::YieldOp>(region.front().getTerminator());
      if (variables.empty()) // their types are known only now
        for (Value value : yield.getOperands()) {
          Lanes lanes;
          for (Value lane : values[value])
            lanes.push_back(makeVariable(lane.getType()));
          variables.push_back(lanes);
        }
      assignAll(variables, yield.getOperands());
    };
    Value condition = scalar(op.getCondition());
    if (op.getElseRegion().empty())
      branch(condition, [&] { side(op.getThenRegion()); });
    else
      branch(
          condition, [&] { side(op.getThenRegion()); }, [&] { side(op.getElseRegion()); });
    if (failure.empty())
      readAll(variables, op.getResults());
  }

  void loop(scf::ForOp op) {
    SmallVector<Lanes> counter = makeVariables(op.getLowerBound()),
                       carried = makeVariables(op.getInitArgs());
    auto loop = spirv::LoopOp::create(builder, s.location(), spirv::LoopControl::None);
    loop.addEntryAndMergeBlock(builder);
    {
      OpBuilder::InsertionGuard guard(builder);
      Region &region = loop.getBody();
      Block *entry = loop.getEntryBlock(), *merge = loop.getMergeBlock(),
            *header = addBlock(region), *body = addBlock(region), *next = addBlock(region);
      builder.setInsertionPointToEnd(entry);
      jump(header);
      builder.setInsertionPointToEnd(header);
      Value inside = s.make<spirv::SLessThanOp>(builder.getI1Type(),
                                                {read(counter[0][0]), scalar(op.getUpperBound())});
      spirv::BranchConditionalOp::create(builder, s.location(), inside, body, ValueRange(), merge,
                                         ValueRange());
      builder.setInsertionPointToEnd(body);
      readAll(counter, op.getInductionVar());
      readAll(carried, op.getRegionIterArgs());
      translate(*op.getBody());
      if (!failure.empty())
        return;
      assignAll(carried, op.getBody()->getTerminator()->getOperands());
      jump(next);
      builder.setInsertionPointToEnd(next);
      Value count = read(counter[0][0]);
      assign(counter[0][0], s.make<spirv::IAddOp>(count.getType(), {count, scalar(op.getStep())}));
      jump(header);
    }
    readAll(carried, op.getResults());
  }

  void call(LLVM::CallOp op) {
    StringRef name = op.getCallee().value_or("");
    if (name == codegen::kThreadIndexFunction)
      values[op.getResult()] = {threadNumber};
    else if (name == codegen::kBlockIndexFunction)
      values[op.getResult()] = {blockNumber};
    else if (name == codegen::kBarrierFunction)
      spirv::ControlBarrierOp::create(
          builder, s.location(), spirv::Scope::Workgroup, spirv::Scope::Workgroup,
          spirv::MemorySemantics::AcquireRelease | spirv::MemorySemantics::WorkgroupMemory);
    else
      fail("a call of " + name.str());
  }

  // --- Everything else ---

  unsigned lanesOf(Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? unsigned(vector.getNumElements()) : 1;
  }
  Value scalar(Value value) { return values[value].front(); }

  void translate(Block &block) {
    for (Operation &operation : block)
      if (failure.empty())
        translate(operation);
  }

  void translate(Operation &operation) {
    llvm::TypeSwitch<Operation *>(&operation)
        .Case<scf::ForOp>([&](auto op) { loop(op); })
        .Case<scf::IfOp>([&](auto op) { ifElse(op); })
        .Case<scf::YieldOp, LLVM::BrOp, LLVM::ReturnOp>([](auto) {})
        .Case<LLVM::LoadOp>([&](auto op) { load(op); })
        .Case<LLVM::StoreOp>([&](auto op) { store(op); })
        .Case<LLVM::MaskedLoadOp>([&](auto op) { maskedLoad(op); })
        .Case<LLVM::MaskedStoreOp>([&](auto op) { maskedStore(op); })
        .Case<LLVM::GEPOp>([&](auto op) { offsetPointer(op); })
        .Case<LLVM::AddressOfOp>([&](auto op) { addressOfGlobal(op); })
        .Case<LLVM::AddrSpaceCastOp>([&](auto op) {
          Lanes same = values[op.getArg()];
          values[op.getResult()] = same;
        })
        .Case<LLVM::CallOp>([&](auto op) { call(op); })
        .Default([&](Operation *op) { compute(*op); });
  }

  void compute(Operation &operation) {
    SmallVector<Lanes> operands;
    for (Value operand : operation.getOperands())
      operands.push_back(values[operand]);
    Lanes result = translateArithmetic(s, operation, operands);
    if (result.empty())
      return fail(operation.getName().getStringRef().str());
    values[operation.getResult(0)] = result;
  }

  LLVM::LLVMFuncOp from;
  spirv::FuncOp to;
  const DeviceLaunch &launch;
  const SharedPlan &shared;
  const LiteralOffsets &literals;
  OpBuilder builder;
  SpirvScalars s;
  Value first; ///< before which variables are made
  Value threadNumber, blockNumber, sharedArray, argumentArray;
  llvm::DenseMap<Value, Lanes> values;
  std::string failure;
};

} // namespace

Status translateBody(LLVM::LLVMFuncOp from, spirv::FuncOp to, const DeviceLaunch &launch,
                     const SharedPlan &shared, const LiteralOffsets &literals) {
  return BodyTranslator(from, to, launch, shared, literals).run();
}

} // namespace dovetail::test
