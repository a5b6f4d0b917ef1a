// SPDX-License-Identifier: Apache-2.0
//
// Offsets are computed one element at a time, from the definition: the outer index of every
// dimension in physical order, then the inner blocks.
#include "PhysicalLayout.h"

#include <cctype>
#include <cstring>

namespace dovetail::reference {

Status PhysicalLayout::parse(std::string_view text, size_t rank, PhysicalLayout &layout) {
  layout = {};
  auto fail = [&] {
    return Status(DVT_UNSUPPORTED,
                  join("reference: \"", text, "\" is not a layout of rank ", rank));
  };
  if (rank > 26)
    return fail();
  layout.blockOf.assign(rank, 1);
  if (text.empty()) {
    for (size_t i = 0; i < rank; ++i)
      layout.order.push_back(i);
    return {};
  }
  std::vector<bool> seen(rank), blocked(rank);
  size_t at = 0;
  for (; at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])); ++at) {
    size_t dimension =
        static_cast<size_t>(std::tolower(static_cast<unsigned char>(text[at])) - 'a');
    if (dimension >= rank || seen[dimension])
      return fail();
    seen[dimension] = true;
    blocked[dimension] = std::isupper(static_cast<unsigned char>(text[at]));
    layout.order.push_back(dimension);
  }
  while (at < text.size()) {
    int64_t size = 0;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && size < 1 << 20;
         ++at)
      size = size * 10 + (text[at] - '0');
    if (at == text.size() || size < 1 || text[at] < 'a' ||
        static_cast<size_t>(text[at] - 'a') >= rank)
      return fail();
    size_t dimension = static_cast<size_t>(text[at++] - 'a');
    layout.blockOf[dimension] *= size;
    if (!blocked[dimension] || layout.blockOf[dimension] > 1 << 20)
      return fail();
    layout.blocks.push_back({dimension, size});
  }
  for (size_t i = 0; i < rank; ++i)
    if (!seen[i] || blocked[i] != (layout.blockOf[i] > 1))
      return fail();
  return {};
}

std::optional<int64_t> PhysicalLayout::physicalCount(const Extents &extents) const {
  Extents rounded = extents;
  for (size_t i = 0; i < rounded.size(); ++i)
    rounded[i] = (rounded[i] + blockOf[i] - 1) / blockOf[i] * blockOf[i];
  return elementCount(rounded);
}

int64_t PhysicalLayout::offset(const Extents &extents, Extents index) const {
  int64_t inner = 0, innerSize = 1;
  // Innermost block first: each takes the low part of what is left of its dimension's index.
  for (size_t i = blocks.size(); i-- > 0;) {
    int64_t &left = index[blocks[i].dimension];
    inner += left % blocks[i].size * innerSize;
    left /= blocks[i].size;
    innerSize *= blocks[i].size;
  }
  int64_t outer = 0;
  for (size_t dimension : order)
    outer = outer * ((extents[dimension] + blockOf[dimension] - 1) / blockOf[dimension]) +
            index[dimension];
  return outer * innerSize + inner;
}

/// Calls body(linear, index) for each index in row-major order.
template <typename Body> static void forEachIndex(const Extents &extents, Body body) {
  Extents index(extents.size(), 0);
  for (int64_t linear = 0, count = elementCount(extents).value_or(0); linear < count; ++linear) {
    body(linear, index);
    for (size_t i = extents.size(); i-- > 0;) {
      if (++index[i] < extents[i])
        break;
      index[i] = 0;
    }
  }
}

void PhysicalLayout::read(const void *physical, Tensor &tensor) const {
  size_t bytes = elementBytes(tensor.type);
  auto *from = static_cast<const uint8_t *>(physical);
  forEachIndex(tensor.extents, [&](int64_t linear, const Extents &index) {
    std::memcpy(tensor.data + static_cast<size_t>(linear) * bytes,
                from + static_cast<size_t>(offset(tensor.extents, index)) * bytes, bytes);
  });
}

void PhysicalLayout::write(const Tensor &tensor, void *physical) const {
  size_t bytes = elementBytes(tensor.type);
  auto *to = static_cast<uint8_t *>(physical);
  std::memset(to, 0, static_cast<size_t>(physicalCount(tensor.extents).value_or(0)) * bytes);
  forEachIndex(tensor.extents, [&](int64_t linear, const Extents &index) {
    std::memcpy(to + static_cast<size_t>(offset(tensor.extents, index)) * bytes,
                tensor.data + static_cast<size_t>(linear) * bytes, bytes);
  });
}

} // namespace dovetail::reference
