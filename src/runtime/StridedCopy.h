// SPDX-License-Identifier: Apache-2.0
//
// Copies between dense row-major memory and memory with strides, for what callers bind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dovetail/provider.h"

namespace dovetail {

/// Strides in elements; an empty span is dense row-major. Whole-byte types only where either is
/// strided.
void copyStrided(dvt_type type, std::span<const int64_t> extents, const void *source,
                 std::span<const int64_t> sourceStrides, void *destination,
                 std::span<const int64_t> destinationStrides);

std::vector<int64_t> denseStrides(std::span<const int64_t> extents);
/// Whether strides (none: dense ones) are those of dense row-major memory.
bool isDense(std::span<const int64_t> extents, std::span<const int64_t> strides);

} // namespace dovetail
