// SPDX-License-Identifier: Apache-2.0
//
// Elements chosen by indices: gathers and scatters. Indices from outside are checked, counted from
// the back where negative, and refused where out of range.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace dovetail::reference::ops {

static Status placeIndex(const Invocation &op, int64_t &index, int64_t extent) {
  if (index < -extent || index >= extent)
    return op.bad("index ", index, " is outside [", -extent, ", ", extent - 1, "]");
  index += index < 0 ? extent : 0;
  return {};
}

Status gather(Invocation &op) {
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  std::vector<int64_t> indices;
  TRY(op.integerOperand(1, indices));
  int64_t extent = op.shape(0)[static_cast<size_t>(axis)];
  for (int64_t &index : indices)
    TRY(placeIndex(op, index, extent));
  Extents extents(op.shape(0).begin(), op.shape(0).begin() + axis);
  extents.insert(extents.end(), op.shape(1).begin(), op.shape(1).end());
  extents.insert(extents.end(), op.shape(0).begin() + axis + 1, op.shape(0).end());
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  int64_t outer = productOf(op.shape(0), 0, axis);
  size_t run = static_cast<size_t>(productOf(op.shape(0), axis + 1, op.rank(0))) *
               elementBytes(result->type);
  uint8_t *to = result->data;
  for (int64_t o = 0; o < outer && run; ++o)
    for (int64_t index : indices) {
      std::memcpy(to, op.in(0).data + static_cast<size_t>(o * extent + index) * run, run);
      to += run;
    }
  return {};
}

/// Indices of a gather or scatter by elements must have the operand's rank and no larger extents
/// but along the axis.
static Status needElementIndices(const Invocation &op, int64_t axis) {
  const Extents &data = op.shape(0), &indices = op.shape(1);
  bool fits = data.size() == indices.size();
  for (size_t i = 0; fits && i < data.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || indices[i] <= data[i];
  return fits ? Status()
              : op.bad("indices ", textOf(indices), " do not fit an operand ", textOf(data),
                       " along axis ", axis);
}

Status gatherElements(Invocation &op) {
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  TRY(needElementIndices(op, axis));
  std::vector<int64_t> indices;
  TRY(op.integerOperand(1, indices));
  for (int64_t &index : indices)
    TRY(placeIndex(op, index, op.shape(0)[static_cast<size_t>(axis)]));
  Tensor *result = nullptr;
  TRY(op.output(0, op.shape(1), result));
  Extents strides = rowMajorStrides(op.shape(0));
  int64_t along = strides[static_cast<size_t>(axis)];
  strides[static_cast<size_t>(axis)] = 0;
  walk<1>(op.shape(1), {strides}, [&](int64_t linear, const std::array<int64_t, 1> &at) {
    copyElement(op.in(0), at[0] + indices[static_cast<size_t>(linear)] * along, *result, linear);
  });
  return {};
}

/// Offset in the operand of each index tuple; `batch` leading dimensions are shared.
static Status tupleOffsets(const Invocation &op, int64_t batch, std::vector<int64_t> &offsets,
                           int64_t &depth) {
  TRY(op.needRank(1, 1));
  const Extents &data = op.shape(0), &extents = op.shape(1);
  depth = extents.back();
  if (batch < 0 || batch >= std::min(op.rank(0), op.rank(1)) || depth < 0 ||
      batch + depth > op.rank(0) ||
      !std::equal(data.begin(), data.begin() + batch, extents.begin()))
    return op.bad("index tuples ", textOf(extents), " with ", batch,
                  " batch dimensions do not fit ", textOf(data));
  std::vector<int64_t> indices;
  TRY(op.integerOperand(1, indices));
  Extents strides = rowMajorStrides(data);
  int64_t tuples = productOf(extents, 0, op.rank(1) - 1),
          perBatch = productOf(extents, batch, op.rank(1) - 1);
  int64_t batchStride = batch ? strides[static_cast<size_t>(batch - 1)] : 0;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t offset = batch ? t / perBatch * batchStride : 0;
    for (int64_t d = 0; d < depth; ++d) {
      int64_t &index = indices[static_cast<size_t>(t * depth + d)];
      auto dimension = static_cast<size_t>(batch + d);
      TRY(placeIndex(op, index, data[dimension]));
      offset += index * strides[dimension];
    }
    offsets.push_back(offset);
  }
  return {};
}

Status gatherNd(Invocation &op) {
  int64_t batch = op.integer("batch_dims", 0), depth = 0;
  std::vector<int64_t> offsets;
  TRY(tupleOffsets(op, batch, offsets, depth));
  Extents extents(op.shape(1).begin(), op.shape(1).end() - 1);
  extents.insert(extents.end(), op.shape(0).begin() + batch + depth, op.shape(0).end());
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  size_t bytes = elementBytes(result->type);
  size_t run = static_cast<size_t>(productOf(op.shape(0), batch + depth, op.rank(0))) * bytes;
  uint8_t *to = result->data;
  for (int64_t offset : offsets) {
    if (run)
      std::memcpy(to, op.in(0).data + static_cast<size_t>(offset) * bytes, run);
    to += run;
  }
  return {};
}

