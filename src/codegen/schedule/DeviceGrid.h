// SPDX-License-Identifier: Apache-2.0
//
// How large the grid of one launch may be.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codegen/schedule/Machine.h"

namespace dovetail::codegen {

/// Blocks of so many threads that one launch takes in the first dimension of its grid: CUDA counts
/// blocks with 31 bits, HIP the threads of all blocks with 32.
inline int64_t mostBlocks(const Isa &isa, uint32_t threads) {
  return isa.isRocm() ? int64_t(UINT32_MAX / std::max<uint32_t>(threads, 1)) : INT32_MAX;
}

} // namespace dovetail::codegen
