// SPDX-License-Identifier: Apache-2.0
//
// Ops whose results are chosen by the values of elements; the extents of most of them are known
// only afterwards.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dovetail::reference::ops {

Status nonZero(Invocation &op) {
  std::vector<double> values = op.numbers<double>(0);
  std::vector<Extents> found;
  forEachIndex(op.shape(0), [&](int64_t linear, const Extents &index) {
    if (values[static_cast<size_t>(linear)] != 0)
      found.push_back(index);
  });
  std::vector<int64_t> result;
  for (size_t d = 0; d < op.shape(0).size(); ++d)
    for (const Extents &index : found)
      result.push_back(index[d]);
  return op.store(0, {op.rank(0), static_cast<int64_t>(found.size())}, result);
}

Status compress(Invocation &op) {
  if (op.in(1).type != DVT_BOOL || op.rank(1) != 1)
    return op.bad("the condition must be a vector of bool");
  Extents extents = op.shape(0);
  if (!op.hasAttribute("axis"))
    extents = {op.in(0).count()};
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, static_cast<int64_t>(extents.size())));
  auto along = static_cast<size_t>(axis);
  int64_t length = extents[along], outer = productOf(extents, 0, axis);
  int64_t inner = productOf(extents, axis + 1, static_cast<int64_t>(extents.size()));
  std::vector<int64_t> condition = op.numbers<int64_t>(1), taken;
  if (static_cast<int64_t>(condition.size()) > length)
    return op.bad("a condition of ", condition.size(), " elements for ", length);
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i])
      taken.push_back(static_cast<int64_t>(i));
  extents[along] = static_cast<int64_t>(taken.size());
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : taken)
      for (int64_t i = 0; i < inner; ++i)
        copyElement(op.in(0), (o * length + index) * inner + i, *result, to++);
  return {};
}

Status topK(Invocation &op) {
  int64_t axis = op.integer("axis", -1), k = 0;
  TRY(op.normalizeAxis(axis, op.rank(0)));
  TRY(op.integerScalar(1, k));
  Extents extents = op.shape(0);
  int64_t length = extents[static_cast<size_t>(axis)];
  if (k < 0 || k > length)
    return op.bad("k is ", k, " for an axis of ", length);
  extents[static_cast<size_t>(axis)] = k;
  bool largest = op.integer("largest", 1);
  int64_t outer = productOf(extents, 0, axis), inner = productOf(extents, axis + 1, op.rank(0));
  return withNumbers(op.kind(0), [&](auto zero) {
    using W = decltype(zero);
    std::vector<W> values = op.numbers<W>(0), chosen(static_cast<size_t>(outer * k * inner));
    std::vector<int64_t> indices(chosen.size()), order(static_cast<size_t>(length));
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        auto at = [&](int64_t index) {
          return values[static_cast<size_t>((o * length + index) * inner + i)];
        };
        std::iota(order.begin(), order.end(), 0);
        // NaN counts as the largest; of equal elements the first comes first.
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          W x = largest ? at(b) : at(a), y = largest ? at(a) : at(b);
          return x == x && y == y ? x < y : x == x && y != y;
        });
        for (int64_t j = 0; j < k; ++j) {
          auto to = static_cast<size_t>((o * k + j) * inner + i);
          indices[to] = order[static_cast<size_t>(j)];
          chosen[to] = at(indices[to]);
        }
      }
    TRY(op.store(0, extents, chosen));
    return op.store(1, extents, indices);
  });
}

