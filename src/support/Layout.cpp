// SPDX-License-Identifier: Apache-2.0
//
// Layout texts, the address of an element under a layout, and the plain conversion between two
// layouts.
#include "support/Layout.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "support/Problem.h"

namespace dovetail {

namespace {

constexpr int64_t kMaxBlock = 1 << 16;

bool isIdentity(const std::vector<unsigned> &order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != i)
      return false;
  return true;
}

int64_t ceilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// For each logical dimension the offset that each of its indices adds: offsets are separable.
std::vector<std::vector<int64_t>> offsetTables(const Layout &layout,
                                               const std::vector<int64_t> &extents) {
  unsigned rank = extents.size();
  std::vector<int64_t> origin(rank, 0);
  std::vector<std::vector<int64_t>> tables(rank);
  for (unsigned d = 0; d < rank; ++d) {
    tables[d].resize(extents[d]);
    for (int64_t i = 0; i < extents[d]; ++i) {
      origin[d] = i;
      tables[d][i] = layout.offset(extents, origin);
    }
    origin[d] = 0;
  }
  return tables;
}

template <typename T>
void copyElements(const std::vector<int64_t> &extents,
                  const std::vector<std::vector<int64_t>> &from,
                  const std::vector<std::vector<int64_t>> &to, const T *source, T *destination) {
  size_t rank = extents.size();
  if (rank == 0) {
    *destination = *source;
    return;
  }
  std::vector<int64_t> index(rank, 0);
  const auto &innerFrom = from[rank - 1], &innerTo = to[rank - 1];
  for (;;) {
    int64_t sourceBase = 0, destinationBase = 0;
    for (size_t d = 0; d + 1 < rank; ++d) {
      sourceBase += from[d][index[d]];
      destinationBase += to[d][index[d]];
    }
    for (int64_t i = 0; i < extents[rank - 1]; ++i)
      destination[destinationBase + innerTo[i]] = source[sourceBase + innerFrom[i]];
    size_t d = rank - 1;
    while (d > 0 && ++index[d - 1] == extents[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

} // namespace

Expected<Layout> Layout::parse(std::string_view text) {
  if (text.empty()) // most are, and the runtime asks often
    return Layout();
  auto bad = [&](const char *why) {
    return badInput("'{}' is not a layout: {}; expected dimensions in physical order and inner "
                    "blocks, such as acdb or aBcd16b",
                    text, why);
  };
  Layout layout;
  size_t position = 0;
  std::vector<bool> upper(26, false);
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (; position < text.size() && letter(text[position]); ++position) {
    bool isUpper = text[position] <= 'Z';
    unsigned dimension = text[position] - (isUpper ? 'A' : 'a');
    layout.order.push_back(dimension);
    upper[dimension] = isUpper;
  }
  size_t rank = layout.order.size();
  std::vector<bool> seen(26, false);
  for (unsigned dimension : layout.order) {
    if (dimension >= rank || seen[dimension])
      return bad("each of the first letters must occur once");
    seen[dimension] = true;
  }
  std::vector<int64_t> product(26, 1);
  while (position < text.size()) {
    int64_t size = 0;
    const char *end = text.data() + text.size();
    auto [next, error] = std::from_chars(text.data() + position, end, size);
    if (error != std::errc() || size < 1 || size > kMaxBlock || next == end || *next < 'a' ||
        *next > 'z')
      return bad("a block is a size from 1 to 65536 and a lower-case letter");
    unsigned dimension = *next - 'a';
    if (dimension >= rank || !upper[dimension])
      return bad("a blocked dimension is in upper case");
    product[dimension] *= size;
    if (product[dimension] > kMaxBlock)
      return bad("blocks of one dimension have a product above 65536");
    layout.blocks.push_back({dimension, size});
    position = next - text.data() + 1;
  }
  for (unsigned dimension = 0; dimension < rank; ++dimension)
    if (upper[dimension] && std::none_of(layout.blocks.begin(), layout.blocks.end(),
                                         [&](const Block &b) { return b.dimension == dimension; }))
      return bad("an upper-case dimension has a block");
  if (layout.blocks.empty() && isIdentity(layout.order))
    layout.order.clear();
  return layout;
}

std::string Layout::text() const {
  if (isRowMajor())
    return {};
  std::vector<int64_t> block = blockOf(order.size());
  std::string out;
  for (unsigned dimension : order) {
    bool blocked = std::any_of(blocks.begin(), blocks.end(),
                               [&](const Block &b) { return b.dimension == dimension; });
    out += char((blocked ? 'A' : 'a') + dimension);
  }
  for (const Block &b : blocks)
    out += std::to_string(b.size) + char('a' + b.dimension);
  return out;
}

bool Layout::isRowMajor() const { return blocks.empty() && isIdentity(order); }

std::vector<int64_t> Layout::blockOf(unsigned rank) const {
  std::vector<int64_t> result(rank, 1);
  for (const Block &b : blocks)
    if (b.dimension < rank)
      result[b.dimension] *= b.size;
  return result;
}

int64_t Layout::physicalElements(const std::vector<int64_t> &extents) const {
  std::vector<int64_t> block = blockOf(extents.size());
  int64_t count = 1;
  for (size_t d = 0; d < extents.size(); ++d)
    count *= ceilDivide(extents[d], block[d]) * block[d];
  return count;
}

Extent Layout::physicalElements(const std::vector<Extent> &extents) const {
  std::vector<int64_t> block = blockOf(extents.size());
  Extent count(1);
  for (size_t d = 0; d < extents.size(); ++d)
    count =
        count * (block[d] == 1 ? extents[d]
                               : Extent::ceilDiv(extents[d], Extent(block[d])) * Extent(block[d]));
  return count;
}

int64_t Layout::offset(const std::vector<int64_t> &extents,
                       const std::vector<int64_t> &index) const {
  unsigned rank = extents.size();
  assert(order.empty() || order.size() == rank);
  std::vector<int64_t> block = blockOf(rank), inner(rank);
  int64_t result = 0;
  for (unsigned i = 0; i < rank; ++i) {
    unsigned d = order.empty() ? i : order[i];
    result = result * ceilDivide(extents[d], block[d]) + index[d] / block[d];
  }
  std::vector<int64_t> remaining = block;
  for (unsigned d = 0; d < rank; ++d)
    inner[d] = index[d] % block[d];
  for (const Block &b : blocks) {
    remaining[b.dimension] /= b.size;
    result = result * b.size + inner[b.dimension] / remaining[b.dimension];
    inner[b.dimension] %= remaining[b.dimension];
  }
  return result;
}

std::string canonicalLayout(const std::string &text, const std::vector<Extent> &extents) {
  auto layout = Layout::parse(text);
  if (!layout || layout->isRowMajor() || layout->order.size() != extents.size())
    return text;
  auto &[order, blocks] = *layout;
  // An outermost block that holds all of its dimension stands where the next dimension would.
  while (!blocks.empty()) {
    auto [dimension, size] = blocks.front();
    if (extents[dimension].staticValue() != size ||
        layout->blockOf(extents.size())[dimension] != size)
      break;
    blocks.erase(blocks.begin());
    std::erase(order, dimension);
    order.push_back(dimension);
  }
  const std::vector<int64_t> block = layout->blockOf(extents.size());
  std::vector<unsigned> loose; // whose index among outer blocks is always 0
  for (unsigned d = 0; d < extents.size(); ++d)
    if (auto extent = extents[d].staticValue(); extent && *extent > 0 && *extent <= block[d])
      loose.push_back(d);
  for (unsigned d : loose)
    std::erase(order, d);
  for (unsigned d : loose)
    order.insert(std::find_if(order.begin(), order.end(), [d](unsigned o) { return o > d; }), d);
  return layout->text();
}

bool isSameLayout(const std::string &one, const std::string &other,
                  const std::vector<Extent> &extents) {
  return one == other || canonicalLayout(one, extents) == canonicalLayout(other, extents);
}

void reorder(dvt_type type, const std::vector<int64_t> &extents, const Layout &from,
             const void *source, const Layout &to, void *destination) {
  uint64_t bytes = bytesOf(type, to.physicalElements(extents));
  if (from == to) {
    if (bytes)
      std::memcpy(destination, source, bytes);
    return;
  }
  assert(typeBits(type) >= 8 && "types of less than a byte have no layouts but row-major");
  if (!to.blocks.empty())
    std::memset(destination, 0, bytes);
  if (std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent == 0; }))
    return;
  auto fromTables = offsetTables(from, extents), toTables = offsetTables(to, extents);
  switch (typeBits(type)) {
  case 8:
    return copyElements(extents, fromTables, toTables, static_cast<const uint8_t *>(source),
                        static_cast<uint8_t *>(destination));
  case 16:
    return copyElements(extents, fromTables, toTables, static_cast<const uint16_t *>(source),
                        static_cast<uint16_t *>(destination));
  case 32:
    return copyElements(extents, fromTables, toTables, static_cast<const uint32_t *>(source),
                        static_cast<uint32_t *>(destination));
  case 64:
    return copyElements(extents, fromTables, toTables, static_cast<const uint64_t *>(source),
                        static_cast<uint64_t *>(destination));
  default:
    return;
  }
}

} // namespace dovetail
