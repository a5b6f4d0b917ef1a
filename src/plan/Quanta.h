// SPDX-License-Identifier: Apache-2.0
//
// Quantised values in trials: how far an integer that stands for a real number may be off, and
// operands of a size at which an error would show.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "support/Problem.h"

namespace dovetail::plan {

/// By how many quanta a result may differ from the literal graph's. 1 where it is what a
/// quantisation gives: a sum in another order, or a product with the reciprocal of the scale, may
/// fall on the other side of a tie. 0 for all other integers.
unsigned allowedQuanta(const Problem &problem, uint32_t value);

/// Largest difference of integers of 8 or 16 bits; nothing for other types.
std::optional<unsigned> quantaBetween(dvt_type type, const void *truth, const void *found,
                                      int64_t elements);

/// Noise for an operand of a quantised problem: bytes of the whole range, scales above zero and of
/// such a size that results neither vanish nor all saturate. Nothing for other operands.
std::optional<std::vector<uint8_t>> quantizedNoise(const Problem &problem, uint32_t value,
                                                   const std::vector<int64_t> &extents,
                                                   uint64_t seed);

} // namespace dovetail::plan
