// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms, by their definition and so in quadratic time, window functions and mel
// weights.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace dovetail::reference::ops {

using Complex = std::complex<double>;
static const double kPi = std::acos(-1.0);

/// Sum over n of x[n] exp(-+2 pi i k n / length) for k below `count`.
static std::vector<Complex> transform(const std::vector<Complex> &x, int64_t count, bool inverse) {
  auto length = static_cast<int64_t>(x.size());
  std::vector<Complex> roots, y;
  for (int64_t n = 0; n < length; ++n) {
    double angle = 2 * kPi * static_cast<double>(n) / static_cast<double>(length);
    roots.emplace_back(std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle));
  }
  for (int64_t k = 0; k < count; ++k) {
    Complex sum = 0;
    for (int64_t n = 0; n < length; ++n)
      sum += x[static_cast<size_t>(n)] * roots[static_cast<size_t>(k * n % length)];
    y.push_back(inverse ? sum / static_cast<double>(length) : sum);
  }
  return y;
}

Status dft(Invocation &op) {
  TRY(op.needRank(0, 2));
  bool inverse = op.integer("inverse", 0), onesided = op.integer("onesided", 0);
  int64_t axis = op.version() < 20 ? op.integer("axis", 1) : -2, parts = op.shape(0).back();
  if (op.has(2))
    TRY(op.integerScalar(2, axis));
  TRY(op.normalizeAxis(axis, op.rank(0)));
  if (axis == op.rank(0) - 1 || (parts != 1 && parts != 2))
    return op.bad("axis ", axis, " of ", textOf(op.shape(0)),
                  "; the last axis holds real and imaginary parts");
  int64_t given = op.shape(0)[static_cast<size_t>(axis)];
  int64_t length = inverse && onesided ? 2 * (given - 1) : given;
  if (op.has(1))
    TRY(op.integerScalar(1, length));
  if (length < 1 || length > 1 << 24)
    return op.bad("a transform of length ", length);
  int64_t count = onesided && !inverse ? length / 2 + 1 : length,
          resultParts = onesided && inverse ? 1 : 2;
  Extents extents = op.shape(0);
  extents[static_cast<size_t>(axis)] = count;
  extents.back() = resultParts;
  int64_t outer = productOf(extents, 0, axis), inner = productOf(extents, axis + 1, op.rank(0) - 1);
  std::vector<double> x = op.numbers<double>(0);
  std::vector<double> y(static_cast<size_t>(outer * count * inner * resultParts));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      auto at = [&](int64_t n) {
        auto from = static_cast<size_t>(((o * given + n) * inner + i) * parts);
        return Complex(x[from], parts == 2 ? x[from + 1] : 0);
      };
      std::vector<Complex> line(static_cast<size_t>(length), 0);
      int64_t half = length / 2 + 1;
      for (int64_t n = 0; n < std::min(given, onesided && inverse ? half : length); ++n)
        line[static_cast<size_t>(n)] = at(n);
      // The other half of a one-sided spectrum is its mirror image, conjugated.
      for (int64_t n = half; n < length && onesided && inverse; ++n)
        line[static_cast<size_t>(n)] = std::conj(line[static_cast<size_t>(length - n)]);
      if (onesided && inverse) {
        line[0] = line[0].real();
        if (length % 2 == 0)
          line[static_cast<size_t>(length / 2)] = line[static_cast<size_t>(length / 2)].real();
      }
      std::vector<Complex> result = transform(line, count, inverse);
      for (int64_t k = 0; k < count; ++k) {
        auto to = static_cast<size_t>(((o * count + k) * inner + i) * resultParts);
        y[to] = result[static_cast<size_t>(k)].real();
        if (resultParts == 2)
          y[to + 1] = result[static_cast<size_t>(k)].imag();
      }
    }
  return op.store(0, extents, y);
}

