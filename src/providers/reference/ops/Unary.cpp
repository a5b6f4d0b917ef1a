// SPDX-License-Identifier: Apache-2.0
//
// One operand, one result of the same extents: functions of reals, and the few that integers have,
// too. Each is computed in double and rounded once.
#include "Ops.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

namespace dovetail::reference::ops {

/// Applies f to each element as a double.
template <typename F> static Status mapReal(Invocation &op, F f) {
  std::vector<double> values = op.numbers<double>(0);
  for (double &value : values)
    value = f(value);
  return op.store(0, op.shape(0), values);
}

/// Applies f, generic over the number type, to each element in its own kind of number.
template <typename F> static Status mapNumber(Invocation &op, F f) {
  return withNumbers(op.kind(0), [&](auto kind) {
    using W = decltype(kind);
    std::vector<W> values = op.numbers<W>(0);
    for (W &value : values)
      value = f(value);
    return op.store(0, op.shape(0), values);
  });
}

static double logistic(double x) { return 1 / (1 + std::exp(-x)); }
static double softPlus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
static double clampUnit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

Status abs(Invocation &op) {
  return mapNumber(op, [](auto x) {
    using W = decltype(x);
    if constexpr (std::is_same_v<W, double>)
      return std::fabs(x);
    else if constexpr (std::is_same_v<W, int64_t>)
      return static_cast<int64_t>(x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x));
    else
      return x;
  });
}

Status neg(Invocation &op) {
  return mapNumber(op, [](auto x) {
    using W = decltype(x);
    if constexpr (std::is_same_v<W, double>)
      return -x;
    else
      return static_cast<W>(0 - static_cast<uint64_t>(x));
  });
}

Status sign(Invocation &op) {
  return mapNumber(op, [](auto x) {
    using W = decltype(x);
    if constexpr (std::is_same_v<W, double>)
      return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0));
    else
      return static_cast<W>((x > 0) - (x < W(0)));
  });
}

Status relu(Invocation &op) {
  return mapNumber(op, [](auto x) { return x < decltype(x)(0) ? decltype(x)(0) : x; });
}

Status shrink(Invocation &op) {
  double lambda = op.real("lambd", 0.5), bias = op.real("bias", 0);
  return mapReal(op, [=](double x) {
    return x < -lambda ? x + bias : x > lambda ? x - bias : 0.0;
  });
}

Status bitwiseNot(Invocation &op) {
  return mapNumber(op, [](auto x) {
    using W = decltype(x);
    if constexpr (std::is_same_v<W, double>)
      return x;
    else
      return static_cast<W>(~x);
  });
}

Status logicalNot(Invocation &op) {
  return mapNumber(op, [](auto x) { return static_cast<decltype(x)>(x == 0); });
}

Status isNaN(Invocation &op) {
  return mapReal(op, [](double x) { return std::isnan(x) ? 1.0 : 0.0; });
}

Status isInf(Invocation &op) {
  bool negative = op.integer("detect_negative", 1), positive = op.integer("detect_positive", 1);
  return mapReal(
      op, [=](double x) { return std::isinf(x) && (x < 0 ? negative : positive) ? 1.0 : 0.0; });
}

