// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of any spatial rank. The operand is copied into a zero-padded buffer of doubles;
// then every element of a window lies at a fixed offset from the window's start, and the
// convolution is a sum of products.
#include "Ops.h"

#include <algorithm>
#include <cmath>

#include "../SumOfProducts.h"
#include "../Window.h"

namespace dovetail::reference::ops {

namespace {

struct Convolution {
  Window window;
  int64_t batch = 0, channels = 0, results = 0, groups = 1;
  Extents resultExtents;
};

} // namespace

static Status planConvolution(const Invocation &op, size_t weightOperand, Convolution &plan) {
  TRY(op.needRank(0, 3));
  const Extents &x = op.shape(0), &w = op.shape(weightOperand);
  if (w.size() != x.size())
    return op.bad("operands have extents ", textOf(x), " and ", textOf(w),
                  "; the ranks must be equal");
  plan.batch = x[0];
  plan.channels = x[1];
  plan.results = w[0];
  plan.groups = op.integer("group", 1);
  if (plan.groups < 1 || w[1] * plan.groups != plan.channels || plan.results % plan.groups)
    return op.bad("weights ", textOf(w), " in ", plan.groups, " groups do not fit an operand ",
                  textOf(x));
  std::optional<Extents> stated = op.integers("kernel_shape");
  if (stated && !stated->empty() && *stated != spatialOf(w))
    return op.bad("kernel_shape ", textOf(*stated), " differs from the weights ", textOf(w));
  TRY(planWindow(op, spatialOf(x), spatialOf(w), Slider::Convolution, plan.window));
  plan.resultExtents = {plan.batch, plan.results};
  plan.resultExtents.insert(plan.resultExtents.end(), plan.window.output.begin(),
                            plan.window.output.end());
  return {};
}

/// Spatial extents of the padded buffer; at least what all windows touch.
static Extents paddedExtents(const Window &window) {
  Extents padded(window.rank());
  for (size_t i = 0; i < padded.size(); ++i)
    padded[i] = std::max<int64_t>(window.input[i] + window.before[i] + window.after[i], 0);
  return padded;
}

/// Copies one image of channels into `padded`, which is zero where it is not written.
static void padImage(const Window &window, const Extents &paddedSpatial, int64_t channels,
                     const double *image, std::vector<double> &padded) {
  std::fill(padded.begin(), padded.end(), 0);
  Extents strides = rowMajorStrides(paddedSpatial);
  int64_t inner = productOf(window.input, 0, static_cast<int64_t>(window.rank()));
  int64_t paddedInner = productOf(paddedSpatial, 0, static_cast<int64_t>(window.rank()));
  forEachIndex(window.input, [&](int64_t linear, const Extents &index) {
    int64_t to = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      int64_t at = index[i] + window.before[i];
      // Negative pads crop.
      if (at < 0 || at >= paddedSpatial[i])
        return;
      to += at * strides[i];
    }
    for (int64_t c = 0; c < channels; ++c)
      padded[static_cast<size_t>(c * paddedInner + to)] = image[c * inner + linear];
  });
}

static std::vector<double> convolve(const Convolution &plan, const std::vector<double> &x,
                                    const std::vector<double> &w, const dvt_parallel *parallel) {
  const Window &window = plan.window;
  auto rank = static_cast<int64_t>(window.rank());
  Extents padded = paddedExtents(window), strides = rowMajorStrides(padded);
  int64_t paddedInner = productOf(padded, 0, rank), inner = productOf(window.input, 0, rank);
  int64_t outputs = productOf(window.output, 0, rank), taps = productOf(window.kernel, 0, rank);
  int64_t groupChannels = plan.channels / plan.groups, groupResults = plan.results / plan.groups;
  std::vector<int64_t> rowBase(static_cast<size_t>(outputs)),
      offset(static_cast<size_t>(groupChannels * taps));
  forEachIndex(window.output, [&](int64_t linear, const Extents &index) {
    for (size_t i = 0; i < index.size(); ++i)
      rowBase[static_cast<size_t>(linear)] += index[i] * window.strides[i] * strides[i];
  });
  forEachIndex(window.kernel, [&](int64_t linear, const Extents &index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i)
      at += index[i] * window.dilations[i] * strides[i];
    for (int64_t c = 0; c < groupChannels; ++c)
      offset[static_cast<size_t>(c * taps + linear)] = c * paddedInner + at;
  });
  std::vector<double> image(static_cast<size_t>(plan.channels * paddedInner));
  std::vector<double> y(static_cast<size_t>(plan.batch * plan.results * outputs));
  int64_t depth = groupChannels * taps;
  std::vector<PackedColumns> weights;
  weights.reserve(static_cast<size_t>(plan.groups));
  for (int64_t g = 0; g < plan.groups; ++g)
    weights.emplace_back(depth, groupResults, [&](int64_t k, int64_t n) {
      return w[static_cast<size_t>((g * groupResults + n) * depth + k)];
    });
  for (int64_t n = 0; n < plan.batch && outputs; ++n) {
    padImage(window, padded, plan.channels, x.data() + n * plan.channels * inner, image);
    for (int64_t g = 0; g < plan.groups; ++g) {
      Gathered left = {image.data() + g * groupChannels * paddedInner, rowBase, offset};
      double *to = y.data() + (n * plan.results + g * groupResults) * outputs;
      sumOfProducts(left, weights[static_cast<size_t>(g)], to, 1, outputs, parallel);
    }
  }
  return y;
}

