// SPDX-License-Identifier: Apache-2.0
//
// Two and more operands of one type, broadcast against each other. Integers wrap modulo 2^bits; an
// integer division by zero is the caller's fault.
#include "Ops.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace dovetail::reference::ops {

template <typename W> constexpr bool isReal = std::is_same_v<W, double>;

/// Applies f to pairs of elements widened to W; the result is stored in its declared type.
template <typename W, typename F> static Status combineAs(Invocation &op, F f) {
  Extents extents;
  TRY(broadcastExtents(op, {op.shape(0), op.shape(1)}, extents));
  std::vector<W> a = op.numbers<W>(0), b = op.numbers<W>(1);
  std::vector<W> result(static_cast<size_t>(*elementCount(extents)));
  walk<2>(extents, {broadcastStrides(op.shape(0), extents), broadcastStrides(op.shape(1), extents)},
          [&](int64_t linear, const std::array<int64_t, 2> &at) {
            result[static_cast<size_t>(linear)] =
                f(a[static_cast<size_t>(at[0])], b[static_cast<size_t>(at[1])]);
          });
  return op.store(0, extents, result);
}

static Status needSameType(const Invocation &op) {
  for (size_t i = 1; i < op.inputCount(); ++i)
    if (op.has(i) && op.in(i).type != op.in(0).type)
      return op.bad("operands are of ", nameOf(op.in(0).type), " and ", nameOf(op.in(i).type),
                    "; they must be of one type");
  return {};
}

template <typename F> static Status combine(Invocation &op, F f) {
  TRY(needSameType(op));
  return withNumbers(op.kind(0), [&](auto kind) { return combineAs<decltype(kind)>(op, f); });
}

/// Arithmetic of W without overflow: signed integers go through unsigned ones.
template <typename W, typename F> static W wrapping(W a, W b, F f) {
  if constexpr (isReal<W>)
    return f(a, b);
  else
    return static_cast<W>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

template <typename W> static W greater(W a, W b) {
  if constexpr (isReal<W>)
    if (std::isnan(a) || std::isnan(b))
      return std::numeric_limits<double>::quiet_NaN();
  return a < b ? b : a;
}

template <typename W> static W lesser(W a, W b) {
  if constexpr (isReal<W>)
    if (std::isnan(a) || std::isnan(b))
      return std::numeric_limits<double>::quiet_NaN();
  return b < a ? b : a;
}

Status add(Invocation &op) {
  return combine(
      op, [](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x + y; }); });
}
Status sub(Invocation &op) {
  return combine(
      op, [](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x - y; }); });
}
Status mul(Invocation &op) {
  return combine(
      op, [](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x * y; }); });
}

static Status needNonZeroDivisor(const Invocation &op) {
  if (op.kind(1) != NumberKind::Real && op.in(0).count())
    for (uint64_t divisor : op.numbers<uint64_t>(1))
      if (!divisor)
        return op.bad("integer division by zero");
  return {};
}

Status div(Invocation &op) {
  TRY(needNonZeroDivisor(op));
  return combine(op, [](auto a, auto b) {
    // The one quotient of signed integers that does not fit.
    if constexpr (std::is_same_v<decltype(a), int64_t>)
      return b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
    else
      return a / b;
  });
}

Status mod(Invocation &op) {
  TRY(needNonZeroDivisor(op));
  bool truncate = op.integer("fmod", 0);
  return combine(op, [=](auto a, auto b) -> decltype(a) {
    using W = decltype(a);
    if constexpr (isReal<W>) {
      double remainder = std::fmod(a, b);
      if (truncate || std::isnan(remainder))
        return remainder;
      if (remainder == 0)
        return std::copysign(0.0, b);
      return (remainder < 0) == (b < 0) ? remainder : remainder + b;
    } else if constexpr (std::is_signed_v<W>) {
      int64_t remainder = b == -1 ? 0 : a % b;
      return truncate || remainder == 0 || (remainder < 0) == (b < 0) ? remainder : remainder + b;
    } else {
      return a % b;
    }
  });
}

/// a^b modulo 2^64 by squaring.
static uint64_t integerPower(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1)
      result *= base;
  return result;
}

Status pow(Invocation &op) {
  if (op.kind(0) == NumberKind::Real || op.kind(1) == NumberKind::Real)
    return combineAs<double>(op, [](double a, double b) { return std::pow(a, b); });
  bool signedExponent = op.kind(1) == NumberKind::Signed;
  bool signedBase = op.kind(0) == NumberKind::Signed;
  return combineAs<uint64_t>(op, [=](uint64_t a, uint64_t b) -> uint64_t {
    if (!signedExponent || static_cast<int64_t>(b) >= 0)
      return integerPower(a, b);
    // A negative power of an integer truncates to zero but for bases of 1 and -1.
    if (a == 1)
      return 1;
    return signedBase && static_cast<int64_t>(a) == -1 ? (b & 1 ? ~uint64_t(0) : 1) : 0;
  });
}

