// SPDX-License-Identifier: Apache-2.0
//
// Walking over indices in row-major order with offsets into strided operands, broadcasting
// included, and the moving of elements of any size that rests on it.
#pragma once

#include <array>
#include <cstring>
#include <functional>

#include "Invocation.h"

namespace dovetail::reference {

/// Calls body(linear, offsets) for each index of `extents`; offsets[k] is the sum of index times
/// strides[k].
template <size_t N, typename Body>
void walk(const Extents &extents, const std::array<Extents, N> &strides, Body &&body) {
  Extents index(extents.size(), 0);
  std::array<int64_t, N> offsets{};
  for (int64_t linear = 0, count = elementCount(extents).value_or(0); linear < count; ++linear) {
    body(linear, offsets);
    for (size_t i = extents.size(); i-- > 0;) {
      for (size_t k = 0; k < N; ++k)
        offsets[k] += strides[k][i];
      if (++index[i] < extents[i])
        break;
      for (size_t k = 0; k < N; ++k)
        offsets[k] -= strides[k][i] * extents[i];
      index[i] = 0;
    }
  }
}

/// Calls body(linear, index) for each index of `extents`.
template <typename Body> void forEachIndex(const Extents &extents, Body &&body) {
  Extents index(extents.size(), 0);
  for (int64_t linear = 0, count = elementCount(extents).value_or(0); linear < count; ++linear) {
    body(linear, static_cast<const Extents &>(index));
    for (size_t i = extents.size(); i-- > 0;) {
      if (++index[i] < extents[i])
        break;
      index[i] = 0;
    }
  }
}

/// NumPy's rule for two or more operands. Bad input where an extent is neither equal nor 1.
Status broadcastExtents(const Invocation &op, const std::vector<Extents> &operands,
                        Extents &result);
/// Strides of an operand of `from` read at indices of `to`: 0 in broadcast dimensions. `from` must
/// broadcast to `to`.
Extents broadcastStrides(const Extents &from, const Extents &to);
bool broadcastsTo(const Extents &from, const Extents &to);

/// Row-major elements of `to` are those of `from` at `base` plus index times `strides`, in
/// elements. The types must have the same size.
void gatherStrided(const Tensor &from, int64_t base, const Extents &strides, Tensor &to);

/// Copies one element.
inline void copyElement(const Tensor &from, int64_t fromIndex, Tensor &to, int64_t toIndex) {
  size_t bytes = elementBytes(to.type);
  const uint8_t *source = from.data + static_cast<size_t>(fromIndex) * bytes;
  uint8_t *target = to.data + static_cast<size_t>(toIndex) * bytes;
  switch (bytes) {
  case 1:
    *target = *source;
    break;
  case 2:
    std::memcpy(target, source, 2);
    break;
  case 4:
    std::memcpy(target, source, 4);
    break;
  default:
    std::memcpy(target, source, 8);
  }
}

/// Product of extents [begin, end).
int64_t productOf(const Extents &extents, int64_t begin, int64_t end);

} // namespace dovetail::reference
