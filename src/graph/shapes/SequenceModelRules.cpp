// SPDX-License-Identifier: Apache-2.0
//
// Recurrent ops, Fourier transforms and losses.
#include "graph/shapes/ShapeRules.h"

#include <tuple>

namespace dovetail::graph {
namespace {

/// Operand `number`, where it is there, must have these extents.
Status needOperand(InferContext &c, size_t number, const Shape &extents, const char *what) {
  if (!c.has(number))
    return Status::success();
  if (Status status = c.needRank(number, extents.size()); !status)
    return status;
  for (size_t i = 0; i < extents.size(); ++i)
    if (Status status = c.needEqual(c.shape(number)[i], extents[i], what); !status)
      return status;
  return Status::success();
}

template <int Gates> Status recurrent(InferContext &c) {
  for (size_t i = 0; i < 3; ++i)
    if (Status status = c.needRank(i, 3); !status)
      return status;
  bool batchFirst = c.integer("layout", 0) != 0;
  const Shape &input = c.shape(0);
  Extent steps = input[batchFirst ? 1 : 0], batch = input[batchFirst ? 0 : 1];
  std::string direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return c.fail("direction is '{}', expected forward, reverse or bidirectional", direction);
  Extent directions = direction == "bidirectional" ? 2 : 1;
  Extent hidden =
      c.hasAttribute("hidden_size") ? Extent(c.integer("hidden_size", 0)) : c.shape(2)[2];
  if (Status status = c.needEqual(c.shape(1)[0], directions, "directions of the weights"); !status)
    return status;
  if (Status status = c.needEqual(c.shape(2)[2], hidden, "hidden_size and recurrent weights");
      !status)
    return status;
  const Extent rows = hidden * Gates;
  Shape last = batchFirst ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  const std::tuple<size_t, Shape, const char *> operands[] = {
      {1, {directions, rows, input[2]}, "weights and inputs"},
      {2, {directions, rows, hidden}, "recurrent weights and hidden units"},
      {3, {directions, rows * 2}, "biases and hidden units"},
      {4, {batch}, "sequence lengths and sequences"},
      {5, last, "initial states and sequences"},
      {6, last, "initial cell states and sequences"},
      {7, {directions, hidden * 3}, "peepholes and hidden units"}};
  for (const auto &[number, extents, what] : operands)
    if (Status status = needOperand(c, number, extents, what); !status)
      return status;
  c.result(0, c.type(0),
           batchFirst ? Shape{batch, steps, directions, hidden}
                      : Shape{steps, directions, batch, hidden});
  c.result(1, c.type(0), last);
  c.result(2, c.type(0), last);
  return Status::success();
}

Status fourier(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 2); !status)
    return status;
  int64_t given = -2;
  if (c.has(2)) {
    std::optional<std::vector<int64_t>> axis = c.integers(2);
    if (!axis || axis->size() != 1)
      return c.fail("the axis is no constant scalar, which is not supported");
    given = (*axis)[0];
  }
  Expected<int64_t> axis = c.axis(given, c.rank(0));
  if (!axis)
    return axis.takeError();
  Shape shape = c.shape(0);
  if (c.has(1)) {
    std::optional<Elements> length = c.elements(1);
    shape[*axis] =
        length && length->size() == 1 && (*length)[0] ? *(*length)[0] : c.fresh(0, *axis);
  }
  bool onesided = c.integer("onesided", 0), inverse = c.integer("inverse", 0);
  if (onesided && !inverse)
    shape[*axis] = Extent::floorDiv(shape[*axis], 2) + 1;
  if (onesided && inverse && !c.has(1))
    shape[*axis] = (shape[*axis] - 1) * 2;
  shape.back() = onesided && inverse ? 1 : 2;
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status shortTimeFourier(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 2); !status)
    return status;
  std::optional<Elements> step = c.elements(1), length = c.elements(3);
  std::optional<Extent> frame;
  if (c.has(2))
    frame = elementCount(c.shape(2));
  if (!frame && length && length->size() == 1)
    frame = (*length)[0];
  Extent frames = c.fresh(0, 1), bins = c.fresh(0, 2);
  if (frame && step && step->size() == 1 && (*step)[0] && (*step)[0] != Extent(0))
    frames = Extent::floorDiv(c.shape(0)[1] - *frame, *(*step)[0]) + 1;
  if (frame)
    bins = c.integer("onesided", 1) ? Extent::floorDiv(*frame, 2) + 1 : *frame;
  c.result(0, c.type(0), {c.shape(0)[0], frames, bins, 2});
  return Status::success();
}

Status loss(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 2); !status)
    return status;
  bool whole = c.text("reduction", "mean") != "none";
  c.result(0, c.type(0), whole ? Shape() : c.shape(1));
  c.result(1, c.type(0), c.shape(0)); // log probabilities
  return Status::success();
}

} // namespace

void addSequenceModelRules(ShapeRules &rules) {
  rules["lstm"] = recurrent<4>;
  rules["gru"] = recurrent<3>;
  rules["rnn"] = recurrent<1>;
  rules["dft"] = fourier;
  rules["stft"] = shortTimeFourier;
  rules["negative_log_likelihood_loss"] = loss;
  rules["softmax_cross_entropy_loss"] = loss;
}

} // namespace dovetail::graph