/// Adds operand `input`, one element for each result channel, where it is there.
static Status addBias(const Invocation &op, size_t input, int64_t channels, int64_t inner,
                      std::vector<double> &y) {
  if (!op.has(input))
    return {};
  if (op.in(input).count() != channels)
    return op.bad("bias has ", op.in(input).count(), " elements; ", channels, " are needed");
  std::vector<double> bias = op.numbers<double>(input);
  for (size_t i = 0; i < y.size(); ++i)
    y[i] += bias[i / static_cast<size_t>(inner) % static_cast<size_t>(channels)];
  return {};
}

Status conv(Invocation &op) {
  Convolution plan;
  TRY(planConvolution(op, 1, plan));
  std::vector<double> y = convolve(plan, op.numbers<double>(0), op.numbers<double>(1), op.parallel);
  TRY(addBias(op, 2, plan.results, productOf(plan.resultExtents, 2, op.rank(0)), y));
  return op.store(0, plan.resultExtents, y);
}

/// Widens a quantised operand and takes its zero point off: one for all, or one for each index of
/// axis 0.
static Status centred(const Invocation &op, size_t input, size_t zeroPoint,
                      std::vector<double> &values) {
  values = op.numbers<double>(input);
  if (!op.has(zeroPoint))
    return {};
  std::vector<double> zeros = op.numbers<double>(zeroPoint);
  if (zeros.empty() ||
      (zeros.size() != 1 && static_cast<int64_t>(zeros.size()) != op.shape(input)[0]))
    return op.bad("zero point of ", zeros.size(), " elements for ", textOf(op.shape(input)));
  size_t each =
      zeros.size() == 1 ? std::max<size_t>(values.size(), 1) : values.size() / zeros.size();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] -= zeros[i / each];
  return {};
}

Status convInteger(Invocation &op) {
  Convolution plan;
  TRY(planConvolution(op, 1, plan));
  std::vector<double> x, w;
  if (op.has(2) && op.in(2).count() != 1)
    return op.bad("x_zero_point must be one element");
  TRY(centred(op, 0, 2, x));
  TRY(centred(op, 1, 3, w));
  // Products of 8-bit integers sum exactly in double; the result wraps at 32 bits.
  std::vector<double> y = convolve(plan, x, w, op.parallel);
  return op.store(0, plan.resultExtents, std::vector<int64_t>(y.begin(), y.end()));
}

Status qLinearConv(Invocation &op) {
  Convolution plan;
  TRY(planConvolution(op, 3, plan));
  std::vector<double> x, w, weightScale = op.numbers<double>(4);
  double xScale = 0, yScale = 0, yZero = 0;
  TRY(op.realScalar(1, xScale));
  TRY(op.realScalar(6, yScale));
  TRY(op.realScalar(7, yZero));
  if (op.in(2).count() != 1 ||
      (weightScale.size() != 1 && static_cast<int64_t>(weightScale.size()) != plan.results))
    return op.bad("scales or zero points have the wrong number of elements");
  TRY(centred(op, 0, 2, x));
  TRY(centred(op, 3, 5, w));
  std::vector<double> y = convolve(plan, x, w, op.parallel);
  int64_t inner = productOf(plan.resultExtents, 2, op.rank(0));
  TRY(addBias(op, 8, plan.results, inner, y));
  for (size_t i = 0; i < y.size(); ++i) {
    size_t c = weightScale.size() == 1 ? 0 : i / static_cast<size_t>(inner) % weightScale.size();
    y[i] = std::nearbyint(y[i] * xScale * weightScale[c] / yScale) + yZero;
  }
  return op.store(0, plan.resultExtents, y);
}

