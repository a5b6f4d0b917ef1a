// SPDX-License-Identifier: Apache-2.0
//
// The memory that kernels pack their constants into: one region for all those of a plan, in the
// order of its steps, so that packed weights lie side by side and in huge pages. What does not fit
// gets memory of its own. Lives as long as the last kernel that was given some.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/HostMemory.h"

namespace dovetail {

/// For one thread at a time.
class ConstantMemory {
public:
  /// `bytes` for the region; 0 for none.
  ConstantMemory(const HostAllocator &allocator, uint64_t bytes);
  /// What one block takes of the region.
  static uint64_t blockBytes(uint64_t bytes);
  /// `bytes` zero bytes, aligned to kTensorAlignment; null where there is no memory.
  void *take(uint64_t bytes);
  /// Gives back to the system what nothing was taken of.
  void trim() { region.discardFrom(used); }

private:
  HostAllocator allocator;
  HostBuffer region;
  std::vector<HostBuffer> others;
  uint64_t regionBytes = 0, used = 0;
};

} // namespace dovetail
