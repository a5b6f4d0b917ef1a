// SPDX-License-Identifier: Apache-2.0
//
// One phase of a schedule as a function that a device's threads run: a task for each thread, or one
// for each block, whose threads then share it. Its arguments are all tensors of the problem, the
// workspace and all extents that are not static; those it does not use are left out in the end.
#pragma once

#include <functional>
#include <string>

#include "mlir/IR/BuiltinOps.h"

#include "codegen/Emitter.h"
#include "support/DeviceKernel.h"

namespace dovetail::codegen {

struct DeviceTasks {
  enum class Of { Thread, Block } of = Of::Thread;
  uint32_t threads; ///< of a block
  std::function<Value(Emitter &emitter)> count;
};

class DevicePhaseBuilder {
public:
  DevicePhaseBuilder(mlir::OpBuilder &builder, mlir::ModuleOp module, const ProblemReader &problem,
                     const Machine &machine)
      : builder(builder), module(module), problem(problem), machine(machine) {}

  /// Appends the function `name` to the module. `body` emits what runs the task [begin, end), i64
  /// values one apart.
  Expected<DeviceLaunch>
  build(const std::string &name, const DeviceTasks &tasks,
        llvm::function_ref<void(Emitter &emitter, Value begin, Value end)> body);

private:
  void emitTask(Emitter &emitter, const DeviceTasks &tasks, Value count,
                llvm::function_ref<void(Emitter &, Value, Value)> body);
  Status appendSteps(Value value, DeviceExpression &to);
  void dropUnused(mlir::LLVM::LLVMFuncOp function, DeviceLaunch &launch);

  mlir::OpBuilder &builder;
  mlir::ModuleOp module;
  const ProblemReader &problem;
  const Machine &machine;
  std::vector<DeviceArgument> arguments; ///< of the function as it is built
};

} // namespace dovetail::codegen
