// SPDX-License-Identifier: Apache-2.0
//
// Normalisations, softmax and reductions.
#include <algorithm>

#include "providers/cudnn/Translator.h"

namespace dovetail::cudnn {
namespace {

std::optional<ReductionOperator> reductionOf(std::string_view name) {
  if (name == "reduce_sum")
    return ReductionOperator::Add;
  if (name == "reduce_prod")
    return ReductionOperator::Mul;
  if (name == "reduce_min")
    return ReductionOperator::Min;
  if (name == "reduce_max")
    return ReductionOperator::Max;
  if (name == "reduce_mean")
    return ReductionOperator::Mean;
  if (name == "reduce_l1")
    return ReductionOperator::L1;
  if (name == "reduce_l2")
    return ReductionOperator::L2;
  return std::nullopt;
}

void reduce(Translator &to, ReductionOperator reduction, size_t from, size_t into) {
  Operation made;
  made.kind = Operation::Kind::Reduction;
  made.reduction = reduction;
  made.operands = {from};
  made.result = into;
  to.append(std::move(made));
}

/// Sorted and not negative; nothing where they are not known.
std::optional<Dims> axesOf(Translator &to, const OpReader &op, size_t rank) {
  Dims axes = op.integers("axes", {});
  if (op.hasInput(1)) {
    const auto literal = to.problem.literal(op.input(1));
    if (!literal)
      return std::nullopt;
    axes.assign(literal->begin(), literal->end());
  }
  if (axes.empty() && op.integer("noop_with_empty_axes", 0) != 0)
    return std::nullopt;
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i)
      axes.push_back(static_cast<int64_t>(i));
  for (int64_t &axis : axes) {
    axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
    if (axis < 0 || axis >= static_cast<int64_t>(rank))
      return std::nullopt;
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

/// scale * (x - mean) / sqrt(variance + epsilon) + bias, vectors by channel.
bool translateBatchNorm(Translator &to, const OpReader &op) {
  to.graph.family = "pointwise";
  if (op.integer("training_mode", 0) != 0)
    return to.refuse("batch_normalization: training is not supported");
  const size_t x = to.operand(op.input(0));
  size_t vectors[4];
  for (uint32_t i = 0; i < 4; ++i) {
    const std::optional<View> memory =
        op.hasInput(i + 1) ? to.memoryOf(op.input(i + 1)) : std::nullopt;
    Dims shape(to.problem.rank(op.input(0)), 1);
    if (!memory || shape.size() < 2 || memory->dims.size() != 1)
      return to.refuse("batch_normalization: vectors in memory are supported");
    shape[1] = memory->dims[0];
    const std::optional<View> reshaped = memory->reshaped(shape);
    const std::optional<View> placed = reshaped ? to.place(*reshaped) : std::nullopt;
    if (!placed)
      return to.refuse("batch_normalization: dense vectors are supported");
    vectors[i] = to.operand(*placed);
    if (vectors[i] == Operation::kAbsent)
      return false;
  }
  const auto [scale, bias, mean, variance] = vectors;
  const size_t result = to.result(op.output(0));
  if (x == Operation::kAbsent || result == Operation::kAbsent)
    return false;
  const size_t epsilon = to.number(op.number("epsilon", 1e-5));
  const size_t centred = to.pointwise(PointwiseMode::Sub, {x, mean}),
               shifted = to.pointwise(PointwiseMode::Add, {variance, epsilon}),
               inverse = to.pointwise(PointwiseMode::Rsqrt, {shifted}),
               normed = to.pointwise(PointwiseMode::Mul, {centred, inverse}),
               scaled = to.pointwise(PointwiseMode::Mul, {normed, scale});
  to.pointwise(PointwiseMode::Add, {scaled, bias}, result);
  return true;
}

} // namespace

bool translateNorm(Translator &to, const OpReader &op) {
  if (op.name() == "batch_normalization")
    return translateBatchNorm(to, op);
  to.graph.family = "normalization";
  if (op.integer("stash_type", 1) != 1)
    return to.refuse(std::string(op.name()) + ": arithmetic other than f32 is not supported");
  Operation made;
  made.kind = Operation::Kind::Norm;
  made.norm = op.name() == "rms_normalization" ? NormMode::Rms : NormMode::Layer;
  const size_t bias = op.hasInput(2) ? to.operand(op.input(2)) : Operation::kAbsent;
  made.operands = {to.operand(op.input(0)), to.operand(op.input(1)), bias,
                   to.number(op.number("epsilon", 1e-5))};
  made.result = to.result(op.output(0));
  if (made.operands[0] == Operation::kAbsent || made.operands[1] == Operation::kAbsent ||
      (op.hasInput(2) && bias == Operation::kAbsent) || made.result == Operation::kAbsent)
    return false;
  if (made.norm == NormMode::Layer && !op.hasInput(2))
    return to.refuse("layer_normalization without a bias is not supported");
  const Dims &x = to.dimsOf(made.operands[0]);
  if (x != to.dimsOf(made.result) || to.dimsOf(made.operands[1]) != Dims{1, x[1], 1, 1} ||
      (op.hasInput(2) && to.dimsOf(bias) != Dims{1, x[1], 1, 1}))
    return to.refuse(std::string(op.name()) +
                     ": scale and bias of the normalised elements' shape are supported");
  to.append(made);
  return true;
}

bool translateSoftmax(Translator &to, const OpReader &op) {
  to.graph.family = "softmax";
  if (to.domainOfAll() != Domain::Plain)
    return to.refuse("softmax together with products, images or norms is not supported");
  const size_t rank = to.problem.rank(op.input(0));
  int64_t axis = op.integer("axis", op.version() < 13 ? 1 : -1);
  axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
  if (axis < 0 || axis >= static_cast<int64_t>(rank) ||
      (op.version() < 13 && axis + 1 != static_cast<int64_t>(rank)))
    return to.refuse("softmax over several dimensions at once is not supported");
  const size_t x = to.operand(op.input(0)), result = to.result(op.output(0));
  if (x == Operation::kAbsent || result == Operation::kAbsent)
    return false;
  Dims reduced = to.dimsOf(x);
  reduced[to.placedAxis(reduced.size() - rank + static_cast<size_t>(axis))] = 1;
  const size_t largest = to.temporary(reduced), sum = to.temporary(reduced);
  reduce(to, ReductionOperator::Max, x, largest);
  const size_t shifted = to.pointwise(PointwiseMode::Sub, {x, largest}),
               powers = to.pointwise(PointwiseMode::Exp, {shifted});
  reduce(to, ReductionOperator::Add, powers, sum);
  to.pointwise(PointwiseMode::Div, {powers, sum}, result);
  return true;
}

bool translateReduction(Translator &to, const OpReader &op) {
  to.graph.family = "reduction";
  const std::optional<ReductionOperator> reduction = reductionOf(op.name());
  if (!reduction)
    return to.refuse("no kernels for " + std::string(op.name()));
  const size_t rank = to.problem.rank(op.input(0));
  const std::optional<Dims> axes = axesOf(to, op, rank);
  if (!axes)
    return to.refuse(std::string(op.name()) + ": axes known when compiling are supported");
  const uint32_t value = op.output(0);
  const size_t x = to.operand(op.input(0));
  if (x == Operation::kAbsent)
    return false;
  View view = to.memory(value);
  if (op.integer("keepdims", 1) == 0) {
    if (to.problem.uses(value) > 0)
      return to.refuse(std::string(op.name()) + " that drops dimensions stands last");
    if (view.dims.empty())
      view = {value, {}, {}, {}};
    for (int64_t axis : *axes)
      view = view.withAxis(static_cast<size_t>(axis));
  }
  const std::optional<View> placed = to.place(view);
  if (!placed)
    return to.refuse(std::string(op.name()) + ": the result's shape is not supported");
  const size_t result = to.result(value, *placed);
  if (result == Operation::kAbsent)
    return false;
  if (!to.broadcasts(result, x))
    return to.refuse(std::string(op.name()) + ": extents do not agree");
  reduce(to, *reduction, x, result);
  return true;
}

} // namespace dovetail::cudnn
