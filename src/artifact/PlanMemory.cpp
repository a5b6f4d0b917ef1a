// SPDX-License-Identifier: Apache-2.0
//
// Sharing as in the runtime: equal steps with equal constants have one kernel, and kernels of equal
// problems one code.
#include "artifact/PlanMemory.h"

#include <algorithm>
#include <set>

#include "artifact/BlockMemory.h"

namespace dovetail {

uint64_t PlanMemory::process() const {
  uint64_t bytes = 0;
  for (const auto &[process, part] : processes)
    bytes += part;
  return bytes;
}

std::string processOf(const Candidate &candidate) {
  return candidate.provider + " " + candidate.processGroup;
}

PlanMemory memoryOf(const Plan &plan) {
  PlanMemory memory;
  std::set<std::pair<const void *, uint64_t>> constants;
  for (const PlanConstant &constant : plan.constants)
    if (constants.emplace(constant.data, constant.bytes).second) {
      memory.weights += constant.bytes;
      if (constant.type == DVT_F16 || constant.type == DVT_BF16)
        memory.halves += constant.bytes;
    }
  std::set<std::string> kernels, codes;
  for (const PlanBlock &block : plan.blocks) {
    memory.arena += block.arenaBytes;
    std::vector<uint32_t> roots = aliasRoots(block);
    for (const PlanStep &step : block.steps) {
      if (step.kind != StepKind::Kernel && step.kind != StepKind::LateBound)
        continue;
      const Candidate &candidate = step.choice.candidate;
      if (candidate.memory == DVT_MEMORY_DEVICE)
        continue; // its constants, code and results are the device's
      std::string key = candidate.label() + " " + std::to_string(step.problem);
      if (codes.insert(key).second)
        memory.code += candidate.codeBytes;
      uint64_t &process = memory.processes[processOf(candidate)];
      process = std::max(process, candidate.processBytes);
      for (uint32_t value : step.inputs)
        if (value != kNoValue && block.values[roots[value]].storage == Storage::Constant)
          key += " " + std::to_string(block.values[roots[value]].index);
      if (candidate.packing != DVT_PACKING_NONE && candidate.packedBytes != UINT64_MAX &&
          kernels.insert(key).second)
        memory.packed += candidate.packedBytes;
    }
  }
  return memory;
}

} // namespace dovetail
