// SPDX-License-Identifier: Apache-2.0
//
// Which ONNX ops are which element-wise algorithms of oneDNN, and with which parameters. Ops of a
// tensor and a scalar literal count as ops of one tensor.
#include <cmath>
#include <limits>

#include "providers/onednn/Match.h"

namespace dovetail::onednn {
namespace {

using Steps = std::vector<EltwiseStep>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A clip bound: the literal operand (from op set 11 on), the attribute (before), or the widest
/// bound there is.
std::optional<float> clipBound(const ProblemReader &problem, const OpReader &op, uint32_t operand,
                               const char *attribute, float otherwise) {
  if (op.version() < 11)
    return static_cast<float>(op.number(attribute, otherwise));
  if (!op.hasInput(operand))
    return otherwise;
  std::optional<double> bound = problem.uniform(op.input(operand));
  return bound ? std::optional(static_cast<float>(*bound)) : std::nullopt;
}

Steps scalarSteps(std::string_view name, bool currentFirst, float scalar) {
  if (name == "add" || name == "sum")
    return {{dnnl_eltwise_linear, 1, scalar}};
  if (name == "sub")
    return {currentFirst ? EltwiseStep{dnnl_eltwise_linear, 1, -scalar}
                         : EltwiseStep{dnnl_eltwise_linear, -1, scalar}};
  if (name == "mul")
    return {{dnnl_eltwise_linear, scalar, 0}};
  if (name == "div" && currentFirst)
    // The reciprocal must be exact enough to be the same as dividing to an ulp; it is not when it
    // overflows.
    return scalar != 0 && std::isnormal(1 / scalar) ? Steps{{dnnl_eltwise_linear, 1 / scalar, 0}}
                                                    : Steps{};
  if (name == "div")
    return {{dnnl_eltwise_pow, scalar, -1}};
  if (name == "max")
    return {{dnnl_eltwise_clip, scalar, kInfinity}};
  if (name == "min")
    return {{dnnl_eltwise_clip, -kInfinity, scalar}};
  if (name == "pow" && currentFirst) {
    if (scalar == 1)
      return {{dnnl_eltwise_linear, 1, 0}};
    if (scalar == 2)
      return {{dnnl_eltwise_square, 0, 0}};
    if (scalar == 0.5f)
      return {{dnnl_eltwise_sqrt, 0, 0}};
    return {{dnnl_eltwise_pow, 1, scalar}};
  }
  return {};
}

} // namespace

std::vector<EltwiseStep> eltwiseSteps(const ProblemReader &problem, const OpReader &op,
                                      uint32_t current) {
  const std::string_view name = op.name();
  auto number = [&](const char *attribute, double otherwise) {
    return static_cast<float>(op.number(attribute, otherwise));
  };
  if (op.inputCount() == 2 && binaryAlgorithm(name) != dnnl_alg_kind_undef) {
    bool currentFirst = op.input(0) == current;
    uint32_t other = op.input(currentFirst ? 1 : 0);
    std::optional<double> scalar =
        other == DVT_NO_VALUE || other == current ? std::nullopt : problem.uniform(other);
    return scalar ? scalarSteps(name, currentFirst, static_cast<float>(*scalar)) : Steps{};
  }
  if (name == "pow" && op.input(0) == current && op.hasInput(1)) {
    std::optional<double> scalar = problem.uniform(op.input(1));
    return scalar ? scalarSteps(name, true, static_cast<float>(*scalar)) : Steps{};
  }
  if (op.input(0) != current)
    return {};
  if (name == "p_relu" && op.hasInput(1)) {
    std::optional<double> slope = problem.uniform(op.input(1));
    return slope ? Steps{{dnnl_eltwise_relu, static_cast<float>(*slope), 0}} : Steps{};
  }
  if (name == "clip") {
    std::optional<float> low = clipBound(problem, op, 1, "min", -kInfinity);
    std::optional<float> high = clipBound(problem, op, 2, "max", kInfinity);
    // ONNX: where min exceeds max, everything becomes max.
    return low && high ? Steps{{dnnl_eltwise_clip, std::fmin(*low, *high), *high}} : Steps{};
  }
  if (name == "relu")
    return {{dnnl_eltwise_relu, 0, 0}};
  if (name == "leaky_relu")
    return {{dnnl_eltwise_relu, number("alpha", 0.01), 0}};
  if (name == "elu")
    return {{dnnl_eltwise_elu, number("alpha", 1), 0}};
  if (name == "selu") {
    // gamma * elu(x; alpha)
    return {{dnnl_eltwise_elu, number("alpha", 1.67326319217681884765625), 0},
            {dnnl_eltwise_linear, number("gamma", 1.05070102214813232421875), 0}};
  }
  if (name == "sigmoid")
    return {{dnnl_eltwise_logistic, 0, 0}};
  if (name == "tanh")
    return {{dnnl_eltwise_tanh, 0, 0}};
  if (name == "hard_sigmoid")
    return {{dnnl_eltwise_hardsigmoid, number("alpha", 0.2), number("beta", 0.5)}};
  if (name == "hard_swish")
    return {{dnnl_eltwise_hardswish, 1.0f / 6, 0.5f}};
  if (name == "swish")
    return {{dnnl_eltwise_swish, number("alpha", 1), 0}};
  if (name == "gelu") {
    const std::string approximate = op.string("approximate", "none");
    if (approximate != "none" && approximate != "tanh")
      return {};
    return {{approximate == "tanh" ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf, 0, 0}};
  }
  if (name == "softplus")
    return {{dnnl_eltwise_soft_relu, 1, 0}};
  if (name == "mish")
    return {{dnnl_eltwise_mish, 0, 0}};
  if (name == "exp")
    return {{dnnl_eltwise_exp, 0, 0}};
  if (name == "log")
    return {{dnnl_eltwise_log, 0, 0}};
  if (name == "sqrt")
    return {{dnnl_eltwise_sqrt, 0, 0}};
  if (name == "abs")
    return {{dnnl_eltwise_abs, 0, 0}};
  if (name == "neg")
    return {{dnnl_eltwise_linear, -1, 0}};
  if (name == "reciprocal")
    return {{dnnl_eltwise_pow, 1, -1}};
  if (name == "round")
    return {{dnnl_eltwise_round, 0, 0}};
  return {};
}

dnnl_alg_kind_t binaryAlgorithm(std::string_view name) {
  if (name == "add" || name == "sum")
    return dnnl_binary_add;
  if (name == "sub")
    return dnnl_binary_sub;
  if (name == "mul")
    return dnnl_binary_mul;
  if (name == "div")
    return dnnl_binary_div;
  if (name == "max")
    return dnnl_binary_max;
  if (name == "min")
    return dnnl_binary_min;
  return dnnl_alg_kind_undef;
}

} // namespace dovetail::onednn
