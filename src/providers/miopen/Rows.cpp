// SPDX-License-Identifier: Apache-2.0
//
// Softmax and normalisations.
#include "providers/miopen/Translator.h"

namespace dovetail::miopen {

uint64_t rowNumbersBytes(const Call &layerNorm) {
  constexpr uint64_t kAlignment = 256;
  const uint64_t bytes =
      static_cast<uint64_t>(layerNorm.result.dims[0]) * elementBytes(layerNorm.result.type);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool Translator::translateSoftmax(const OpReader &op) {
  form.family = "softmax";
  const std::string name(op.name());
  if (!op.hasInput(0))
    return refuse(name + ": an operand is missing");
  const Dims dims = problem.extents(op.input(0));
  const auto rank = static_cast<int64_t>(dims.size());
  const bool flattens = op.version() < 13; // all dimensions from the axis on are one
  int64_t axis = op.integer("axis", flattens ? 1 : -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    return refuse(name + ": the axis is none of the operand's");
  const auto from = static_cast<size_t>(axis);
  const size_t to = flattens ? dims.size() : from + 1;
  const std::optional<DataType> type = typeOf(op.input(0), false);
  if (!type)
    return false;
  if (problem.type(op.output(0)) != problem.type(op.input(0)))
    return refuse(name + ": operand and result of one type are supported");
  const Tensor tensor =
      denseTensor(*type, {providers::product(dims, 0, from), providers::product(dims, from, to),
                          providers::product(dims, to, dims.size()), 1});
  Call call;
  call.kind = Call::Kind::Softmax;
  call.logarithm = name == "log_softmax";
  call.result = tensor;
  if (!addOperand(call, op.input(0), tensor))
    return false;
  form.calls.push_back(std::move(call));
  return true;
}

bool Translator::translateBatchNorm(const OpReader &op) {
  form.family = "batch-normalization";
  if (op.integer("training_mode", 0) != 0)
    return refuse("batch_normalization: training is not supported");
  for (uint32_t i = 0; i < 5; ++i)
    if (!op.hasInput(i))
      return refuse("batch_normalization: an operand is missing");
  const Dims dims = problem.extents(op.input(0));
  if (dims.size() < 2)
    return refuse("batch_normalization: operands with channels are supported");
  const std::optional<DataType> type = typeOf(op.input(0), false),
                                numbers = typeOf(op.input(1), false);
  if (!type || !numbers)
    return false;
  if (problem.type(op.output(0)) != problem.type(op.input(0)) ||
      (*numbers != *type && *numbers != DataType::Float))
    return refuse("batch_normalization: scales in f32 or the operand's type are supported");
  Call call;
  call.kind = Call::Kind::BatchNorm;
  call.epsilon = op.number("epsilon", 1e-5);
  call.result = denseTensor(*type, {dims[0], dims[1], 1, providers::product(dims, 2, dims.size())});
  if (!addOperand(call, op.input(0), call.result))
    return false;
  for (uint32_t i = 1; i < 5; ++i) {
    if (problem.type(op.input(i)) != problem.type(op.input(1)) ||
        problem.extents(op.input(i)) != Dims{dims[1]})
      return refuse("batch_normalization: vectors of one type, a number for each channel, are "
                    "supported");
    if (!addOperand(call, op.input(i), denseTensor(*numbers, {1, dims[1], 1, 1})))
      return false;
  }
  form.calls.push_back(std::move(call));
  return true;
}

bool Translator::translateLayerNorm(const OpReader &op) {
  form.family = "layer-normalization";
  for (uint32_t i = 0; i < 3; ++i)
    if (!op.hasInput(i))
      return refuse("layer_normalization: with scale and bias is supported");
  if (op.integer("stash_type", 1) != 1)
    return refuse("layer_normalization: arithmetic other than f32 is not supported");
  const Dims dims = problem.extents(op.input(0));
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = op.integer("axis", -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    return refuse("layer_normalization: the axis is none of the operand's");
  const int64_t rows = providers::product(dims, 0, static_cast<size_t>(axis)),
                columns = providers::product(dims, static_cast<size_t>(axis), dims.size());
  const std::optional<DataType> type = typeOf(op.input(0), true);
  if (!type)
    return false;
  Call call;
  call.kind = Call::Kind::LayerNorm;
  call.epsilon = op.number("epsilon", 1e-5);
  call.result = denseTensor(*type, {rows, columns});
  if (!addOperand(call, op.input(0), call.result))
    return false;
  for (uint32_t i = 1; i < 3; ++i) {
    if (problem.type(op.input(i)) != problem.type(op.input(0)) ||
        providers::product(problem.extents(op.input(i))) != columns)
      return refuse("layer_normalization: scale and bias of the normalised elements' shape and "
                    "type are supported");
    if (!addOperand(call, op.input(i), denseTensor(*type, {columns})))
      return false;
  }
  if (problem.type(op.output(0)) != problem.type(op.input(0)))
    return refuse("layer_normalization: operand and result of one type are supported");
  form.calls.push_back(std::move(call));
  return true;
}

} // namespace dovetail::miopen
