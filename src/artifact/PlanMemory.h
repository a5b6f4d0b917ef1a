// SPDX-License-Identifier: Apache-2.0
//
// The accounts of a plan: what private memory a process takes that runs it, as its kernels'
// providers say.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "artifact/Plan.h"

namespace dovetail {

/// Bytes. Kernels that are bound at run time, and arenas whose extents are known only then, are not
/// in it.
struct PlanMemory {
  uint64_t weights = 0; ///< constants as the artifact has them, each once; mapped, so not private
  uint64_t halves = 0;  ///< of these, what is f16 or bf16
  uint64_t packed = 0;  ///< constants in the form in which kernels use them
  uint64_t code = 0;    ///< of kernels: made at run time, and descriptors
  uint64_t arena = 0;   ///< of all blocks
  std::map<std::string, uint64_t> processes; ///< what comes with each library, by processOf

  uint64_t process() const;
  /// All that is private.
  uint64_t total() const { return packed + code + process() + arena; }
};

PlanMemory memoryOf(const Plan &plan);
/// Names what `processBytes` of a candidate is shared among.
std::string processOf(const Candidate &candidate);

} // namespace dovetail
