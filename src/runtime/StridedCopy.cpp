// SPDX-License-Identifier: Apache-2.0
//
// A recursion over dimensions that copies runs of bytes where both sides are dense innermost.
#include "runtime/StridedCopy.h"

#include <cstring>

#include "support/Problem.h"

namespace dovetail {

namespace {

struct Walk {
  std::span<const int64_t> extents, from, to;
  size_t elementBytes;

  /// Elements of all dimensions after `d`.
  int64_t inner(size_t d) const {
    int64_t count = 1;
    for (size_t k = d + 1; k < extents.size(); ++k)
      count *= extents[k];
    return count;
  }
  int64_t stride(std::span<const int64_t> strides, size_t d) const {
    return strides.empty() ? inner(d) : strides[d];
  }
  void copy(size_t d, const uint8_t *source, uint8_t *destination) const {
    if (d == extents.size()) {
      std::memcpy(destination, source, elementBytes);
      return;
    }
    int64_t fromStride = stride(from, d), toStride = stride(to, d);
    if (d + 1 == extents.size() && fromStride == 1 && toStride == 1) {
      std::memcpy(destination, source, extents[d] * elementBytes);
      return;
    }
    for (int64_t i = 0; i < extents[d]; ++i)
      copy(d + 1, source + i * fromStride * int64_t(elementBytes),
           destination + i * toStride * int64_t(elementBytes));
  }
};

} // namespace

std::vector<int64_t> denseStrides(std::span<const int64_t> extents) {
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t d = extents.size(); d-- > 0; stride *= extents[d])
    strides[d] = stride;
  return strides;
}

bool isDense(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  int64_t expected = 1;
  for (size_t d = strides.size(); d-- > 0;) {
    if (extents[d] != 1 && strides[d] != expected)
      return false;
    expected *= extents[d];
  }
  return true;
}

void copyStrided(dvt_type type, std::span<const int64_t> extents, const void *source,
                 std::span<const int64_t> sourceStrides, void *destination,
                 std::span<const int64_t> destinationStrides) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  if (count == 0)
    return;
  if (sourceStrides.empty() && destinationStrides.empty()) {
    std::memcpy(destination, source, bytesOf(type, count));
    return;
  }
  Walk walk{extents, sourceStrides, destinationStrides, typeBits(type) / 8};
  walk.copy(0, static_cast<const uint8_t *>(source), static_cast<uint8_t *>(destination));
}

} // namespace dovetail
