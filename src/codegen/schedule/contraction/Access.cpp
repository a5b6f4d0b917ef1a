// SPDX-License-Identifier: Apache-2.0
//
// Strides from extents and layouts; see the header.
#include "codegen/schedule/contraction/Access.h"

#include <algorithm>
#include <cstring>

namespace dovetail::codegen {

Product Product::of(const dvt_extent &extent) {
  Product product;
  if (isStaticExtent(extent))
    product.constant = extent.value;
  else
    product.factors.push_back(extent);
  return product;
}

static const char *symbolOf(const dvt_extent &extent) { return extent.symbol ? extent.symbol : ""; }

Product operator*(const Product &a, const Product &b) {
  Product product;
  product.constant = a.constant * b.constant;
  if (product.constant == 0)
    return product;
  product.factors = a.factors;
  product.factors.insert(product.factors.end(), b.factors.begin(), b.factors.end());
  std::stable_sort(product.factors.begin(), product.factors.end(),
                   [](const dvt_extent &x, const dvt_extent &y) {
                     return std::strcmp(symbolOf(x), symbolOf(y)) < 0;
                   });
  return product;
}

bool operator==(const Product &a, const Product &b) {
  return a.constant == b.constant && std::equal(a.factors.begin(), a.factors.end(),
                                                b.factors.begin(), b.factors.end(), sameExtent);
}

int64_t Product::upperBound() const {
  int64_t bound = constant;
  for (const dvt_extent &factor : factors)
    if (__builtin_mul_overflow(bound, std::max<int64_t>(factor.max, 0), &bound))
      return INT64_MAX;
  return bound;
}

double Product::typical(int64_t typical) const {
  double number = double(constant);
  for (const dvt_extent &factor : factors)
    number *= double(std::clamp(typical, factor.min, std::max(factor.min, factor.max)));
  return number;
}

bool Access::collapses(unsigned first, unsigned last,
                       const std::vector<dvt_extent> &extents) const {
  if (blockedDimension >= int(first) && blockedDimension <= int(last))
    return first == last;
  // The stride of a dimension of 1 means nothing: its neighbours are compared with each other.
  unsigned next = last;
  for (unsigned d = last; d-- > first;) {
    if (isOne(extents[d]))
      continue;
    if (!(strides[d] == strides[next] * Product::of(extents[next])))
      return false;
    next = d;
  }
  return true;
}

std::optional<Access> denseAccess(const dvt_value &value, const Layout &layout) {
  Access access;
  access.strides.resize(value.rank);
  if (layout.blocks.size() > 1 || (!layout.order.empty() && layout.order.size() != value.rank))
    return std::nullopt;
  Product stride = 1;
  if (!layout.blocks.empty()) {
    const Layout::Block &block = layout.blocks[0];
    if (block.dimension >= value.rank || !isStaticExtent(value.extents[block.dimension]))
      return std::nullopt;
    access.blockedDimension = int(block.dimension);
    access.block = block.size;
    stride = block.size;
  }
  for (unsigned i = value.rank; i-- > 0;) {
    unsigned dimension = layout.order.empty() ? i : layout.order[i];
    const dvt_extent &extent = value.extents[dimension];
    if (int(dimension) == access.blockedDimension) {
      access.blockStride = stride;
      access.strides[dimension] = 1;
      stride = stride * Product((extent.value + access.block - 1) / access.block);
    } else {
      access.strides[dimension] = stride;
      stride = stride * Product::of(extent);
    }
  }
  return access;
}

std::optional<Access> broadcastAccess(const dvt_value &value, const Layout &layout,
                                      const std::vector<dvt_extent> &extents) {
  if (value.rank > extents.size())
    return std::nullopt;
  std::optional<Access> own = denseAccess(value, layout);
  if (!own)
    return std::nullopt;
  Access access;
  unsigned lead = extents.size() - value.rank;
  access.strides.assign(extents.size(), Product(0));
  for (unsigned i = 0; i < value.rank; ++i) {
    if (sameExtent(value.extents[i], extents[lead + i]))
      access.strides[lead + i] = own->strides[i];
    else if (!isOne(value.extents[i]))
      return std::nullopt;
    else if (own->blockedDimension == int(i))
      return std::nullopt;
  }
  if (own->blockedDimension >= 0) {
    access.blockedDimension = own->blockedDimension + int(lead);
    access.block = own->block;
    access.blockStride = own->blockStride;
  }
  return access;
}

std::vector<dvt_extent> extentsOf(const dvt_value &value) {
  return std::vector<dvt_extent>(value.extents, value.extents + value.rank);
}

dvt_extent staticExtent(int64_t value) { return {value, nullptr, value, value, 1}; }

} // namespace dovetail::codegen