Status ceil(Invocation &op) {
  return mapReal(op, [](double x) { return std::ceil(x); });
}
Status floor(Invocation &op) {
  return mapReal(op, [](double x) { return std::floor(x); });
}
Status round(Invocation &op) {
  return mapReal(op, [](double x) { return std::nearbyint(x); });
}
Status sqrt(Invocation &op) {
  return mapReal(op, [](double x) { return std::sqrt(x); });
}
Status reciprocal(Invocation &op) {
  return mapReal(op, [](double x) { return 1 / x; });
}
Status exp(Invocation &op) {
  return mapReal(op, [](double x) { return std::exp(x); });
}
Status log(Invocation &op) {
  return mapReal(op, [](double x) { return std::log(x); });
}
Status erf(Invocation &op) {
  return mapReal(op, [](double x) { return std::erf(x); });
}
Status sin(Invocation &op) {
  return mapReal(op, [](double x) { return std::sin(x); });
}
Status cos(Invocation &op) {
  return mapReal(op, [](double x) { return std::cos(x); });
}
Status tan(Invocation &op) {
  return mapReal(op, [](double x) { return std::tan(x); });
}
Status asin(Invocation &op) {
  return mapReal(op, [](double x) { return std::asin(x); });
}
Status acos(Invocation &op) {
  return mapReal(op, [](double x) { return std::acos(x); });
}
Status atan(Invocation &op) {
  return mapReal(op, [](double x) { return std::atan(x); });
}
Status sinh(Invocation &op) {
  return mapReal(op, [](double x) { return std::sinh(x); });
}
Status cosh(Invocation &op) {
  return mapReal(op, [](double x) { return std::cosh(x); });
}
Status tanh(Invocation &op) {
  return mapReal(op, [](double x) { return std::tanh(x); });
}
Status asinh(Invocation &op) {
  return mapReal(op, [](double x) { return std::asinh(x); });
}
Status acosh(Invocation &op) {
  return mapReal(op, [](double x) { return std::acosh(x); });
}
Status atanh(Invocation &op) {
  return mapReal(op, [](double x) { return std::atanh(x); });
}
Status sigmoid(Invocation &op) { return mapReal(op, logistic); }
Status softplus(Invocation &op) { return mapReal(op, softPlus); }
Status softsign(Invocation &op) {
  return mapReal(op, [](double x) { return x / (1 + std::fabs(x)); });
}
Status mish(Invocation &op) {
  return mapReal(op, [](double x) { return x * std::tanh(softPlus(x)); });
}

Status swish(Invocation &op) {
  double alpha = op.real("alpha", 1);
  return mapReal(op, [=](double x) { return x * logistic(alpha * x); });
}

Status hardSigmoid(Invocation &op) {
  double alpha = op.real("alpha", 0.2f), beta = op.real("beta", 0.5);
  return mapReal(op, [=](double x) { return clampUnit(alpha * x + beta); });
}

Status hardSwish(Invocation &op) {
  return mapReal(op, [](double x) { return x * clampUnit(x / 6 + 0.5); });
}

Status leakyRelu(Invocation &op) {
  double alpha = op.real("alpha", 0.01f);
  return mapReal(op, [=](double x) { return x < 0 ? alpha * x : x; });
}

Status thresholdedRelu(Invocation &op) {
  double alpha = op.real("alpha", 1);
  return mapReal(op, [=](double x) { return x > alpha ? x : std::isnan(x) ? x : 0.0; });
}

Status elu(Invocation &op) {
  double alpha = op.real("alpha", 1);
  return mapReal(op, [=](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

Status celu(Invocation &op) {
  double alpha = op.real("alpha", 1);
  return mapReal(op, [=](double x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; });
}

Status selu(Invocation &op) {
  double alpha = op.real("alpha", 1.67326319217681884765625),
         gamma = op.real("gamma", 1.05070102214813232421875);
  return mapReal(op, [=](double x) { return gamma * (x <= 0 ? alpha * std::expm1(x) : x); });
}

Status gelu(Invocation &op) {
  constexpr double rootHalf = 0.70710678118654752440, rootTwoOverPi = 0.79788456080286535588;
  std::string_view approximate = op.text("approximate", "none");
  if (approximate == "tanh")
    return mapReal(op, [](double x) {
      return 0.5 * x * (1 + std::tanh(rootTwoOverPi * (x + 0.044715 * x * x * x)));
    });
  if (approximate != "none")
    return op.unsupported("approximate=", approximate, "; none and tanh are known");
  return mapReal(op, [](double x) { return 0.5 * x * (1 + std::erf(x * rootHalf)); });
}

} // namespace dovetail::reference::ops
