// SPDX-License-Identifier: Apache-2.0
//
// Gather and scatter, and ops that choose elements by value: top-k, non-zero, unique, non-max
// suppression. How many elements the latter give is known only after running, so they bring new
// symbols.
#include "graph/shapes/ShapeRules.h"

#include <algorithm>
#include <cstdint>

namespace dovetail::graph {
namespace {

/// Of indices that are known, those at `part` of each `parts` in a row must point into `extent`; of
/// others it is known that they cannot point into nothing.
Status checkIndices(InferContext &c, const Extent &extent, int64_t part = 0, int64_t parts = 1) {
  std::optional<int64_t> picks = elementCount(c.shape(1)).staticValue();
  if (picks && *picks > 0)
    if (Status status = c.needAtLeast(extent, 1, "the axis that is indexed"); !status)
      return status;
  std::optional<int64_t> count = extent.staticValue();
  std::optional<std::vector<int64_t>> indices = c.integers(1);
  if (!indices)
    return Status::success();
  int64_t least = 0;
  for (size_t i = part; i < indices->size(); i += parts) {
    int64_t index = (*indices)[i];
    if (count && (index < -*count || index >= *count))
      return c.fail("index {} is outside [{}, {}]", index, -*count, *count - 1);
    least = std::max(least, index < 0 ? -std::max(index, -INT64_MAX) : index + (index < INT64_MAX));
  }
  return c.needAtLeast(extent, least, "the axis that is indexed");
}

Status gather(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 1); !status)
    return status;
  Expected<int64_t> axis = c.axis(c.integer("axis", 0), c.rank(0));
  if (!axis)
    return axis.takeError();
  const Shape &data = c.shape(0), &indices = c.shape(1);
  if (Status status = checkIndices(c, data[*axis]); !status)
    return status;
  Shape shape(data.begin(), data.begin() + *axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + *axis + 1, data.end());
  c.result(0, c.type(0), std::move(shape));
  std::optional<Elements> elements = data.size() == 1 ? c.elements(0) : std::nullopt;
  std::optional<std::vector<int64_t>> picks = elements ? c.integers(1) : std::nullopt;
  if (!picks || picks->size() > kMostTrackedElements)
    return Status::success();
  Elements chosen;
  int64_t count = int64_t(elements->size());
  for (int64_t pick : *picks) {
    if (pick < -count || pick >= count)
      return c.fail("index {} is out of range for {} elements", pick, count);
    chosen.push_back((*elements)[pick < 0 ? pick + count : pick]);
  }
  c.resultElements(0, std::move(chosen));
  return Status::success();
}

/// Of operand 1: one for each element along the axis, and beside it no more than there are
/// elements.
Status checkElementIndices(InferContext &c) {
  if (Status status = c.needRank(1, c.rank(0)); !status)
    return status;
  Expected<int64_t> axis = c.axis(c.integer("axis", 0), c.rank(0));
  if (!axis)
    return axis.takeError();
  if (Status status = checkIndices(c, c.shape(0)[*axis]); !status)
    return status;
  for (size_t d = 0; d < c.rank(0); ++d)
    if (int64_t(d) != *axis)
      if (Status status = c.needAtLeast(c.shape(0)[d], c.shape(1)[d],
                                        fmt::format("axis {} that is indexed", d));
          !status)
        return status;
  return Status::success();
}

Status gatherElements(InferContext &c) {
  if (Status status = checkElementIndices(c); !status)
    return status;
  c.result(0, c.type(0), c.shape(1));
  return Status::success();
}

Status gatherNd(InferContext &c) {
  if (Status status = c.needRankAtLeast(1, 1); !status)
    return status;
  const Shape &data = c.shape(0), &indices = c.shape(1);
  std::optional<int64_t> depth = indices.back().staticValue();
  int64_t batch = c.integer("batch_dims", 0);
  if (!depth)
    return c.fail("the last extent of the indices is not known, so neither is the rank");
  if (batch < 0 || batch >= int64_t(indices.size()) || *depth < 1 ||
      batch + *depth > int64_t(data.size()))
    return c.fail("indices of extents {} do not fit data of extents {}", shapeText(indices),
                  shapeText(data));
  for (int64_t d = 0; d < batch; ++d)
    if (Status status = c.needEqual(data[d], indices[d], "extents of batch dimensions"); !status)
      return status;
  for (int64_t part = 0; part < *depth; ++part)
    if (Status status = checkIndices(c, data[batch + part], part, *depth); !status)
      return status;
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + *depth, data.end());
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status scatter(InferContext &c) {
  c.result(0, c.type(0), c.shape(0));
  return Status::success();
}

