// SPDX-License-Identifier: Apache-2.0
//
// Ops that make tensors from extents and scalars. Shape and size are where symbols enter shape
// arithmetic. Random ops are here as well.
#include "graph/shapes/ShapeRules.h"

#include <cmath>

namespace dovetail::graph {
namespace {

Status shapeOf(InferContext &c) {
  int64_t rank = int64_t(c.rank(0));
  auto clamp = [&](int64_t index) {
    return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  int64_t begin = clamp(c.integer("start", 0)), end = clamp(c.integer("end", rank));
  Elements elements;
  for (int64_t d = begin; d < end; ++d)
    elements.push_back(c.shape(0)[d]);
  c.result(0, DVT_I64, {int64_t(elements.size())});
  c.resultElements(0, std::move(elements));
  return Status::success();
}

Status sizeOf(InferContext &c) {
  c.result(0, DVT_I64, {});
  c.resultElements(0, {elementCount(c.shape(0))});
  return Status::success();
}

Status constantOfShape(InferContext &c) {
  if (Status status = c.needRank(0, 1); !status)
    return status;
  std::optional<Elements> extents = c.elements(0);
  std::optional<int64_t> rank = c.shape(0)[0].staticValue();
  if (!extents && (!rank || *rank > 32))
    return c.fail("the rank of the result is not known when compiling");
  if (!extents)
    extents = Elements(*rank);
  Shape shape;
  for (size_t d = 0; d < extents->size(); ++d)
    shape.push_back((*extents)[d] ? *(*extents)[d] : c.fresh(0, d));
  // The pass that runs this rule states the type and the elements of the attribute as operand 1.
  bool stated = c.operandCount() > 1;
  dvt_type type = stated ? c.type(1) : DVT_F32;
  std::optional<int64_t> count = elementCount(shape).staticValue();
  c.result(0, type, std::move(shape));
  std::optional<Elements> value = stated ? c.elements(1) : std::nullopt;
  if (value && value->size() == 1 && count && *count >= 0 &&
      size_t(*count) <= kMostTrackedElements && (type == DVT_I64 || type == DVT_I32))
    c.resultElements(0, Elements(*count, (*value)[0]));
  return Status::success();
}

Status range(InferContext &c) {
  for (size_t i = 0; i < 3; ++i)
    if (elementCount(c.shape(i)) != Extent(1))
      return c.fail("operand {} has the extents {}, expected a scalar", i, shapeText(c.shape(i)));
  if (isFloatType(c.type(0))) {
    std::optional<std::vector<double>> start = c.numbers(0), limit = c.numbers(1),
                                       step = c.numbers(2);
    if (!start || !limit || !step) {
      c.result(0, c.type(0), {c.fresh(0, 0)});
      return Status::success();
    }
    if ((*step)[0] == 0)
      return c.fail("delta is 0");
    double count = std::ceil(((*limit)[0] - (*start)[0]) / (*step)[0]);
    if (!(std::fabs(count) < 1e14))
      return c.fail("from {} to {} in steps of {} is not a range", (*start)[0], (*limit)[0],
                    (*step)[0]);
    c.result(0, c.type(0), {std::max<int64_t>(int64_t(count), 0)});
    return Status::success();
  }
  std::optional<Elements> start = c.elements(0), limit = c.elements(1), step = c.elements(2);
  std::optional<Extent> from = start ? (*start)[0] : std::nullopt,
                        to = limit ? (*limit)[0] : std::nullopt,
                        by = step ? (*step)[0] : std::nullopt;
  if (!from || !to || !by || !by->isStatic()) {
    c.result(0, c.type(0), {c.fresh(0, 0)});
    return Status::success();
  }
  int64_t delta = by->value();
  if (delta == 0)
    return c.fail("delta is 0");
  Extent length = delta > 0 ? *to - *from : *from - *to;
  Extent count = c.most(Extent::ceilDiv(length, std::abs(delta)), 0);
  c.result(0, c.type(0), {count});
  if (count.isStatic() && size_t(count.value()) <= kMostTrackedElements) {
    Elements elements;
    for (int64_t i = 0; i < count.value(); ++i)
      elements.push_back(*from + Extent(i) * delta);
    c.resultElements(0, std::move(elements));
  }
  return Status::success();
}

Status like(InferContext &c) {
  c.result(0, c.elementType("dtype", c.type(0)), c.shape(0));
  return Status::success();
}

Status eyeLike(InferContext &c) {
  if (Status status = c.needRank(0, 2); !status)
    return status;
  return like(c);
}

Status oneHot(InferContext &c) {
  Expected<int64_t> axis = c.axis(c.integer("axis", -1), c.rank(0) + 1);
  if (!axis)
    return axis.takeError();
  // The depth may be of a float type.
  std::optional<Elements> depth = c.elements(1);
  std::optional<std::vector<double>> number = c.numbers(1);
  Shape shape = c.shape(0);
  Extent extent = depth && depth->size() == 1 && (*depth)[0] ? *(*depth)[0]
                  : number && number->size() == 1            ? Extent(int64_t((*number)[0]))
                                                             : c.fresh(0, *axis);
  shape.insert(shape.begin() + *axis, extent);
  c.result(0, c.type(2), std::move(shape));
  return Status::success();
}

Status window(InferContext &c) {
  std::optional<Elements> size = c.elements(0);
  c.result(0, c.elementType("output_datatype", DVT_F32),
           {size && size->size() == 1 && (*size)[0] ? *(*size)[0] : c.fresh(0, 0)});
  return Status::success();
}

Status melWeights(InferContext &c) {
  std::optional<Elements> bins = c.elements(0), length = c.elements(1);
  Extent rows = length && length->size() == 1 && (*length)[0]
                    ? Extent::floorDiv(*(*length)[0], 2) + 1
                    : c.fresh(0, 0);
  Extent columns = bins && bins->size() == 1 && (*bins)[0] ? *(*bins)[0] : c.fresh(0, 1);
  c.result(0, c.elementType("output_datatype", DVT_F32), {rows, columns});
  return Status::success();
}

Status randomOfShape(InferContext &c) {
  Shape shape;
  for (int64_t extent : c.list("shape").value_or(std::vector<int64_t>()))
    shape.push_back(extent);
  c.result(0, c.elementType("dtype", DVT_F32), std::move(shape));
  return Status::success();
}

Status multinomial(InferContext &c) {
  if (Status status = c.needRank(0, 2); !status)
    return status;
  c.result(0, c.elementType("dtype", DVT_I32), {c.shape(0)[0], c.integer("sample_size", 1)});
  return Status::success();
}

} // namespace

void addGeneratorRules(ShapeRules &rules) {
  rules["shape"] = shapeOf;
  rules["size"] = sizeOf;
  rules["constant_of_shape"] = constantOfShape;
  rules["range"] = range;
  rules["eye_like"] = eyeLike;
  rules["one_hot"] = oneHot;
  for (const char *name : {"blackman_window", "hamming_window", "hann_window"})
    rules[name] = window;
  rules["mel_weight_matrix"] = melWeights;
  rules["random_normal"] = randomOfShape;
  rules["random_uniform"] = randomOfShape;
  for (const char *name : {"random_normal_like", "random_uniform_like", "bernoulli"})
    rules[name] = like;
  rules["multinomial"] = multinomial;
}

} // namespace dovetail::graph
