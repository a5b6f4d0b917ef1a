// SPDX-License-Identifier: Apache-2.0
//
// Activations and additions. They are described in other shapes than the problem's: the library's
// kernels for them go by dimensions where tensors lie densely, and so would take channels for
// columns in images that lie with channels last.
#include <cmath>
#include <limits>

#include "providers/miopen/Translator.h"

namespace dovetail::miopen {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// A bound of Clip: an attribute before op set 11, a constant operand since; NaN where it is not
/// known when compiling.
double clipBound(const ProblemReader &problem, const OpReader &op, uint32_t operand, double none) {
  if (op.version() < 11)
    return op.number(operand == 1 ? "min" : "max", none);
  const uint32_t value = op.input(operand);
  if (value == DVT_NO_VALUE)
    return none;
  return problem.isLiteral(value) ? problem.uniform(value).value_or(NAN) : NAN;
}

std::optional<Activation> activationOf(const ProblemReader &problem, const OpReader &op) {
  const std::string_view name = op.name();
  if (name == "relu")
    return Activation{ActivationMode::Relu, 0, 0};
  if (name == "sigmoid")
    return Activation{ActivationMode::Logistic, 0, 0};
  if (name == "tanh")
    return Activation{ActivationMode::Tanh, 1, 1};
  if (name == "softplus")
    return Activation{ActivationMode::SoftRelu, 0, 0};
  if (name == "abs")
    return Activation{ActivationMode::Abs, 0, 0};
  if (name == "leaky_relu")
    return Activation{ActivationMode::LeakyRelu, op.number("alpha", 0.01), 0};
  if (name == "elu")
    return Activation{ActivationMode::Elu, op.number("alpha", 1), 0};
  if (name != "clip" || clipBound(problem, op, 1, -kNone) != 0)
    return std::nullopt;
  const double high = clipBound(problem, op, 2, kNone);
  if (std::isnan(high) || high < 0)
    return std::nullopt;
  if (high == kNone)
    return Activation{ActivationMode::Relu, 0, 0};
  return Activation{ActivationMode::ClippedRelu, high, 0};
}

Tensor flat(DataType type, const Dims &dims) {
  return denseTensor(type, {1, 1, 1, providers::product(dims)});
}

} // namespace

bool Translator::translateActivation(const OpReader &op, bool isHead) {
  const std::string name(op.name());
  const std::optional<Activation> activation = activationOf(problem, op);
  if (!activation)
    return refuse("no kernels for " + name + (name == "clip" ? " with these bounds" : ""));
  const std::optional<DataType> type = typeOf(op.output(0), false);
  if (!type)
    return false;
  if (!op.hasInput(0) || problem.type(op.input(0)) != problem.type(op.output(0)))
    return refuse(name + ": operand and result of one type are supported");
  Call call;
  call.kind = Call::Kind::Activate;
  call.activation = *activation;
  call.result = flat(*type, problem.extents(op.output(0)));
  if (isHead && !addOperand(call, op.input(0), call.result))
    return false;
  form.calls.push_back(std::move(call));
  return true;
}

bool Translator::addBias(uint32_t bias, uint32_t before) {
  const std::optional<DataType> type = typeOf(before, false);
  if (!type)
    return false;
  const Dims dims = problem.extents(before);
  if (problem.type(bias) != problem.type(before) || dims.size() < 3 ||
      providers::product(problem.extents(bias)) != dims[1])
    return refuse("a bias of one number for each channel, in the result's type, is supported");
  Call call;
  call.kind = Call::Kind::AddBias;
  Dims channels(dims.size(), 1);
  channels[1] = dims[1];
  if (channelsLast) {
    call.result = denseTensor(*type, {providers::product(dims) / dims[1], dims[1]});
    channels = {1, dims[1]};
  } else {
    call.result = image(*type, dims);
    channels.resize(call.result.dims.size(), 1);
  }
  if (!addOperand(call, bias, denseTensor(*type, channels)))
    return false;
  form.calls.push_back(std::move(call));
  return true;
}

bool Translator::translateAddition(const OpReader &op, uint32_t before) {
  if (op.inputCount() != 2 || !op.hasInput(0) || !op.hasInput(1))
    return refuse("add: an operand is missing");
  const uint32_t other = op.input(0) == before ? op.input(1) : op.input(0);
  const Dims dims = problem.extents(before), added = problem.extents(other);
  if (problem.extents(op.output(0)) != dims)
    return refuse("add: a result that is larger than the first op's is not supported");
  if (added == dims) {
    const std::optional<DataType> type = typeOf(before, false);
    if (!type)
      return false;
    if (problem.type(other) != problem.type(before))
      return refuse("add: operands of one type are supported");
    Call call;
    call.kind = Call::Kind::AddTensor;
    call.result = flat(*type, dims);
    if (!addOperand(call, other, call.result))
      return false;
    form.calls.push_back(std::move(call));
    return true;
  }
  // ONNX aligns shapes at the right.
  Dims aligned(dims.size() - std::min(dims.size(), added.size()), 1);
  aligned.insert(aligned.end(), added.begin(), added.end());
  Dims channels(dims.size(), 1);
  if (dims.size() > 1)
    channels[1] = dims[1];
  if (aligned != channels)
    return refuse("add: a tensor of the result's shape or a number for each channel is supported");
  return addBias(other, before);
}

} // namespace dovetail::miopen
