// SPDX-License-Identifier: Apache-2.0
//
// Builds the functions of a device kernel's phases.
#include "codegen/gpu/DevicePhase.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include "codegen/gpu/Threads.h"
#include "codegen/schedule/DeviceGrid.h"

namespace dovetail::codegen {

using namespace mlir;

/// Parameters of a kernel may take 4 KiB on every device.
static constexpr size_t kMostArguments = 500;

/// What a function may be given: all tensors, the workspace, all extents that are not static.
static std::vector<DeviceArgument> allArguments(const ProblemReader &problem) {
  const dvt_problem &source = problem.problem();
  std::vector<DeviceArgument> arguments, extents;
  uint32_t tensors = source.input_count + source.output_count;
  for (uint32_t tensor = 0; tensor < tensors; ++tensor) {
    arguments.push_back({DeviceArgument::Kind::Tensor, tensor, 0});
    const dvt_value &value =
        problem.value(tensor < source.input_count ? source.inputs[tensor]
                                                  : source.outputs[tensor - source.input_count]);
    for (uint32_t i = 0; i < value.rank; ++i)
      if (!isStaticExtent(value.extents[i]))
        extents.push_back({DeviceArgument::Kind::Extent, tensor, i});
  }
  arguments.push_back({DeviceArgument::Kind::Workspace, 0, 0});
  arguments.insert(arguments.end(), extents.begin(), extents.end());
  return arguments;
}

Expected<DeviceLaunch>
DevicePhaseBuilder::build(const std::string &name, const DeviceTasks &tasks,
                          llvm::function_ref<void(Emitter &, Value, Value)> body) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(module.getBody());
  MLIRContext *context = builder.getContext();
  Location location = builder.getUnknownLoc();
  arguments = allArguments(problem);
  SmallVector<Type> types;
  for (const DeviceArgument &argument : arguments)
    types.push_back(argument.kind == DeviceArgument::Kind::Extent
                        ? Type(builder.getI64Type())
                        : LLVM::LLVMPointerType::get(context, kGlobalSpace));
  auto function = LLVM::LLVMFuncOp::create(
      builder, location, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  Block *entry = function.addEntryBlock(builder);
  auto *start = new Block;
  function.getBody().push_back(start);
  builder.setInsertionPointToEnd(entry);
  LLVM::BrOp::create(builder, location, ValueRange(), start);
  builder.setInsertionPointToEnd(start);

  Emitter emitter(builder, problem, machine, *entry);
  emitter.onDevice = true;
  DeviceLaunch launch;
  launch.entry = name;
  launch.threads = tasks.threads;
  Value count = tasks.count(emitter);
  Status counted = appendSteps(count, launch.blocks);
  if (!counted)
    return counted.takeError();
  if (tasks.of == DeviceTasks::Of::Thread) {
    using Op = DeviceExpression::Op;
    auto &steps = launch.blocks.steps;
    steps.push_back({Op::Constant, 0, int64_t(tasks.threads) - 1});
    steps.push_back({Op::Add});
    steps.push_back({Op::Constant, 0, int64_t(tasks.threads)});
    steps.push_back({Op::Divide});
  }
  if (auto known = launch.blocks.constantValue()) {
    const int64_t most = mostBlocks(machine.isa, tasks.threads);
    if (*known > most)
      return badInput("a kernel of {} blocks of {} threads: a launch on {} takes {} of them",
                      *known, tasks.threads, machine.isa.name(), most);
    launch.blocks = DeviceExpression::constant(*known);
  }
  emitTask(emitter, tasks, count, body);
  LLVM::ReturnOp::create(builder, location, ValueRange());
  if (!emitter.failure().empty())
    return internalError("{}", emitter.failure());
  launch.sharedBytes = uint32_t(emitter.sharedBytes);
  dropUnused(function, launch);
  if (launch.arguments.size() > kMostArguments)
    return badInput("a kernel of {} arguments: devices take {}", launch.arguments.size(),
                    kMostArguments);
  return launch;
}

void DevicePhaseBuilder::emitTask(Emitter &e, const DeviceTasks &tasks, Value count,
                                  llvm::function_ref<void(Emitter &, Value, Value)> body) {
  if (tasks.of == DeviceTasks::Of::Block) // as many blocks as tasks
    return body(e, e.blockIndex(), e.add(e.blockIndex(), 1));
  Value task = e.add(e.mul(e.blockIndex(), int64_t(tasks.threads)), e.threadIndex());
  e.ifTrue(e.lt(task, count), [&] { body(e, task, e.add(task, 1)); });
}

/// The arithmetic that gives `value` from extents, as the launching side computes it.
Status DevicePhaseBuilder::appendSteps(Value value, DeviceExpression &to) {
  using Op = DeviceExpression::Op;
  if (auto number = Emitter::constantIndex(value)) {
    to.steps.push_back({Op::Constant, 0, *number});
    return Status::success();
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    const DeviceArgument &extent = arguments[argument.getArgNumber()];
    to.steps.push_back({Op::Extent, extent.tensor, extent.dimension});
    return Status::success();
  }
  Operation *operation = value.getDefiningOp();
  auto op = llvm::TypeSwitch<Operation *, std::optional<Op>>(operation)
                .Case<arith::AddIOp>([](auto) { return Op::Add; })
                .Case<arith::SubIOp>([](auto) { return Op::Subtract; })
                .Case<arith::MulIOp>([](auto) { return Op::Multiply; })
                .Case<arith::DivUIOp>([](auto) { return Op::Divide; })
                .Case<arith::RemUIOp>([](auto) { return Op::Remainder; })
                .Case<arith::MinSIOp>([](auto) { return Op::Minimum; })
                .Case<arith::MaxSIOp>([](auto) { return Op::Maximum; })
                .Default([](Operation *) { return std::nullopt; });
  if (!op)
    return internalError("the number of a kernel's tasks takes {}, which launches cannot compute",
                         operation->getName().getStringRef().str());
  for (Value operand : operation->getOperands())
    if (Status status = appendSteps(operand, to); !status)
      return status;
  to.steps.push_back({*op});
  return Status::success();
}

void DevicePhaseBuilder::dropUnused(LLVM::LLVMFuncOp function, DeviceLaunch &launch) {
  // What was computed for the count alone.
  bool changed = true;
  while (changed) {
    changed = false;
    function.walk([&](Operation *operation) {
      if (!isOpTriviallyDead(operation))
        return;
      operation->erase();
      changed = true;
    });
  }
  llvm::BitVector unused(arguments.size());
  SmallVector<Type> types;
  for (size_t i = 0; i < arguments.size(); ++i) {
    BlockArgument argument = function.getArgument(i);
    if (argument.use_empty()) {
      unused.set(i);
    } else {
      launch.arguments.push_back(arguments[i]);
      types.push_back(argument.getType());
    }
  }
  // Not eraseArguments(), which gives up on functions that return void.
  function.getBody().front().eraseArguments(unused);
  function.setFunctionType(
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(function.getContext()), types));
}

} // namespace dovetail::codegen