/// Copies operand 0 and combines element `update` of operand 2 into element `place`, for each pair
/// that `pairs` gives.
template <typename Pairs> static Status scatter(Invocation &op, Pairs pairs) {
  if (op.in(2).type != op.in(0).type)
    return op.bad("updates are of ", nameOf(op.in(2).type), "; they must be of ",
                  nameOf(op.in(0).type));
  std::string_view reduction = op.text("reduction", "none");
  if (reduction == "none") {
    Tensor *result = nullptr;
    TRY(op.output(0, op.shape(0), result));
    if (result->bytes())
      std::memcpy(result->data, op.in(0).data, result->bytes());
    pairs([&](int64_t place, int64_t update) { copyElement(op.in(2), update, *result, place); });
    return {};
  }
  if (reduction != "add" && reduction != "mul" && reduction != "max" && reduction != "min")
    return op.unsupported("reduction=", reduction, "; none, add, mul, max and min are known");
  return withNumbers(op.kind(0), [&](auto kind) {
    using W = decltype(kind);
    std::vector<W> values = op.numbers<W>(0), updates = op.numbers<W>(2);
    pairs([&](int64_t place, int64_t update) {
      W &into = values[static_cast<size_t>(place)], by = updates[static_cast<size_t>(update)];
      bool isNone = false;
      if constexpr (std::is_same_v<W, double>)
        isNone = std::isnan(by);
      if (reduction == "max" || reduction == "min")
        into = isNone ? by : reduction == "max" ? std::max(into, by) : std::min(into, by);
      else if constexpr (std::is_same_v<W, double>)
        into = reduction == "add" ? into + by : into * by;
      else if (reduction == "add")
        into = static_cast<W>(static_cast<uint64_t>(into) + static_cast<uint64_t>(by));
      else
        into = static_cast<W>(static_cast<uint64_t>(into) * static_cast<uint64_t>(by));
    });
    return op.store(0, op.shape(0), values);
  });
}

Status scatterElements(Invocation &op) {
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  TRY(needElementIndices(op, axis));
  if (op.shape(2) != op.shape(1))
    return op.bad("updates ", textOf(op.shape(2)), " for indices ", textOf(op.shape(1)));
  std::vector<int64_t> indices;
  TRY(op.integerOperand(1, indices));
  for (int64_t &index : indices)
    TRY(placeIndex(op, index, op.shape(0)[static_cast<size_t>(axis)]));
  Extents strides = rowMajorStrides(op.shape(0));
  int64_t along = strides[static_cast<size_t>(axis)];
  strides[static_cast<size_t>(axis)] = 0;
  return scatter(op, [&](auto combine) {
    walk<1>(op.shape(1), {strides}, [&](int64_t linear, const std::array<int64_t, 1> &at) {
      combine(at[0] + indices[static_cast<size_t>(linear)] * along, linear);
    });
  });
}

Status scatterNd(Invocation &op) {
  int64_t depth = 0;
  std::vector<int64_t> offsets;
  TRY(op.needRank(0, 1));
  TRY(tupleOffsets(op, 0, offsets, depth));
  Extents expected(op.shape(1).begin(), op.shape(1).end() - 1);
  expected.insert(expected.end(), op.shape(0).begin() + depth, op.shape(0).end());
  if (op.shape(2) != expected)
    return op.bad("updates ", textOf(op.shape(2)), "; ", textOf(expected), " is needed");
  int64_t run = productOf(op.shape(0), depth, op.rank(0));
  return scatter(op, [&](auto combine) {
    for (size_t t = 0; t < offsets.size(); ++t)
      for (int64_t i = 0; i < run; ++i)
        combine(offsets[t] + i, static_cast<int64_t>(t) * run + i);
  });
}

Status tensorScatter(Invocation &op) {
  int64_t axis = op.integer("axis", -2);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  auto along = static_cast<size_t>(axis);
  std::string_view mode = op.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return op.unsupported("mode=", mode, "; linear and circular are known");
  const Extents &cache = op.shape(0), &update = op.shape(1);
  Extents expected = cache;
  if (update.size() == cache.size())
    expected[along] = update[along];
  if (axis == 0 || update != expected || update[along] > cache[along] ||
      op.in(1).type != op.in(0).type)
    return op.bad("an update ", textOf(update), " of a cache ", textOf(cache), " along axis ",
                  axis);
  std::vector<int64_t> starts(static_cast<size_t>(cache[0]), 0);
  if (op.has(2))
    TRY(op.integerOperand(2, starts));
  if (static_cast<int64_t>(starts.size()) != cache[0])
    return op.bad(starts.size(), " write indices for a batch of ", cache[0]);
  for (int64_t start : starts)
    if (start < 0 || start >= std::max<int64_t>(cache[along], 1) ||
        (mode == "linear" && start + update[along] > cache[along]))
      return op.bad("write index ", start, " in a cache of ", cache[along]);
  Tensor *result = nullptr;
  TRY(op.output(0, cache, result));
  if (result->bytes())
    std::memcpy(result->data, op.in(0).data, result->bytes());
  Extents strides = rowMajorStrides(cache);
  forEachIndex(update, [&](int64_t linear, const Extents &index) {
    int64_t place = 0;
    for (size_t i = 0; i < index.size(); ++i)
      place += (i == along ? (index[i] + starts[static_cast<size_t>(index[0])]) % cache[along]
                           : index[i]) *
               strides[i];
    copyElement(op.in(1), linear, *result, place);
  });
  return {};
}

} // namespace dovetail::reference::ops