Status convTranspose(Invocation &op) {
  TRY(op.needRank(0, 3));
  const Extents &x = op.shape(0), &w = op.shape(1);
  int64_t groups = op.integer("group", 1);
  if (w.size() != x.size() || groups < 1 || w[0] != x[1] || x[1] % groups)
    return op.bad("weights ", textOf(w), " in ", groups, " groups do not fit an operand ",
                  textOf(x));
  Window window;
  TRY(planTransposedWindow(op, spatialOf(x), spatialOf(w), window));
  auto rank = static_cast<int64_t>(window.rank());
  int64_t inner = productOf(x, 2, op.rank(0)), outputs = productOf(window.input, 0, rank);
  int64_t taps = productOf(window.kernel, 0, rank), groupChannels = x[1] / groups,
          groupResults = w[1];
  int64_t results = groupResults * groups, columns = groupResults * taps;
  std::vector<double> xs = op.numbers<double>(0), ws = op.numbers<double>(1);
  std::vector<double> y(static_cast<size_t>(x[0] * results * outputs)),
      products(static_cast<size_t>(inner * columns));
  std::vector<int64_t> rowBase(static_cast<size_t>(inner)),
      offset(static_cast<size_t>(groupChannels));
  for (size_t i = 0; i < rowBase.size(); ++i)
    rowBase[i] = static_cast<int64_t>(i);
  for (size_t c = 0; c < offset.size(); ++c)
    offset[c] = static_cast<int64_t>(c) * inner;
  Extents strides = rowMajorStrides(window.input);
  for (int64_t g = 0; g < groups; ++g) {
    // Contribution of each operand position to each tap of each result channel, then added where
    // the tap lies.
    PackedColumns right(groupChannels, columns, [&](int64_t c, int64_t n) {
      return ws[static_cast<size_t>((g * groupChannels + c) * columns + n)];
    });
    for (int64_t n = 0; n < x[0] && inner; ++n) {
      Gathered left = {xs.data() + (n * x[1] + g * groupChannels) * inner, rowBase, offset};
      sumOfProducts(left, right, products.data(), columns, 1, op.parallel);
      double *to = y.data() + (n * results + g * groupResults) * outputs;
      forEachIndex(window.output, [&](int64_t position, const Extents &at) {
        forEachIndex(window.kernel, [&](int64_t tap, const Extents &k) {
          int64_t place = 0;
          for (size_t i = 0; i < at.size(); ++i) {
            int64_t index = window.start(i, at[i]) + k[i] * window.dilations[i];
            if (index < 0 || index >= window.input[i])
              return;
            place += index * strides[i];
          }
          for (int64_t m = 0; m < groupResults; ++m)
            to[m * outputs + place] +=
                products[static_cast<size_t>(position * columns + m * taps + tap)];
        });
      });
    }
  }
  TRY(addBias(op, 2, results, outputs, y));
  Extents extents = {x[0], results};
  extents.insert(extents.end(), window.input.begin(), window.input.end());
  return op.store(0, extents, y);
}

Status causalConvWithState(Invocation &op) {
  const Extents &x = op.shape(0), &w = op.shape(1);
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    return op.bad("operands ", textOf(x), " and ", textOf(w), "; [N,C,L] and [C,1,K] are needed");
  std::string_view activation = op.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return op.unsupported("activation=", activation, "; none, silu and swish are known");
  int64_t batch = x[0], channels = x[1], length = x[2], taps = w[2], history = taps - 1;
  Extents stateExtents = {batch, channels, history};
  if (op.has(3) && op.shape(3) != stateExtents)
    return op.bad("past_state ", textOf(op.shape(3)), "; ", textOf(stateExtents), " is needed");
  std::vector<double> xs = op.numbers<double>(0), ws = op.numbers<double>(1), past;
  if (op.has(3))
    past = op.numbers<double>(3);
  std::vector<double> y(xs.size()), state;
  for (int64_t line = 0; line < batch * channels; ++line) {
    auto at = [&](int64_t i) {
      if (i >= history)
        return xs[static_cast<size_t>(line * length + i - history)];
      return past.empty() ? 0.0 : past[static_cast<size_t>(line * history + i)];
    };
    for (int64_t i = 0; i < length; ++i)
      for (int64_t k = 0; k < taps; ++k)
        y[static_cast<size_t>(line * length + i)] +=
            at(i + k) * ws[static_cast<size_t>(line % channels * taps + k)];
    for (int64_t i = 0; i < history; ++i)
      state.push_back(at(length + i));
  }
  TRY(addBias(op, 2, channels, length, y));
  if (activation != "none")
    for (double &value : y)
      value /= 1 + std::exp(-value);
  TRY(op.store(0, x, y));
  return op.store(1, stateExtents, state);
}

} // namespace dovetail::reference::ops
