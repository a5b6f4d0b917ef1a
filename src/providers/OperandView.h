// SPDX-License-Identifier: Apache-2.0
//
// A value's memory looked at under other dimensions: transposed, reshaped, broadcast, with no
// element moved. Library providers fold transposes and reshapes around an op into such views.
// Header-only, shared by providers.
#pragma once

#include <optional>
#include <vector>

#include "providers/ProblemReader.h"

namespace dovetail::providers {

/// A value as an operand of a library call: its bytes under the call's dimensions.
struct View {
  uint32_t value = DVT_NO_VALUE;
  Dims dims, strides;
  /// Axis of the value for each dimension, when the dimensions are a permutation of the axes of a
  /// dense value; empty otherwise. Only then may the layout differ from row-major.
  std::vector<int> axes;

  bool isPresent() const { return value != DVT_NO_VALUE; }
  bool isFree() const { return !axes.empty(); }
  /// Number of dimensions greater than 1.
  size_t wideDims() const;
  /// Dimension i becomes old dimension order[i].
  View permuted(const std::vector<size_t> &order) const;
  /// The same elements in the same order under other dimensions; nothing where the memory is not
  /// dense.
  std::optional<View> reshaped(const Dims &to) const;
  /// With a dimension of 1 put in at `position`.
  View withAxis(size_t position) const;
  /// With dimensions of 1 in front, up to `rank`.
  View withRank(size_t rank) const;
  /// The first `count` dimensions as one; nothing where one stride cannot step through them.
  std::optional<View> collapsed(size_t count) const;
};

/// Extents of 1 get the strides they would have in a dense tensor, so that equal layouts
/// look equal to libraries.
inline void settleUnitStrides(const Dims &dims, Dims &strides) {
  for (size_t i = dims.size(); i-- > 0;)
    if (dims[i] == 1)
      strides[i] = i + 1 < dims.size() ? dims[i + 1] * strides[i + 1] : 1;
}

inline bool isDense(const Dims &dims, const Dims &strides) {
  Dims dense = denseStrides(dims);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && strides[i] != dense[i])
      return false;
  return true;
}

inline size_t View::wideDims() const {
  size_t count = 0;
  for (int64_t dim : dims)
    count += dim > 1;
  return count;
}

inline View View::permuted(const std::vector<size_t> &order) const {
  View result{value, Dims(dims.size()), Dims(dims.size()), std::vector<int>(axes.size())};
  for (size_t i = 0; i < order.size(); ++i) {
    result.dims[i] = dims[order[i]];
    result.strides[i] = strides[order[i]];
    if (isFree())
      result.axes[i] = axes[order[i]];
  }
  return result;
}

inline std::optional<View> View::reshaped(const Dims &to) const {
  if (to == dims)
    return *this;
  if (!isDense(dims, strides) || product(dims) != product(to))
    return std::nullopt;
  return View{value, to, denseStrides(to), {}};
}

inline View View::withAxis(size_t position) const {
  View result{value, dims, strides, {}};
  result.dims.insert(result.dims.begin() + static_cast<ptrdiff_t>(position), 1);
  result.strides.insert(result.strides.begin() + static_cast<ptrdiff_t>(position), 1);
  settleUnitStrides(result.dims, result.strides);
  return result;
}

inline View View::withRank(size_t rank) const {
  View result = *this;
  while (result.dims.size() < rank)
    result = result.withAxis(0);
  return result;
}

inline std::optional<View> View::collapsed(size_t count) const {
  if (count <= 1)
    return *this;
  int64_t extent = 1, stride = 0;
  for (size_t i = count; i-- > 0;) {
    if (dims[i] == 1)
      continue;
    if (extent == 1)
      stride = strides[i];
    else if (strides[i] != stride * extent)
      return std::nullopt;
    extent *= dims[i];
  }
  View result{value, {extent}, {stride}, {}};
  result.dims.insert(result.dims.end(), dims.begin() + static_cast<ptrdiff_t>(count), dims.end());
  result.strides.insert(result.strides.end(), strides.begin() + static_cast<ptrdiff_t>(count),
                        strides.end());
  settleUnitStrides(result.dims, result.strides);
  return result;
}

} // namespace dovetail::providers
