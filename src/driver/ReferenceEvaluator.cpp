// SPDX-License-Identifier: Apache-2.0
//
// Propose, compile, prepare, run, destroy, with memory for this one call.
#include "driver/ReferenceEvaluator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "support/Parallel.h"

namespace dovetail {
namespace {

using Memory = std::unique_ptr<void, void (*)(void *)>;

Memory allocate(uint64_t bytes) {
  return {std::aligned_alloc(64, std::max<uint64_t>(64, (bytes + 63) / 64 * 64)), std::free};
}

struct Tensors {
  std::vector<dvt_tensor> tensors;
  std::vector<std::vector<int64_t>> extents;
  std::vector<Memory> memory;
  std::vector<uint64_t> bytes;
};

Expected<Tensors> describe(const Problem &problem, const std::vector<uint32_t> &numbers) {
  Tensors result;
  for (uint32_t number : numbers) {
    const ProblemValue &value = problem.values[number];
    std::vector<int64_t> extents;
    int64_t elements = 1;
    for (const Extent &extent : value.extents) {
      if (!extent.isStatic())
        return unavailable("{} has extents that are not known", summary(problem));
      extents.push_back(extent.value());
      elements *= extent.value();
    }
    result.bytes.push_back(bytesOf(value.type, elements));
    result.memory.push_back(allocate(result.bytes.back()));
    result.extents.push_back(std::move(extents));
    dvt_tensor tensor{};
    tensor.data = result.memory.back().get();
    tensor.extents = result.extents.back().data();
    tensor.rank = static_cast<uint32_t>(result.extents.back().size());
    tensor.type = value.type;
    result.tensors.push_back(tensor);
  }
  // The vectors inside may have moved while growing.
  for (size_t i = 0; i < result.tensors.size(); ++i)
    result.tensors[i].extents = result.extents[i].data();
  return result;
}

} // namespace

Expected<std::vector<std::vector<uint8_t>>> evaluateOnce(const Provider &provider,
                                                         const Target &target,
                                                         const Problem &problem,
                                                         const std::vector<const void *> &inputs) {
  Proposal proposal = provider.propose(target, problem);
  if (proposal.candidates.empty())
    return unavailable("{} does not evaluate {}: {}", provider.name(), summary(problem),
                       proposal.refusals.empty() ? "no reason given"
                                                 : proposal.refusals.front().reason);
  const Candidate &candidate = proposal.candidates.front();
  auto kernelBytes = provider.compile(target, problem, candidate);
  if (!kernelBytes)
    return kernelBytes.takeError();
  auto operands = describe(problem, problem.inputs), results = describe(problem, problem.outputs);
  if (!operands)
    return operands.takeError();
  if (!results)
    return results.takeError();
  std::vector<const void *> constants;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::memcpy(operands->memory[i].get(), inputs[i], operands->bytes[i]);
    constants.push_back(problem.values[problem.inputs[i]].constant ? operands->memory[i].get()
                                                                   : nullptr);
  }
  ParallelFor parallel(target.threads);
  dvt_prepare_args prepare{};
  prepare.struct_size = sizeof prepare;
  prepare.constants = constants.data();
  prepare.kernel = kernelBytes->data();
  prepare.kernel_bytes = kernelBytes->size();
  prepare.threads = target.threads;
  prepare.parallel = parallel.get();
  std::vector<const char *> strings;
  dvt_candidate view = candidate.view(strings);
  dvt_target targetView = target.view();
  ProblemView problemView(problem);
  dvt_kernel *kernel = nullptr;
  dvt_error error{};
  const dvt_provider_api &functions = provider.functions();
  if (functions.prepare(provider.handle(), &targetView, problemView, &view, &prepare, &kernel,
                        &error) != DVT_OK)
    return unavailable("{}: {}", provider.name(), error.message);
  std::unique_ptr<dvt_kernel, void (*)(dvt_kernel *)> owner(kernel, functions.destroy_kernel);
  uint64_t workspaceBytes = functions.workspace_bytes(kernel);
  Memory workspace = allocate(workspaceBytes);
  dvt_run_args run{};
  run.struct_size = sizeof run;
  run.input_count = static_cast<uint32_t>(operands->tensors.size());
  run.output_count = static_cast<uint32_t>(results->tensors.size());
  run.inputs = operands->tensors.data();
  run.outputs = results->tensors.data();
  run.workspace = workspace.get();
  run.workspace_bytes = workspaceBytes;
  run.parallel = parallel.get();
  if (functions.run(kernel, &run, &error) != DVT_OK)
    return unavailable("{}: {}", provider.name(), error.message);
  std::vector<std::vector<uint8_t>> outputs;
  for (size_t i = 0; i < results->tensors.size(); ++i) {
    const auto *bytes = static_cast<const uint8_t *>(results->memory[i].get());
    outputs.emplace_back(bytes, bytes + results->bytes[i]);
  }
  return outputs;
}

} // namespace dovetail