Status unique(Invocation &op) {
  // Slices along the axis, or single elements of the flattened operand.
  bool flat = !op.hasAttribute("axis");
  Extents extents = flat ? Extents{op.in(0).count()} : op.shape(0);
  auto rank = static_cast<int64_t>(extents.size());
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, rank));
  auto along = static_cast<size_t>(axis);
  int64_t length = extents[along], outer = productOf(extents, 0, axis),
          inner = productOf(extents, axis + 1, rank);
  std::vector<double> values = op.numbers<double>(0);
  std::vector<int64_t> whole = op.numbers<int64_t>(0);
  bool real = op.kind(0) == NumberKind::Real, isUnsigned = op.kind(0) == NumberKind::Unsigned;
  auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        auto x = static_cast<size_t>((o * length + a) * inner + i),
             y = static_cast<size_t>((o * length + b) * inner + i);
        // Numbers that are none are one, behind all others.
        bool noneX = real && std::isnan(values[x]), noneY = real && std::isnan(values[y]);
        bool less = real         ? values[x] < values[y] || (noneY && !noneX)
                    : isUnsigned ? static_cast<uint64_t>(whole[x]) < static_cast<uint64_t>(whole[y])
                                 : whole[x] < whole[y];
        bool same = real ? values[x] == values[y] || (noneX && noneY) : whole[x] == whole[y];
        if (!same)
          return less ? -1 : 1;
      }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(length)), first, counts,
      inverse(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  for (size_t i = 0; i < order.size(); ++i) {
    if (!i || compare(order[i - 1], order[i]) != 0) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
  }
  if (!op.integer("sorted", 1)) {
    std::vector<int64_t> rank(first.size()), place(first.size());
    std::iota(rank.begin(), rank.end(), 0);
    std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) {
      return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
    std::vector<int64_t> oldFirst = first, oldCounts = counts;
    for (size_t i = 0; i < rank.size(); ++i) {
      first[i] = oldFirst[static_cast<size_t>(rank[i])];
      counts[i] = oldCounts[static_cast<size_t>(rank[i])];
      place[static_cast<size_t>(rank[i])] = static_cast<int64_t>(i);
    }
    for (int64_t &index : inverse)
      index = place[static_cast<size_t>(index)];
  }
  auto count = static_cast<int64_t>(first.size());
  if (op.wants(0)) {
    extents[along] = count;
    Tensor *result = nullptr;
    TRY(op.output(0, extents, result));
    int64_t to = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t index : first)
        for (int64_t i = 0; i < inner; ++i)
          copyElement(op.in(0), (o * length + index) * inner + i, *result, to++);
  }
  TRY(op.store(1, {count}, first));
  TRY(op.store(2, {length}, inverse));
  return op.store(3, {count}, counts);
}

namespace {

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box boxAt(const double *four, bool centred) {
  if (centred)
    return {four[1] - four[3] / 2, four[0] - four[2] / 2, four[1] + four[3] / 2,
            four[0] + four[2] / 2};
  return {std::min(four[0], four[2]), std::min(four[1], four[3]), std::max(four[0], four[2]),
          std::max(four[1], four[3])};
}

double overlapOf(const Box &a, const Box &b) {
  double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0) || !(a.area() > 0) || !(b.area() > 0))
    return 0;
  return height * width / (a.area() + b.area() - height * width);
}

} // namespace

Status nonMaxSuppression(Invocation &op) {
  const Extents &boxes = op.shape(0), &scores = op.shape(1);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || scores[0] != boxes[0] ||
      scores[2] != boxes[1])
    return op.bad("boxes ", textOf(boxes), " and scores ", textOf(scores),
                  "; [N,M,4] and [N,C,M] are needed");
  int64_t most = 0;
  double overlapLimit = 0, scoreLimit = 0;
  if (op.has(2))
    TRY(op.integerScalar(2, most));
  if (op.has(3))
    TRY(op.realScalar(3, overlapLimit));
  bool limited = op.has(4) && op.in(4).count();
  if (limited)
    TRY(op.realScalar(4, scoreLimit));
  bool centred = op.integer("center_point_box", 0);
  std::vector<double> four = op.numbers<double>(0), score = op.numbers<double>(1);
  std::vector<int64_t> selected;
  for (int64_t n = 0; n < scores[0]; ++n)
    for (int64_t c = 0; c < scores[1]; ++c) {
      const double *line = score.data() + (n * scores[1] + c) * scores[2];
      std::vector<int64_t> order, kept;
      for (int64_t m = 0; m < scores[2]; ++m)
        if (!limited || line[m] > scoreLimit)
          order.push_back(m);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return line[a] > line[b]; });
      for (int64_t m : order) {
        if (static_cast<int64_t>(kept.size()) >= most)
          break;
        auto box = [&](int64_t index) {
          return boxAt(four.data() + (n * scores[2] + index) * 4, centred);
        };
        bool hidden = std::any_of(kept.begin(), kept.end(), [&](int64_t other) {
          return overlapOf(box(m), box(other)) > overlapLimit;
        });
        if (hidden)
          continue;
        kept.push_back(m);
        selected.insert(selected.end(), {n, c, m});
      }
    }
  return op.store(0, {static_cast<int64_t>(selected.size() / 3), 3}, selected);
}

} // namespace dovetail::reference::ops
