// SPDX-License-Identifier: Apache-2.0
//
// Elements of floating-point tensors as numbers, for doubles of libraries, which compute in f64.
#pragma once

#include "providers/ProblemReader.h"
#include "support/Literal.h"

namespace simulated {

inline double loadElement(const void *from, dvt_type type, size_t index) {
  return dovetail::providers::elementAsDouble(from, type, index);
}

/// Rounded to nearest, by way of f32. f32, f16 and bf16 only.
inline void storeElement(void *to, dvt_type type, size_t index, double value) {
  const auto narrow = static_cast<float>(value);
  if (type == DVT_F32)
    static_cast<float *>(to)[index] = narrow;
  else
    static_cast<uint16_t *>(to)[index] =
        type == DVT_F16 ? dovetail::floatToHalf(narrow) : dovetail::floatToBfloat(narrow);
}

} // namespace simulated
