// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting and strided copies.
#include "Indexing.h"

#include <algorithm>

namespace dovetail::reference {

Status broadcastExtents(const Invocation &op, const std::vector<Extents> &operands,
                        Extents &result) {
  result.clear();
  for (const Extents &operand : operands)
    result.resize(std::max(result.size(), operand.size()), 1);
  std::fill(result.begin(), result.end(), 1);
  for (const Extents &operand : operands)
    for (size_t i = 0; i < operand.size(); ++i) {
      int64_t &extent = result[result.size() - operand.size() + i];
      if (operand[i] == extent || operand[i] == 1)
        continue;
      if (extent != 1)
        return op.bad("extents ", textOf(operand), " do not broadcast with ", textOf(result));
      extent = operand[i];
    }
  return {};
}

bool broadcastsTo(const Extents &from, const Extents &to) {
  if (from.size() > to.size())
    return false;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[to.size() - from.size() + i])
      return false;
  return true;
}

Extents broadcastStrides(const Extents &from, const Extents &to) {
  Extents dense = rowMajorStrides(from), strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1)
      strides[to.size() - from.size() + i] = dense[i];
  return strides;
}

void gatherStrided(const Tensor &from, int64_t base, const Extents &strides, Tensor &to) {
  walk<1>(to.extents, {strides}, [&](int64_t linear, const std::array<int64_t, 1> &offset) {
    copyElement(from, base + offset[0], to, linear);
  });
}

int64_t productOf(const Extents &extents, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i)
    product *= extents[static_cast<size_t>(i)];
  return product;
}

} // namespace dovetail::reference
