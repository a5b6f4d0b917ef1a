// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "GraphArithmetic.h"

namespace cudnn_double {

using api::PointwiseMode;

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

double clipped(const api::Operation &op, double x) {
  const double low = op.lowerClip.value_or(0);
  const double bent = x < low ? low + op.slope.value_or(0) * (x - low) : x;
  return op.upperClip ? std::min(bent, *op.upperClip) : bent;
}

std::optional<double> activate(const api::Operation &op, double x) {
  switch (op.pointwise) {
  case PointwiseMode::Elu:
    return x > 0 ? x : op.alpha.value_or(1) * std::expm1(x);
  case PointwiseMode::Gelu:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  case PointwiseMode::GeluTanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case PointwiseMode::Relu:
    return clipped(op, x);
  case PointwiseMode::Sigmoid:
    return logistic(x);
  case PointwiseMode::Softplus:
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  case PointwiseMode::Swish:
    return x * logistic(op.alpha.value_or(1) * x);
  case PointwiseMode::Tanh:
    return std::tanh(x);
  default:
    return std::nullopt;
  }
}

} // namespace

std::optional<double> applyUnary(const api::Operation &op, double x) {
  switch (op.pointwise) {
  case PointwiseMode::Abs:
    return std::abs(x);
  case PointwiseMode::Ceil:
    return std::ceil(x);
  case PointwiseMode::Erf:
    return std::erf(x);
  case PointwiseMode::Exp:
    return std::exp(x);
  case PointwiseMode::Floor:
    return std::floor(x);
  case PointwiseMode::Identity:
    return x;
  case PointwiseMode::Log:
    return std::log(x);
  case PointwiseMode::Neg:
    return -x;
  case PointwiseMode::Reciprocal:
    return 1 / x;
  case PointwiseMode::Rsqrt:
    return 1 / std::sqrt(x);
  case PointwiseMode::Sqrt:
    return std::sqrt(x);
  default:
    return activate(op, x);
  }
}

std::optional<double> applyBinary(PointwiseMode mode, double x, double y) {
  switch (mode) {
  case PointwiseMode::Add:
    return x + y;
  case PointwiseMode::Div:
    return x / y;
  case PointwiseMode::Max:
    return std::max(x, y);
  case PointwiseMode::Min:
    return std::min(x, y);
  case PointwiseMode::Mul:
    return x * y;
  case PointwiseMode::Pow:
    return std::pow(x, y);
  case PointwiseMode::Sub:
    return x - y;
  default:
    return std::nullopt;
  }
}

} // namespace cudnn_double
