// SPDX-License-Identifier: Apache-2.0
//
// From a problem to calls. An op that heads the problem decides the family; what follows it must
// read its result and nothing else of the problem's own.
#include <algorithm>
#include <limits>

#include "providers/ChannelsLast.h"
#include "providers/OpVersions.h"
#include "providers/miopen/Translator.h"

namespace dovetail::miopen {
namespace {

bool isPool(std::string_view name) {
  return name == "max_pool" || name == "average_pool" || name == "global_average_pool" ||
         name == "global_max_pool";
}

} // namespace

std::optional<DataType> dataType(dvt_type type) {
  switch (type) {
  case DVT_F32:
    return DataType::Float;
  case DVT_F16:
    return DataType::Half;
  case DVT_BF16:
    return DataType::BFloat16;
  default:
    return std::nullopt;
  }
}

uint64_t elementBytes(DataType type) { return type == DataType::Float ? 4 : 2; }

const char *nameOf(DataType type) {
  switch (type) {
  case DataType::Half:
    return "f16";
  case DataType::BFloat16:
    return "bf16";
  case DataType::Float:
    break;
  }
  return "f32";
}

Tensor denseTensor(DataType type, const Dims &dims) {
  return {type, dims, providers::denseStrides(dims)};
}

bool Translator::checkWhole() {
  if (std::optional<std::string> unknown = providers::unknownDefinition(problem))
    return refuse(*unknown);
  if (std::optional<std::string> symbol = problem.symbolicExtent())
    return refuse("extents known only at run time (" + *symbol + ") are not supported");
  if (problem.opCount() == 0)
    return refuse("no op");
  if (problem.raw().output_count != 1)
    return refuse("problems with one result are supported");
  for (uint32_t v = 0; v < problem.raw().value_count; ++v) {
    int64_t elements = 1; // no further than they may be
    for (int64_t extent : problem.extents(v))
      if (elements <= std::numeric_limits<int32_t>::max())
        elements = extent <= std::numeric_limits<int32_t>::max() ? elements * extent : extent;
    if (elements == 0)
      return refuse("empty tensors are not supported");
    if (elements > std::numeric_limits<int32_t>::max())
      return refuse("tensors of more than 2^31 - 1 elements are not supported");
    if (problem.value(v).strides)
      return refuse("operands with strides are not supported");
    if (problem.outputPosition(v) >= 0 && problem.value(v).may_alias >= 0)
      return refuse("the result may not share an operand's memory");
  }
  return true;
}

bool Translator::checkChain() {
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const OpReader op = problem.op(i);
    const std::string name(op.name());
    if (op.output(0) == DVT_NO_VALUE)
      return refuse(name + ": no first result");
    for (uint32_t k = 1; k < op.outputCount(); ++k)
      if (op.output(k) != DVT_NO_VALUE &&
          (problem.uses(op.output(k)) > 0 || problem.outputPosition(op.output(k)) >= 0))
        return refuse(name + ": only the first result is supported");
    const bool isLast = i + 1 == problem.opCount();
    if (isLast != (problem.outputPosition(op.output(0)) >= 0))
      return refuse("results between the ops are not supported");
    if (!isLast && (problem.uses(op.output(0)) != 1 || !reads(problem.op(i + 1), op.output(0))))
      return refuse("ops that do not follow one another are not supported");
  }
  return true;
}

bool Translator::reads(const OpReader &op, uint32_t value) {
  for (uint32_t k = 0; k < op.inputCount(); ++k)
    if (op.input(k) == value)
      return true;
  return false;
}

std::optional<uint32_t> Translator::position(uint32_t value) {
  if (value == DVT_NO_VALUE || problem.inputPosition(value) < 0) {
    refuse("an operand is missing or no tensor in memory");
    return std::nullopt;
  }
  return static_cast<uint32_t>(problem.inputPosition(value));
}

std::optional<DataType> Translator::typeOf(uint32_t value, bool takesBfloat) {
  const std::optional<DataType> type = dataType(problem.type(value));
  if (!type)
    refuse("elements other than f32, f16 and bf16 are not supported");
  else if (*type == DataType::BFloat16 && !takesBfloat) {
    refuse("the library computes in bf16 in convolutions and layer normalisations only");
    return std::nullopt;
  }
  return type;
}

Tensor Translator::image(DataType type, Dims dims) const {
  const Dims strides =
      channelsLast ? providers::channelsLastStrides(dims) : providers::denseStrides(dims);
  Tensor tensor{type, std::move(dims), strides};
  if (tensor.dims.size() == 3) { // the library has two spatial dimensions at least
    tensor.dims.insert(tensor.dims.begin() + 2, 1);
    tensor.strides.insert(tensor.strides.begin() + 2, tensor.dims[3] * tensor.strides[2]);
  }
  return tensor;
}

bool Translator::addOperand(Call &call, uint32_t value, Tensor tensor) {
  const std::optional<uint32_t> at = position(value);
  if (!at)
    return false;
  call.operands.push_back(*at);
  call.tensors.push_back(std::move(tensor));
  return true;
}

void Translator::chooseLayouts() {
  const dvt_problem &raw = problem.raw();
  auto layoutOf = [&](uint32_t value) {
    const Dims dims = problem.extents(value);
    const bool isImage = dims.size() >= 3 && dims.size() <= 5;
    return channelsLast && isImage && !(problem.isConstant(value) && providers::hasOneOrder(dims))
               ? providers::channelsLastText(dims.size())
               : std::string();
  };
  for (uint32_t i = 0; i < raw.input_count; ++i)
    form.inputLayouts.push_back(layoutOf(raw.inputs[i]));
  form.outputLayouts.push_back(layoutOf(raw.outputs[0]));
}

bool Translator::translateHead(const OpReader &op) {
  const std::string_view name = op.name();
  if (name == "conv")
    return translateConvolution(op);
  if (isPool(name))
    return translatePool(op);
  if (name == "softmax" || name == "log_softmax")
    return translateSoftmax(op);
  if (name == "batch_normalization")
    return translateBatchNorm(op);
  if (name == "layer_normalization")
    return translateLayerNorm(op);
  form.family = "activation";
  return translateActivation(op, true);
}

bool Translator::run() {
  if (!checkWhole() || !checkChain())
    return false;
  chooseLayouts();
  if (!translateHead(problem.op(0)))
    return false;
  for (uint32_t i = 1; i < problem.opCount(); ++i) {
    const OpReader op = problem.op(i);
    const uint32_t before = problem.op(i - 1).output(0);
    if (op.name() == "add" ? !translateAddition(op, before) : !translateActivation(op, false))
      return false;
  }
  return true;
}

std::vector<Form> translate(const ProblemReader &problem, std::string &reason) {
  std::vector<Form> forms;
  auto attempt = [&](bool channelsLast) {
    std::string why;
    Translator translator(problem, channelsLast, why);
    if (translator.run())
      forms.push_back(std::move(translator.form));
    else if (reason.empty())
      reason = why;
  };
  attempt(false);
  if (!forms.empty() &&
      (forms[0].isConvolution() || forms[0].calls[0].kind == Call::Kind::Activate))
    attempt(true);
  // Without an image in memory the two do not differ.
  if (forms.size() == 2 && forms[0].inputLayouts == forms[1].inputLayouts &&
      forms[0].outputLayouts == forms[1].outputLayouts)
    forms.resize(1);
  return forms;
}

} // namespace dovetail::miopen
