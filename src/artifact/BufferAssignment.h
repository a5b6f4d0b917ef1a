// SPDX-License-Identifier: Apache-2.0
//
// Places buffers with known sizes and lifetimes in one arena. Pure: used by the plan for static
// models and by the runtime when a signature of run-time extents is first seen, with the same
// result.
#pragma once

#include <cstdint>
#include <vector>

namespace dovetail {

struct BufferRequest {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0; ///< steps, inclusive, during which it must not be overwritten
};

struct BufferAssignment {
  std::vector<uint64_t> offsets; ///< bytes, multiples of 64, one for each request
  uint64_t arenaBytes = 0;
};

/// Greedy by size, largest first, ties by index; best fit among the gaps. Deterministic.
BufferAssignment assignBuffers(const std::vector<BufferRequest> &requests);

} // namespace dovetail
