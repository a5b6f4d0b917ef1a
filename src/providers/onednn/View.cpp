// SPDX-License-Identifier: Apache-2.0
//
// Views: dimensions and strides over a value's memory, and the ways they may be rearranged without
// moving elements.
#include "providers/onednn/Match.h"

namespace dovetail::onednn {
namespace {

/// Extents of 1 get the strides they would have in a dense tensor, so that equal layouts look equal
/// to oneDNN.
void settleUnitStrides(const Dims &dims, Dims &strides) {
  for (size_t i = dims.size(); i-- > 0;)
    if (dims[i] == 1)
      strides[i] = i + 1 < dims.size() ? dims[i + 1] * strides[i + 1] : 1;
}

bool isDense(const Dims &dims, const Dims &strides) {
  Dims dense = providers::denseStrides(dims);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && strides[i] != dense[i])
      return false;
  return true;
}

} // namespace

size_t View::wideDims() const {
  size_t count = 0;
  for (int64_t dim : dims)
    count += dim > 1;
  return count;
}

View View::permuted(const std::vector<size_t> &order) const {
  View result{value, Dims(dims.size()), Dims(dims.size()), std::vector<int>(axes.size())};
  for (size_t i = 0; i < order.size(); ++i) {
    result.dims[i] = dims[order[i]];
    result.strides[i] = strides[order[i]];
    if (isFree())
      result.axes[i] = axes[order[i]];
  }
  return result;
}

std::optional<View> View::reshaped(const Dims &to) const {
  if (to == dims)
    return *this;
  if (!isDense(dims, strides) || providers::product(dims) != providers::product(to))
    return std::nullopt;
  return View{value, to, providers::denseStrides(to), {}};
}

View View::withAxis(size_t position) const {
  View result{value, dims, strides, {}};
  result.dims.insert(result.dims.begin() + static_cast<ptrdiff_t>(position), 1);
  result.strides.insert(result.strides.begin() + static_cast<ptrdiff_t>(position), 1);
  settleUnitStrides(result.dims, result.strides);
  return result;
}

View View::withRank(size_t rank) const {
  View result = *this;
  while (result.dims.size() < rank)
    result = result.withAxis(0);
  return result;
}

std::optional<View> View::collapsed(size_t count) const {
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

} // namespace dovetail::onednn
