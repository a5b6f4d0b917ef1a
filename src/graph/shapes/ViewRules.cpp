// SPDX-License-Identifier: Apache-2.0
//
// Ops that keep elements and their order. Small integer tensors keep their tracked elements.
#include <algorithm>

#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

Status viewed(InferContext &c, Shape shape) {
  // Elements are counted by extents: of those that are not known nothing is.
  const bool isStatic = std::all_of(shape.begin(), shape.end(),
                                    [](const Extent &extent) { return extent.isStatic(); });
  c.result(0, c.type(0), std::move(shape));
  if (std::optional<Elements> elements = isStatic ? c.elements(0) : std::nullopt)
    c.resultElements(0, std::move(*elements));
  return Status::success();
}

Status identity(InferContext &c) { return viewed(c, c.shape(0)); }

Status dropout(InferContext &c) {
  c.result(1, DVT_BOOL, c.shape(0));
  return viewed(c, c.shape(0));
}

/// The extent that makes the products of `from` and `known` equal. Factors that both have cancel
/// first, so that a symbolic extent survives as it is.
Extent remainingExtent(Shape from, Shape known) {
  for (Extent &extent : known)
    for (Extent &candidate : from)
      if (candidate == extent && candidate != Extent(0)) {
        candidate = extent = Extent(1);
        break;
      }
  Extent total = elementCount(from), part = elementCount(known);
  if (std::optional<Extent> exact = Extent::exactDiv(total, part))
    return *exact;
  return part == Extent(0) ? Extent(0) : Extent::floorDiv(total, part);
}

Status reshape(InferContext &c) {
  if (Status status = c.needRank(1, 1); !status)
    return status;
  const Shape &from = c.shape(0);
  std::optional<Elements> wanted = c.elements(1);
  if (!wanted) {
    std::optional<int64_t> rank = c.shape(1)[0].staticValue();
    if (!rank || *rank > 32)
      return c.fail("the rank of the result is not known when compiling");
    wanted = Elements(*rank);
  }
  Shape shape, known;
  std::optional<size_t> open;
  for (size_t d = 0; d < wanted->size(); ++d) {
    const std::optional<Extent> &element = (*wanted)[d];
    std::optional<int64_t> number = element ? element->staticValue() : std::nullopt;
    if (!element) {
      shape.push_back(c.fresh(0, d));
    } else if (number == -1) {
      if (open)
        return c.fail("the new shape has -1 twice");
      open = d;
      shape.push_back(1);
      continue;
    } else if (number == 0 && !c.integer("allowzero", 0)) {
      if (d >= from.size())
        return c.fail("the new shape keeps dimension {} of a tensor of extents {}", d,
                      shapeText(from));
      shape.push_back(from[d]);
    } else {
      if (number && *number < 0)
        return c.fail("the new shape has the extent {}", *number);
      shape.push_back(*element);
    }
    known.push_back(shape.back());
  }
  std::optional<int64_t> before = elementCount(from).staticValue(),
                         part = elementCount(known).staticValue();
  if (open) {
    if (before && part && (*part == 0 || *before % *part))
      return c.fail("cannot reshape the extents {} to {} with -1 at {}", shapeText(from),
                    shapeText(shape), *open);
    shape[*open] = remainingExtent(from, known);
  } else if (before && part && *before != *part) {
    return c.fail("cannot reshape the extents {} to {}", shapeText(from), shapeText(shape));
  }
  return viewed(c, std::move(shape));
}

Status squeeze(InferContext &c) {
  const Shape &from = c.shape(0);
  Shape shape;
  if (!c.has(1)) {
    for (const Extent &extent : from) {
      // Without axes, symbolic extents are taken to be other than 1.
      if (extent != Extent(1))
        shape.push_back(extent);
    }
    return viewed(c, std::move(shape));
  }
  std::optional<std::vector<int64_t>> given = c.integers(1);
  if (!given)
    return c.fail("axes are no constant, so that the rank of the result is not known");
  Expected<std::vector<int64_t>> axes = c.axes(*given, from.size());
  if (!axes)
    return axes.takeError();
  std::vector<bool> gone(from.size());
  for (int64_t axis : *axes) {
    gone[axis] = true;
    if (Status status = c.needEqual(from[axis], 1, "extent of a squeezed dimension"); !status)
      return status;
  }
  for (size_t d = 0; d < from.size(); ++d)
    if (!gone[d])
      shape.push_back(from[d]);
  return viewed(c, std::move(shape));
}

Status unsqueeze(InferContext &c) {
  std::optional<std::vector<int64_t>> given = c.integers(1);
  if (!given)
    return c.fail("axes are no constant, which is not supported");
  size_t rank = c.rank(0) + given->size();
  Expected<std::vector<int64_t>> axes = c.axes(*given, rank);
  if (!axes)
    return axes.takeError();
  std::vector<bool> added(rank);
  for (int64_t axis : *axes)
    added[axis] = true;
  Shape shape;
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d)
    shape.push_back(added[d] ? Extent(1) : c.shape(0)[next++]);
  return viewed(c, std::move(shape));
}

Status flatten(InferContext &c) {
  const Shape &from = c.shape(0);
  int64_t rank = int64_t(from.size()), axis = c.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return c.fail("axis {} is out of range for rank {}", axis, rank);
  if (axis < 0)
    axis += rank;
  return viewed(c, {elementCount(Shape(from.begin(), from.begin() + axis)),
                    elementCount(Shape(from.begin() + axis, from.end()))});
}

} // namespace

void addViewRules(ShapeRules &rules) {
  rules["identity"] = identity;
  rules["dropout"] = dropout;
  rules["reshape"] = reshape;
  rules["squeeze"] = squeeze;
  rules["unsqueeze"] = unsqueeze;
  rules["flatten"] = flatten;
}

} // namespace dovetail::graph