Status stft(Invocation &op) {
  if (op.rank(0) != 3 || (op.shape(0)[2] != 1 && op.shape(0)[2] != 2))
    return op.bad("a signal of ", textOf(op.shape(0)), "; [N,L,1] or [N,L,2] is needed");
  int64_t batch = op.shape(0)[0], signal = op.shape(0)[1], parts = op.shape(0)[2], step = 0,
          length = signal;
  TRY(op.integerScalar(1, step));
  std::vector<double> window;
  if (op.has(2)) {
    window = op.numbers<double>(2);
    length = op.in(2).count();
  }
  if (op.has(3))
    TRY(op.integerScalar(3, length));
  if (step < 1 || length < 1 || length > signal || (op.has(2) && op.in(2).count() != length))
    return op.bad("frames of ", length, " in steps of ", step, " over ", signal, " samples");
  int64_t frames = (signal - length) / step + 1,
          bins = op.integer("onesided", 1) ? length / 2 + 1 : length;
  std::vector<double> x = op.numbers<double>(0), y;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t frame = 0; frame < frames; ++frame) {
      std::vector<Complex> line;
      for (int64_t i = 0; i < length; ++i) {
        auto from = static_cast<size_t>((n * signal + frame * step + i) * parts);
        Complex sample(x[from], parts == 2 ? x[from + 1] : 0);
        line.push_back(window.empty() ? sample : sample * window[static_cast<size_t>(i)]);
      }
      for (Complex value : transform(line, bins, false)) {
        y.push_back(value.real());
        y.push_back(value.imag());
      }
    }
  return op.store(0, {batch, frames, bins, 2}, y);
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), with N the size or, where not periodic, one less.
static Status window(Invocation &op, double a0, double a1, double a2) {
  int64_t size = 0;
  TRY(op.integerScalar(0, size));
  if (size < 0 || size > int64_t(1) << 31)
    return op.bad("a window of size ", size);
  double period = static_cast<double>(op.integer("periodic", 1) ? size : size - 1);
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    double angle = 2 * kPi * static_cast<double>(n) / period;
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return op.store(0, {size}, values);
}

Status hannWindow(Invocation &op) { return window(op, 0.5, 0.5, 0); }
Status hammingWindow(Invocation &op) { return window(op, 25.0 / 46, 21.0 / 46, 0); }
Status blackmanWindow(Invocation &op) { return window(op, 0.42, 0.5, 0.08); }

Status melWeightMatrix(Invocation &op) {
  int64_t bands = 0, length = 0, rate = 0;
  double low = 0, high = 0;
  TRY(op.integerScalar(0, bands));
  TRY(op.integerScalar(1, length));
  TRY(op.integerScalar(2, rate));
  TRY(op.realScalar(3, low));
  TRY(op.realScalar(4, high));
  if (bands < 0 || length < 0 || rate < 1 || bands > 1 << 24 || length > 1 << 24 ||
      !(low >= 0 && low <= high))
    return op.bad(bands, " bands of ", length, " samples at ", rate, " Hz between ", low, " and ",
                  high);
  int64_t bins = length / 2 + 1;
  auto mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10.0); };
  double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    double hertz =
        700 * std::expm1((static_cast<double>(i) * step + mel(low)) / 2595 * std::log(10.0));
    edges.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  if (edges.back() > bins)
    return op.bad("the upper edge of ", high, " Hz lies beyond half the sample rate");
  std::vector<double> weights(static_cast<size_t>(bins * bands), 0);
  auto set = [&](int64_t bin, int64_t band, double value) {
    if (bin < bins)
      weights[static_cast<size_t>(bin * bands + band)] = value;
  };
  for (int64_t band = 0; band < bands; ++band) {
    int64_t left = edges[static_cast<size_t>(band)], centre = edges[static_cast<size_t>(band + 1)];
    int64_t right = edges[static_cast<size_t>(band + 2)];
    for (int64_t bin = left; bin <= centre; ++bin)
      set(bin, band,
          left == centre ? 1
                         : static_cast<double>(bin - left) / static_cast<double>(centre - left));
    for (int64_t bin = centre; bin < right; ++bin)
      set(bin, band, static_cast<double>(right - bin) / static_cast<double>(right - centre));
  }
  return op.store(0, {bins, bands}, weights);
}

} // namespace dovetail::reference::ops
