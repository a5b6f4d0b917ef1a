// SPDX-License-Identifier: Apache-2.0
//
// Windows reduced: maximum with indices, average and Lp norm, over windows or whole images, and
// max_unpool.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../Window.h"

namespace dovetail::reference::ops {

static Status planPool(const Invocation &op, Window &window, Extents &result) {
  TRY(op.needRank(0, 3));
  std::optional<Extents> kernel = op.integers("kernel_shape");
  if (!kernel)
    return op.bad("kernel_shape is missing");
  TRY(planWindow(op, spatialOf(op.shape(0)), *kernel, Slider::Pool, window));
  result = {op.shape(0)[0], op.shape(0)[1]};
  result.insert(result.end(), window.output.begin(), window.output.end());
  return {};
}

/// Calls body(input index in the image) for each element of the window at `at` that lies in the
/// image.
template <typename Body>
static void forEachTap(const Window &window, const Extents &at, Body body) {
  Extents strides = rowMajorStrides(window.input);
  forEachIndex(window.kernel, [&](int64_t, const Extents &k) {
    int64_t place = 0;
    for (size_t i = 0; i < k.size(); ++i) {
      int64_t index = window.start(i, at[i]) + k[i] * window.dilations[i];
      if (index < 0 || index >= window.input[i])
        return;
      place += index * strides[i];
    }
    body(place);
  });
}

/// Index of an element of one image with the first spatial dimension innermost.
static int64_t columnMajor(int64_t place, const Extents &extents) {
  int64_t index = 0;
  Extents strides = rowMajorStrides(extents);
  for (size_t i = extents.size(); i-- > 0;)
    index = index * extents[i] + place / strides[i] % extents[i];
  return index;
}

template <typename W>
static Status maxPoolAs(Invocation &op, const Window &window, const Extents &result) {
  std::vector<W> x = op.numbers<W>(0), y;
  std::vector<int64_t> indices;
  int64_t images = op.shape(0)[0] * op.shape(0)[1], inner = productOf(op.shape(0), 2, op.rank(0));
  bool columns = op.integer("storage_order", 0);
  for (int64_t image = 0; image < images; ++image) {
    const W *from = x.data() + image * inner;
    forEachIndex(window.output, [&](int64_t, const Extents &at) {
      int64_t best = -1;
      forEachTap(window, at, [&](int64_t place) {
        bool isNaN = from[place] != from[place];
        if (best < 0 || from[place] > from[best] || (isNaN && from[best] == from[best]))
          best = place;
      });
      // A window that lies in the padding alone has no maximum.
      W none = std::numeric_limits<W>::has_infinity ? -std::numeric_limits<W>::infinity()
                                                    : static_cast<W>(lowestInteger(op.in(0).type));
      y.push_back(best < 0 ? none : from[best]);
      indices.push_back(
          best < 0 ? -1 : image * inner + (columns ? columnMajor(best, window.input) : best));
    });
  }
  TRY(op.store(0, result, y));
  return op.store(1, result, indices);
}

Status maxPool(Invocation &op) {
  Window window;
  Extents result;
  TRY(planPool(op, window, result));
  return withNumbers(op.kind(0),
                     [&](auto kind) { return maxPoolAs<decltype(kind)>(op, window, result); });
}

/// Elements of the window that count when padding does: those in the operand or in its stated
/// padding, not those that ceil_mode adds beyond.
static int64_t paddedTaps(const Window &window, const Extents &at) {
  int64_t count = 1;
  for (size_t i = 0; i < at.size(); ++i) {
    int64_t inside = 0;
    for (int64_t k = 0; k < window.kernel[i]; ++k)
      inside +=
          window.start(i, at[i]) + k * window.dilations[i] < window.input[i] + window.after[i];
    count *= inside;
  }
  return count;
}

Status averagePool(Invocation &op) {
  Window window;
  Extents result;
  TRY(planPool(op, window, result));
  bool includePad = op.integer("count_include_pad", 0);
  std::vector<double> x = op.numbers<double>(0), y;
  int64_t images = op.shape(0)[0] * op.shape(0)[1], inner = productOf(op.shape(0), 2, op.rank(0));
  for (int64_t image = 0; image < images; ++image)
    forEachIndex(window.output, [&](int64_t, const Extents &at) {
      double sum = 0;
      int64_t taps = 0;
      forEachTap(window, at, [&](int64_t place) {
        sum += x[static_cast<size_t>(image * inner + place)];
        ++taps;
      });
      taps = includePad ? paddedTaps(window, at) : taps;
      y.push_back(taps ? sum / static_cast<double>(taps) : 0);
    });
  return op.store(0, result, y);
}

static Status needNorm(const Invocation &op, int64_t p) {
  return p < 1 ? op.bad("p is ", p, "; it must be at least 1") : Status();
}

Status lpPool(Invocation &op) {
  Window window;
  Extents result;
  TRY(planPool(op, window, result));
  int64_t p = op.integer("p", 2);
  TRY(needNorm(op, p));
  auto power = static_cast<double>(p);
  std::vector<double> x = op.numbers<double>(0), y;
  int64_t images = op.shape(0)[0] * op.shape(0)[1], inner = productOf(op.shape(0), 2, op.rank(0));
  for (int64_t image = 0; image < images; ++image)
    forEachIndex(window.output, [&](int64_t, const Extents &at) {
      double sum = 0;
      forEachTap(window, at, [&](int64_t place) {
        sum += std::pow(std::fabs(x[static_cast<size_t>(image * inner + place)]), power);
      });
      y.push_back(std::pow(sum, 1 / power));
    });
  return op.store(0, result, y);
}

/// Folds each whole image and finishes with the number of its elements.
template <typename W, typename Fold, typename Finish>
static Status poolGlobally(Invocation &op, W start, Fold fold, Finish finish) {
  TRY(op.needRank(0, 2));
  int64_t images = op.shape(0)[0] * op.shape(0)[1], inner = productOf(op.shape(0), 2, op.rank(0));
  std::vector<W> x = op.numbers<W>(0), y;
  for (int64_t image = 0; image < images; ++image) {
    W value = start;
    for (int64_t i = 0; i < inner; ++i)
      value = fold(value, x[static_cast<size_t>(image * inner + i)]);
    y.push_back(finish(value, inner));
  }
  Extents result(op.shape(0).size(), 1);
  result[0] = op.shape(0)[0];
  result[1] = op.shape(0)[1];
  return op.store(0, result, y);
}

Status globalAveragePool(Invocation &op) {
  return poolGlobally(
      op, 0.0, [](double a, double x) { return a + x; },
      [](double sum, int64_t count) { return sum / static_cast<double>(count); });
}

Status globalMaxPool(Invocation &op) {
  return poolGlobally(
      op, -std::numeric_limits<double>::infinity(),
      [](double a, double x) { return x > a || std::isnan(x) ? x : a; },
      [](double value, int64_t) { return value; });
}

Status globalLpPool(Invocation &op) {
  int64_t p = op.integer("p", 2);
  TRY(needNorm(op, p));
  auto power = static_cast<double>(p);
  return poolGlobally(
      op, 0.0, [=](double a, double x) { return a + std::pow(std::fabs(x), power); },
      [=](double sum, int64_t) { return std::pow(sum, 1 / power); });
}

Status maxUnpool(Invocation &op) {
  TRY(op.needRank(0, 3));
  std::optional<Extents> kernel = op.integers("kernel_shape");
  if (!kernel || op.shape(1) != op.shape(0))
    return op.bad("kernel_shape is missing or indices have other extents than the operand");
  Window window;
  TRY(planTransposedWindow(op, spatialOf(op.shape(0)), *kernel, window));
  // Indices count in the image that was pooled; output_shape may be larger, and then they count in
  // it.
  Extents natural = {op.shape(0)[0], op.shape(0)[1]}, extents = natural;
  natural.insert(natural.end(), window.input.begin(), window.input.end());
  if (op.has(2)) {
    TRY(op.integerOperand(2, extents));
    if (extents.size() != natural.size() || !elementCount(extents))
      return op.bad("output_shape ", textOf(extents), " for an operand ", textOf(op.shape(0)));
  } else {
    extents = natural;
  }
  std::vector<int64_t> indices;
  TRY(op.integerOperand(1, indices));
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  std::memset(result->data, 0, result->bytes());
  Extents from = rowMajorStrides(natural), to = rowMajorStrides(extents);
  int64_t count = elementCount(natural).value_or(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= count)
      return op.bad("index ", indices[i], " is outside [0, ", count - 1, "]");
    int64_t place = 0;
    for (size_t d = 0; d < natural.size(); ++d) {
      int64_t at = indices[i] / from[d] % natural[d];
      if (at >= extents[d])
        return op.bad("index ", indices[i], " is outside output_shape ", textOf(extents));
      place += at * to[d];
    }
    copyElement(op.in(0), static_cast<int64_t>(i), *result, place);
  }
  return {};
}

} // namespace dovetail::reference::ops