/// Updates come with the extents `expected`.
Status checkUpdates(InferContext &c, const Shape &expected) {
  if (Status status = c.needRank(2, expected.size()); !status)
    return status;
  if (c.type(2) != c.type(0))
    return c.fail("updates {} with {}, expected one type", typeName(c.type(0)),
                  typeName(c.type(2)));
  for (size_t d = 0; d < expected.size(); ++d)
    if (Status status = c.needEqual(c.shape(2)[d], expected[d],
                                    fmt::format("axis {} of the updates and what is updated", d));
        !status)
      return status;
  return Status::success();
}

Status scatterElements(InferContext &c) {
  if (Status status = checkElementIndices(c); !status)
    return status;
  if (Status status = checkUpdates(c, c.shape(1)); !status)
    return status;
  return scatter(c);
}

Status scatterNd(InferContext &c) {
  if (Status status = c.needRankAtLeast(1, 1); !status)
    return status;
  const Shape &data = c.shape(0), &indices = c.shape(1);
  std::optional<int64_t> depth = indices.back().staticValue();
  if (!depth)
    return scatter(c);
  if (*depth > int64_t(data.size()))
    return c.fail("indices of extents {} do not fit data of extents {}", shapeText(indices),
                  shapeText(data));
  for (int64_t part = 0; part < *depth; ++part)
    if (Status status = checkIndices(c, data[part], part, *depth); !status)
      return status;
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + *depth, data.end());
  if (Status status = checkUpdates(c, expected); !status)
    return status;
  return scatter(c);
}

Status compress(InferContext &c) {
  if (!c.hasAttribute("axis")) {
    c.result(0, c.type(0), {c.fresh(0, 0)});
    return Status::success();
  }
  Expected<int64_t> axis = c.axis(c.integer("axis", 0), c.rank(0));
  if (!axis)
    return axis.takeError();
  Shape shape = c.shape(0);
  shape[*axis] = c.fresh(0, *axis);
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status topK(InferContext &c) {
  Expected<int64_t> axis = c.axis(c.integer("axis", -1), c.rank(0));
  if (!axis)
    return axis.takeError();
  std::optional<Elements> count = c.elements(1);
  Shape shape = c.shape(0);
  shape[*axis] = count && count->size() == 1 && (*count)[0] ? *(*count)[0] : c.fresh(0, *axis);
  c.result(1, DVT_I64, shape);
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status nonZero(InferContext &c) {
  c.result(0, DVT_I64, {int64_t(c.rank(0)), c.fresh(0, 1)});
  return Status::success();
}

Status unique(InferContext &c) {
  bool flat = !c.hasAttribute("axis");
  size_t axis = 0;
  if (!flat) {
    Expected<int64_t> checked = c.axis(c.integer("axis", 0), c.rank(0));
    if (!checked)
      return checked.takeError();
    axis = *checked;
  }
  Extent count = c.fresh(0, axis);
  Shape shape = flat ? Shape(1) : c.shape(0);
  Extent inputs = flat ? elementCount(c.shape(0)) : shape[axis];
  shape[axis] = count;
  c.result(0, c.type(0), std::move(shape));
  c.result(1, DVT_I64, {count});
  c.result(2, DVT_I64, {inputs});
  c.result(3, DVT_I64, {count});
  return Status::success();
}

Status nonMaxSuppression(InferContext &c) {
  for (size_t i : {0, 1})
    if (Status status = c.needRank(i, 3); !status)
      return status;
  c.result(0, DVT_I64, {c.fresh(0, 0), 3});
  return Status::success();
}

} // namespace

void addIndexingRules(ShapeRules &rules) {
  rules["gather"] = gather;
  rules["gather_elements"] = gatherElements;
  rules["gather_nd"] = gatherNd;
  rules["scatter_elements"] = scatterElements;
  rules["scatter_nd"] = scatterNd;
  rules["tensor_scatter"] = scatter;
  rules["compress"] = compress;
  rules["top_k"] = topK;
  rules["non_zero"] = nonZero;
  rules["unique"] = unique;
  rules["non_max_suppression"] = nonMaxSuppression;
}

} // namespace dovetail::graph
