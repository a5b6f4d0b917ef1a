// SPDX-License-Identifier: Apache-2.0
//
// Reductions along axes, indices of extremes and running sums. Sums of floats are kept in double;
// sums of integers wrap at 64 bits before they are stored.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace dovetail::reference::ops {

namespace {

/// Where each element of the operand goes: extents of the result, and strides into it that are 0
/// along reduced axes.
struct Reduction {
  Extents extents, strides;
  int64_t length = 1; ///< elements that meet in one element of the result
};

} // namespace

static Status planReduction(const Invocation &op, Reduction &plan) {
  std::optional<Extents> axes;
  TRY(op.integerList(1, "axes", axes));
  if (!axes || axes->empty()) {
    axes.emplace();
    if (!op.integer("noop_with_empty_axes", 0))
      for (int64_t i = 0; i < op.rank(0); ++i)
        axes->push_back(i);
  }
  TRY(op.normalizeAxes(*axes, op.rank(0)));
  bool keep = op.integer("keepdims", 1);
  Extents kept;
  for (int64_t i = 0; i < op.rank(0); ++i) {
    int64_t extent = op.shape(0)[static_cast<size_t>(i)];
    bool reduced = std::count(axes->begin(), axes->end(), i);
    plan.length *= reduced ? extent : 1;
    kept.push_back(reduced ? 1 : extent);
    if (!reduced || keep)
      plan.extents.push_back(kept.back());
  }
  plan.strides = broadcastStrides(kept, op.shape(0));
  return {};
}

/// Accumulates in W from `start` with fold(accumulator, element) and finishes each result with
/// finish(accumulator).
template <typename W, typename Fold, typename Finish>
static Status reduceAs(Invocation &op, W start, Fold fold, Finish finish) {
  Reduction plan;
  TRY(planReduction(op, plan));
  std::vector<W> values = op.numbers<W>(0);
  std::vector<W> result(static_cast<size_t>(elementCount(plan.extents).value_or(0)), start);
  walk<1>(op.shape(0), {plan.strides}, [&](int64_t linear, const std::array<int64_t, 1> &at) {
    W &into = result[static_cast<size_t>(at[0])];
    into = fold(into, values[static_cast<size_t>(linear)]);
  });
  for (W &value : result)
    value = finish(value, plan.length);
  return op.store(0, plan.extents, result);
}

