// SPDX-License-Identifier: Apache-2.0
//
// Images whose channels lie innermost, as layouts and as strides. Header-only.
#pragma once

#include <algorithm>
#include <string>

#include "providers/ProblemReader.h"

namespace dovetail::providers {

/// "acdb" for four dimensions.
inline std::string channelsLastText(size_t rank) {
  std::string text = "a";
  for (size_t i = 2; i < rank; ++i)
    text += static_cast<char>('a' + i);
  return text + "b";
}

inline Dims channelsLastStrides(const Dims &dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  auto take = [&](size_t dim) {
    strides[dim] = stride;
    stride *= dims[dim];
  };
  take(1);
  for (size_t i = dims.size(); i-- > 2;)
    take(i);
  take(0);
  return strides;
}

/// Whether the order of dimensions makes no difference to the bytes.
inline bool hasOneOrder(const Dims &dims) {
  return std::count_if(dims.begin(), dims.end(), [](int64_t dim) { return dim > 1; }) <= 1;
}

} // namespace dovetail::providers
