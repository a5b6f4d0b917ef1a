// SPDX-License-Identifier: Apache-2.0
#include "providers/miopen/Kernel.h"

#include <algorithm>

namespace dovetail::miopen {
namespace {

/// Empty where something is wrong, which is noted in `turn`.
std::vector<std::unique_ptr<Step>> makeSteps(Turn &turn, const Form &form, Choice choice) {
  std::vector<std::unique_ptr<Step>> steps;
  if (choice.by == Choice::By::Fusion) {
    steps.push_back(makeFused(turn, form.calls));
    if (turn.isFine())
      return steps;
    // The library has no such kernel: call by call.
    turn.forgive();
    steps.clear();
    choice.by = Choice::By::Immediate;
  }
  for (const Call &call : form.calls) {
    steps.push_back(call.kind == Call::Kind::Convolution ? makeConvolution(turn, call, choice)
                                                         : makeStep(turn, call));
    if (!turn.isFine())
      return {};
  }
  return steps;
}

} // namespace

std::unique_ptr<Kernel> Kernel::make(std::shared_ptr<Handle> handle, const Form &form,
                                     const Choice &choice, uint32_t inputCount,
                                     std::string &reason) {
  auto kernel = std::make_unique<Kernel>();
  Turn turn(*handle, nullptr);
  if (turn.isFine())
    kernel->steps = makeSteps(turn, form, choice);
  if (!turn.isFine()) {
    reason = turn.reason();
    return nullptr;
  }
  for (const std::unique_ptr<Step> &step : kernel->steps)
    kernel->workspace = std::max(kernel->workspace, step->workspaceBytes());
  kernel->handle = std::move(handle);
  kernel->inputCount = inputCount;
  return kernel;
}

dvt_code Kernel::run(const dvt_run_args &args, std::string &reason) {
  if (args.input_count != inputCount || args.output_count != 1) {
    reason = "run with another number of operands or results than the problem's";
    return DVT_BAD_INPUT;
  }
  if (workspace > 0 && (!args.workspace || args.workspace_bytes < workspace)) {
    reason = "the workspace is smaller than workspace_bytes says";
    return DVT_BAD_INPUT;
  }
  auto isOnDevice = [](const dvt_tensor &tensor) {
    return tensor.memory == DVT_MEMORY_DEVICE && tensor.data;
  };
  Pointers pointers;
  pointers.result = args.outputs[0].data;
  pointers.workspace = args.workspace;
  bool isThere = isOnDevice(args.outputs[0]);
  for (uint32_t i = 0; i < inputCount; ++i) {
    isThere &= isOnDevice(args.inputs[i]);
    pointers.inputs.push_back(args.inputs[i].data);
  }
  if (!isThere) {
    reason = "operands and results are taken in device memory only";
    return DVT_BAD_INPUT;
  }
  Turn turn(*handle, args.stream);
  for (const std::unique_ptr<Step> &step : steps)
    if (turn.isFine())
      step->run(turn, pointers);
  reason = turn.reason();
  return turn.isFine() ? DVT_OK : DVT_FAILED;
}

} // namespace dovetail::miopen
