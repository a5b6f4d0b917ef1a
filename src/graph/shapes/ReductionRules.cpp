// SPDX-License-Identifier: Apache-2.0
//
// Reductions and running sums. Axes come as an operand and must be constant, else only the rank may
// be known; products and sums of small integer tensors are followed symbolically.
#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

Shape reduced(const Shape &shape, const std::vector<int64_t> &axes, bool keep) {
  std::vector<bool> gone(shape.size());
  for (int64_t axis : axes)
    gone[axis] = true;
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!gone[d])
      result.push_back(shape[d]);
    else if (keep)
      result.push_back(1);
  }
  return result;
}

/// Reduces all elements of a tracked operand of rank 1 to one.
std::optional<Extent> reduceAll(const InferContext &c, const Elements &elements) {
  std::string_view op = c.info.name;
  std::optional<Extent> result;
  for (const std::optional<Extent> &element : elements) {
    if (!element)
      return std::nullopt;
    if (!result)
      result = element;
    else if (op == "reduce_prod")
      result = *result * *element;
    else if (op == "reduce_sum")
      result = *result + *element;
    else if (op == "reduce_max")
      result = c.most(*result, *element);
    else if (op == "reduce_min")
      result = c.least(*result, *element);
    else
      return std::nullopt;
  }
  if (!result && op == "reduce_prod")
    result = Extent(1);
  if (!result && op == "reduce_sum")
    result = Extent(0);
  return result;
}

Status reduce(InferContext &c) {
  bool keep = c.integer("keepdims", 1) != 0;
  size_t rank = c.rank(0);
  std::vector<int64_t> axes;
  if (c.has(1)) {
    std::optional<std::vector<int64_t>> given = c.integers(1);
    if (!given) {
      if (!keep)
        return c.fail("axes are no constant, so that the rank of the result is not known");
      Shape shape;
      for (size_t d = 0; d < rank; ++d)
        shape.push_back(c.shape(0)[d] == Extent(1) ? Extent(1) : c.fresh(0, d));
      c.result(0, c.type(0), std::move(shape));
      return Status::success();
    }
    Expected<std::vector<int64_t>> checked = c.axes(*given, rank);
    if (!checked)
      return checked.takeError();
    axes = std::move(*checked);
  }
  if (axes.empty()) {
    if (c.integer("noop_with_empty_axes", 0)) {
      c.result(0, c.type(0), c.shape(0));
      return Status::success();
    }
    for (size_t d = 0; d < rank; ++d)
      axes.push_back(int64_t(d));
  }
  c.result(0, c.type(0), reduced(c.shape(0), axes, keep));
  std::optional<Elements> elements = c.elements(0);
  if (elements && axes.size() == rank && (c.type(0) == DVT_I64 || c.type(0) == DVT_I32)) {
    std::optional<Extent> all = reduceAll(c, *elements);
    std::optional<int64_t> number = all ? all->staticValue() : std::nullopt;
    if (all && (all->isOverflow() ||
                (c.type(0) == DVT_I32 && number && (*number < INT32_MIN || *number > INT32_MAX))))
      all.reset(); // the op wraps
    c.resultElements(0, {all});
  }
  return Status::success();
}

Status argument(InferContext &c) {
  Expected<int64_t> axis = c.axis(c.integer("axis", 0), c.rank(0));
  if (!axis)
    return axis.takeError();
  if (Status status = c.needAtLeast(c.shape(0)[*axis], 1, "the axis to look along"); !status)
    return status;
  c.result(0, DVT_I64, reduced(c.shape(0), {*axis}, c.integer("keepdims", 1) != 0));
  return Status::success();
}

Status cumulative(InferContext &c) {
  if (elementCount(c.shape(1)) != Extent(1))
    return c.fail("the axis has the extents {}, expected one element", shapeText(c.shape(1)));
  if (std::optional<std::vector<int64_t>> given = c.integers(1))
    if (Expected<int64_t> axis = c.axis((*given)[0], c.rank(0)); !axis)
      return axis.takeError();
  c.result(0, c.type(0), c.shape(0));
  return Status::success();
}

} // namespace

void addReductionRules(ShapeRules &rules) {
  for (const OpInfo &op : allOps()) {
    if (op.isReduction())
      rules[op.name] = op.name.starts_with("arg_") ? argument : reduce;
    if (op.kind == OpKind::Cumulative)
      rules[op.name] = cumulative;
  }
}

} // namespace dovetail::graph