template <typename W> static W addTo(W a, W b) {
  if constexpr (std::is_same_v<W, double>)
    return a + b;
  else
    return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <typename W> static W multiply(W a, W b) {
  if constexpr (std::is_same_v<W, double>)
    return a * b;
  else
    return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

constexpr auto asIs = [](auto value, int64_t) { return value; };

Status reduceSum(Invocation &op) {
  return withNumbers(op.kind(0), [&](auto zero) {
    return reduceAs(
        op, zero, [](auto a, auto x) { return addTo(a, x); }, asIs);
  });
}

Status reduceMean(Invocation &op) {
  return withNumbers(op.kind(0), [&](auto zero) {
    return reduceAs(
        op, zero, [](auto a, auto x) { return addTo(a, x); },
        [](auto sum, int64_t length) -> decltype(sum) {
          if constexpr (std::is_same_v<decltype(sum), double>)
            return sum / static_cast<double>(length);
          else
            return length ? sum / static_cast<decltype(sum)>(length) : 0;
        });
  });
}

Status reduceProd(Invocation &op) {
  return withNumbers(op.kind(0), [&](auto zero) {
    return reduceAs(
        op, decltype(zero)(1), [](auto a, auto x) { return multiply(a, x); }, asIs);
  });
}

Status reduceSumSquare(Invocation &op) {
  return withNumbers(op.kind(0), [&](auto zero) {
    return reduceAs(
        op, zero, [](auto a, auto x) { return addTo(a, multiply(x, x)); }, asIs);
  });
}

Status reduceL1(Invocation &op) {
  return withNumbers(op.kind(0), [&](auto zero) {
    using W = decltype(zero);
    return reduceAs(
        op, zero, [](W a, W x) { return addTo(a, x < W(0) ? multiply(x, static_cast<W>(-1)) : x); },
        asIs);
  });
}

Status reduceL2(Invocation &op) {
  return reduceAs(
      op, 0.0, [](double a, double x) { return a + x * x; },
      [](double sum, int64_t) { return std::sqrt(sum); });
}

Status reduceLogSum(Invocation &op) {
  return reduceAs(
      op, 0.0, [](double a, double x) { return a + x; },
      [](double sum, int64_t) { return std::log(sum); });
}

Status reduceLogSumExp(Invocation &op) {
  // The largest element is taken out, so that no exponential overflows.
  Reduction plan;
  TRY(planReduction(op, plan));
  std::vector<double> values = op.numbers<double>(0);
  auto count = static_cast<size_t>(elementCount(plan.extents).value_or(0));
  std::vector<double> largest(count, -std::numeric_limits<double>::infinity()), sums(count, 0);
  auto each = [&](auto body) {
    walk<1>(op.shape(0), {plan.strides}, [&](int64_t linear, const std::array<int64_t, 1> &at) {
      body(static_cast<size_t>(at[0]), values[static_cast<size_t>(linear)]);
    });
  };
  each([&](size_t to, double x) {
    largest[to] = x > largest[to] || std::isnan(x) ? x : largest[to];
  });
  each([&](size_t to, double x) {
    sums[to] += std::isinf(largest[to]) ? 0 : std::exp(x - largest[to]);
  });
  for (size_t i = 0; i < count; ++i)
    sums[i] = std::isinf(largest[i]) ? largest[i] : std::log(sums[i]) + largest[i];
  return op.store(0, plan.extents, sums);
}

/// Smallest or largest number of a type, as the start of a search for the opposite.
template <typename W> static W limitOf(dvt_type type, bool highest) {
  if constexpr (std::is_same_v<W, double>)
    return highest ? std::numeric_limits<double>::infinity()
                   : -std::numeric_limits<double>::infinity();
  else
    return highest ? static_cast<W>(highestInteger(type)) : static_cast<W>(lowestInteger(type));
}

static Status reduceExtreme(Invocation &op, bool largest) {
  return withNumbers(op.kind(0), [&](auto zero) {
    using W = decltype(zero);
    auto fold = [largest](W a, W x) -> W {
      if constexpr (std::is_same_v<W, double>)
        if (std::isnan(a) || std::isnan(x))
          return std::numeric_limits<double>::quiet_NaN();
      return largest ? std::max(a, x) : std::min(a, x);
    };
    return reduceAs(op, limitOf<W>(op.in(0).type, !largest), fold, asIs);
  });
}

Status reduceMax(Invocation &op) { return reduceExtreme(op, true); }
Status reduceMin(Invocation &op) { return reduceExtreme(op, false); }

static Status argExtreme(Invocation &op, bool largest) {
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  bool last = op.integer("select_last_index", 0);
  Extents extents = op.shape(0);
  int64_t length = extents[static_cast<size_t>(axis)];
  if (!length)
    return op.bad("axis ", axis, " of ", textOf(extents), " is empty");
  int64_t inner = productOf(extents, axis + 1, op.rank(0)), outer = productOf(extents, 0, axis);
  if (op.integer("keepdims", 1))
    extents[static_cast<size_t>(axis)] = 1;
  else
    extents.erase(extents.begin() + axis);
  return withNumbers(op.kind(0), [&](auto zero) {
    using W = decltype(zero);
    std::vector<W> values = op.numbers<W>(0);
    std::vector<int64_t> result(static_cast<size_t>(outer * inner), 0);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        auto at = [&](int64_t k) {
          return values[static_cast<size_t>((o * length + k) * inner + i)];
        };
        int64_t &best = result[static_cast<size_t>(o * inner + i)];
        for (int64_t k = 1; k < length; ++k)
          if (largest ? at(k) > at(best) : at(k) < at(best))
            best = k;
          else if (last && at(k) == at(best))
            best = k;
      }
    return op.store(0, extents, result);
  });
}

Status argMax(Invocation &op) { return argExtreme(op, true); }
Status argMin(Invocation &op) { return argExtreme(op, false); }

/// Running fold along the axis of operand 1.
template <typename F> static Status scan(Invocation &op, int64_t start, F fold) {
  int64_t axis = 0;
  TRY(op.integerScalar(1, axis));
  TRY(op.normalizeAxis(axis, op.rank(0)));
  bool exclusive = op.integer("exclusive", 0), reverse = op.integer("reverse", 0);
  int64_t length = op.shape(0)[static_cast<size_t>(axis)];
  int64_t inner = productOf(op.shape(0), axis + 1, op.rank(0)),
          outer = productOf(op.shape(0), 0, axis);
  return withNumbers(op.kind(0), [&](auto zero) {
    using W = decltype(zero);
    std::vector<W> values = op.numbers<W>(0);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        W running = static_cast<W>(start);
        for (int64_t step = 0; step < length; ++step) {
          int64_t k = reverse ? length - 1 - step : step;
          W &value = values[static_cast<size_t>((o * length + k) * inner + i)], before = running;
          running = fold(running, value);
          value = exclusive ? before : running;
        }
      }
    return op.store(0, op.shape(0), values);
  });
}

Status cumSum(Invocation &op) {
  return scan(op, 0, [](auto a, auto x) { return addTo(a, x); });
}
Status cumProd(Invocation &op) {
  return scan(op, 1, [](auto a, auto x) { return multiply(a, x); });
}

} // namespace dovetail::reference::ops
