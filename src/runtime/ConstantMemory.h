// SPDX-License-Identifier: Apache-2.0
//
// The memory that kernels pack their constants into: one region for all those of a plan, in the
// order of its steps, so that packed weights lie side by side and in huge pages. What does not fit
// gets memory of its own. Lives as long as the last kernel that was given some.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/HostMemory.h"

namespace dovetail {

/// Any thread may take memory and reserve it.
class ConstantMemory {
public:
  /// A part of the region, set aside for one kernel so that its place does not depend on when it is
  /// prepared. For one thread at a time.
  class Share {
  public:
    Share() = default;

  private:
    friend class ConstantMemory;
    uint8_t *place = nullptr;
    uint64_t left = 0;
  };

  /// `bytes` for the region; 0 for none.
  ConstantMemory(const HostAllocator &allocator, uint64_t bytes);
  /// What one block takes of the region.
  static uint64_t blockBytes(uint64_t bytes);
  /// Sets `bytes` of the region aside; an empty share where it has fewer left.
  Share reserve(uint64_t bytes);
  /// `bytes` zero bytes, aligned to kTensorAlignment; null where there is no memory.
  void *take(uint64_t bytes);
  /// The same out of `share`, while that has enough.
  void *take(uint64_t bytes, Share &share);
  /// Gives back to the system what nothing was taken of.
  void trim() { region.discardFrom(used); }

private:
  std::mutex mutex; ///< guards what follows
  HostAllocator allocator;
  HostBuffer region;
  std::vector<HostBuffer> others;
  uint64_t regionBytes = 0, used = 0;
};

} // namespace dovetail