Status equal(Invocation &op) {
  return combine(op, [](auto a, auto b) { return decltype(a)(a == b); });
}
Status less(Invocation &op) {
  return combine(op, [](auto a, auto b) { return decltype(a)(a < b); });
}
Status lessOrEqual(Invocation &op) {
  return combine(op, [](auto a, auto b) { return decltype(a)(a <= b); });
}
Status greater(Invocation &op) {
  return combine(op, [](auto a, auto b) { return decltype(a)(a > b); });
}
Status greaterOrEqual(Invocation &op) {
  return combine(op, [](auto a, auto b) { return decltype(a)(a >= b); });
}

template <typename F> static Status combineBits(Invocation &op, F f) {
  TRY(needSameType(op));
  return combineAs<uint64_t>(op, f);
}

// bool is held as 0 or 1, so the logical and the bitwise ops are the same.
Status bitAnd(Invocation &op) {
  return combineBits(op, [](uint64_t a, uint64_t b) { return a & b; });
}
Status bitOr(Invocation &op) {
  return combineBits(op, [](uint64_t a, uint64_t b) { return a | b; });
}
Status bitXor(Invocation &op) {
  return combineBits(op, [](uint64_t a, uint64_t b) { return a ^ b; });
}

Status bitShift(Invocation &op) {
  std::string_view direction = op.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return op.unsupported("direction=", direction, "; LEFT and RIGHT are known");
  auto bits = 8 * elementBytes(op.in(0).type);
  if (direction == "LEFT")
    return combineBits(op, [=](uint64_t a, uint64_t b) { return b < bits ? a << b : 0; });
  // Right shifts of signed integers are arithmetic.
  return combine(op, [=](auto a, auto b) {
    using W = decltype(a);
    if constexpr (isReal<W>)
      return a;
    else if (b >= W(0) && static_cast<uint64_t>(b) < bits)
      return static_cast<W>(a >> b);
    else
      return static_cast<W>(a < W(0) ? ~W(0) : 0);
  });
}

/// Folds all operands with f, then divides by `divisor` where that is not 1.
template <typename F> static Status fold(Invocation &op, F f, bool average) {
  std::vector<Extents> shapes;
  for (size_t i = 0; i < op.inputCount(); ++i) {
    if (!op.has(i))
      return op.bad("operand ", i, " is absent");
    shapes.push_back(op.shape(i));
  }
  TRY(needSameType(op));
  Extents extents;
  TRY(broadcastExtents(op, shapes, extents));
  return withNumbers(op.kind(0), [&](auto kind) {
    using W = decltype(kind);
    std::vector<W> result(static_cast<size_t>(*elementCount(extents)));
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<W> operand = op.numbers<W>(i);
      walk<1>(extents, {broadcastStrides(shapes[i], extents)},
              [&](int64_t linear, const std::array<int64_t, 1> &at) {
                W &into = result[static_cast<size_t>(linear)],
                  value = operand[static_cast<size_t>(at[0])];
                into = i ? f(into, value) : value;
              });
    }
    if (average)
      for (W &value : result)
        value /= static_cast<W>(shapes.size());
    return op.store(0, extents, result);
  });
}

Status max(Invocation &op) {
  return fold(
      op, [](auto a, auto b) { return greater(a, b); }, false);
}
Status min(Invocation &op) {
  return fold(
      op, [](auto a, auto b) { return lesser(a, b); }, false);
}
static auto addWrapping = [](auto a, auto b) {
  return wrapping(a, b, [](auto x, auto y) { return x + y; });
};
Status sum(Invocation &op) { return fold(op, addWrapping, false); }
Status mean(Invocation &op) { return fold(op, addWrapping, true); }

Status clip(Invocation &op) {
  return withNumbers(op.kind(0), [&](auto kind) -> Status {
    using W = decltype(kind);
    std::vector<W> values = op.numbers<W>(0);
    for (size_t bound : {1, 2}) {
      if (!op.has(bound))
        continue;
      if (op.in(bound).count() != 1 || op.in(bound).type != op.in(0).type)
        return op.bad("bound ", bound - 1, " must be one element of ", nameOf(op.in(0).type));
      W limit = op.numbers<W>(bound)[0];
      for (W &value : values)
        value = bound == 1 ? (value < limit ? limit : value) : (limit < value ? limit : value);
    }
    return op.store(0, op.shape(0), values);
  });
}

Status pRelu(Invocation &op) {
  TRY(needSameType(op));
  if (!broadcastsTo(op.shape(1), op.shape(0)))
    return op.bad("slope of extents ", textOf(op.shape(1)), " does not broadcast to ",
                  textOf(op.shape(0)));
  return combine(op, [](auto a, auto slope) {
    return a < decltype(a)(0) ? wrapping(a, slope, [](auto x, auto y) { return x * y; }) : a;
  });
}

Status swiGlu(Invocation &op) {
  if (op.shape(0) != op.shape(1))
    return op.bad("operands have extents ", textOf(op.shape(0)), " and ", textOf(op.shape(1)));
  double alpha = op.real("alpha", 1);
  return combineAs<double>(op,
                           [=](double a, double b) { return a / (1 + std::exp(-alpha * a)) * b; });
}

} // namespace dovetail::reference::ops
