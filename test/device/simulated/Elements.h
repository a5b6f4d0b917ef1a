// SPDX-License-Identifier: Apache-2.0
//
// Elements of floating-point tensors as numbers, for doubles of libraries, which compute in f64.
#pragma once

#include <cstring>

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

/// What stays of a number in memory of that type.
inline double roundedElement(dvt_type type, double value) {
  float memory = 0; // large enough for all
  storeElement(&memory, type, 0, value);
  return loadElement(&memory, type, 0);
}

/// With 10 bits of fraction, ties to even.
inline double roundedToTf32(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  if ((bits & 0x7f800000u) == 0x7f800000u)
    return value;
  bits += 0xfffu + (bits >> 13 & 1);
  bits &= ~uint32_t{0x1fff};
  float rounded = 0;
  std::memcpy(&rounded, &bits, sizeof rounded);
  return rounded;
}

} // namespace simulated
