// SPDX-License-Identifier: Apache-2.0
//
// Normalisations: statistics of groups of elements, then scale and shift. Statistics are computed
// in double in two passes whatever stash_type says.
#include "Ops.h"

#include <algorithm>
#include <cmath>

namespace dovetail::reference::ops {

namespace {

struct Moments {
  double mean, variance;
};

/// Of `count` elements in a row.
Moments momentsOf(const double *values, int64_t count) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += values[i];
  double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i)
    squares += (values[i] - mean) * (values[i] - mean);
  return {mean, squares / static_cast<double>(count)};
}

} // namespace

/// Operand `input` must hold one element for each channel.
static Status channelOperand(const Invocation &op, size_t input, int64_t channels,
                             std::vector<double> &values) {
  if (op.in(input).count() != channels)
    return op.bad("operand ", input, " has extents ", textOf(op.shape(input)), "; ", channels,
                  " elements are needed");
  values = op.numbers<double>(input);
  return {};
}

Status batchNormalization(Invocation &op) {
  TRY(op.needRank(0, 1));
  int64_t channels = op.rank(0) > 1 ? op.shape(0)[1] : 1, batch = op.shape(0)[0];
  int64_t inner = productOf(op.shape(0), std::min<int64_t>(2, op.rank(0)), op.rank(0));
  std::vector<double> x = op.numbers<double>(0), scale, shift, mean, variance;
  TRY(channelOperand(op, 1, channels, scale));
  TRY(channelOperand(op, 2, channels, shift));
  TRY(channelOperand(op, 3, channels, mean));
  TRY(channelOperand(op, 4, channels, variance));
  double epsilon = op.real("epsilon", 1e-5f), momentum = op.real("momentum", 0.9f);
  std::vector<double> runningMean = mean, runningVariance = variance;
  if (op.integer("training_mode", 0))
    for (int64_t c = 0; c < channels; ++c) {
      std::vector<double> line;
      for (int64_t n = 0; n < batch; ++n)
        line.insert(line.end(), x.begin() + (n * channels + c) * inner,
                    x.begin() + (n * channels + c + 1) * inner);
      Moments moments = momentsOf(line.data(), static_cast<int64_t>(line.size()));
      auto at = static_cast<size_t>(c);
      mean[at] = moments.mean;
      variance[at] = moments.variance;
      runningMean[at] = runningMean[at] * momentum + mean[at] * (1 - momentum);
      runningVariance[at] = runningVariance[at] * momentum + variance[at] * (1 - momentum);
    }
  for (size_t i = 0; i < x.size(); ++i) {
    size_t c = i / static_cast<size_t>(inner) % static_cast<size_t>(channels);
    x[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + shift[c];
  }
  TRY(op.store(0, op.shape(0), x));
  TRY(op.store(1, {channels}, runningMean));
  return op.store(2, {channels}, runningVariance);
}

/// Normalises each of `groups` runs of equal length and applies scale and shift of channels (axis
/// 1), or of groups where there is one of each for a group.
static Status normalizeGroups(Invocation &op, int64_t groupsOfOne, bool perGroup) {
  int64_t channels = op.shape(0)[1], inner = productOf(op.shape(0), 2, op.rank(0));
  std::vector<double> x = op.numbers<double>(0), scale, shift;
  TRY(channelOperand(op, 1, perGroup ? groupsOfOne : channels, scale));
  TRY(channelOperand(op, 2, perGroup ? groupsOfOne : channels, shift));
  double epsilon = op.real("epsilon", 1e-5f);
  int64_t perGroupChannels = channels / groupsOfOne, length = perGroupChannels * inner;
  for (int64_t g = 0; g < op.shape(0)[0] * groupsOfOne; ++g) {
    double *run = x.data() + g * length;
    Moments moments = momentsOf(run, length);
    for (int64_t i = 0; i < length; ++i) {
      int64_t group = g % groupsOfOne;
      auto c = static_cast<size_t>(perGroup ? group : group * perGroupChannels + i / inner);
      run[i] =
          (run[i] - moments.mean) / std::sqrt(moments.variance + epsilon) * scale[c] + shift[c];
    }
  }
  return op.store(0, op.shape(0), x);
}

Status instanceNormalization(Invocation &op) {
  TRY(op.needRank(0, 2));
  if (!op.shape(0)[1])
    return op.store(0, op.shape(0), std::vector<double>());
  return normalizeGroups(op, op.shape(0)[1], false);
}

Status groupNormalization(Invocation &op) {
  TRY(op.needRank(0, 2));
  int64_t groups = op.integer("num_groups", 0);
  if (groups < 1 || op.shape(0)[1] % groups)
    return op.bad(op.shape(0)[1], " channels do not divide into ", groups, " groups");
  return normalizeGroups(op, groups, op.version() < 21);
}

/// Statistics over the axes from `axis` on; scale and bias broadcast to the operand.
static Status normalizeTail(Invocation &op, bool subtractMean) {
  int64_t axis = op.integer("axis", -1);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  double epsilon = op.real("epsilon", 1e-5f);
  int64_t outer = productOf(op.shape(0), 0, axis),
          length = productOf(op.shape(0), axis, op.rank(0));
  std::vector<double> x = op.numbers<double>(0), means, inverses;
  for (int64_t o = 0; o < outer; ++o) {
    double *run = x.data() + o * length;
    Moments moments = momentsOf(run, length);
    double mean = subtractMean ? moments.mean : 0;
    double spread =
        subtractMean ? moments.variance : moments.variance + moments.mean * moments.mean;
    double inverse = 1 / std::sqrt(spread + epsilon);
    for (int64_t i = 0; i < length; ++i)
      run[i] = (run[i] - mean) * inverse;
    means.push_back(mean);
    inverses.push_back(inverse);
  }
  for (size_t operand : {1, 2}) {
    if (!op.has(operand))
      continue;
    if (!broadcastsTo(op.shape(operand), op.shape(0)))
      return op.bad("operand ", operand, " of ", textOf(op.shape(operand)),
                    " does not broadcast to ", textOf(op.shape(0)));
    std::vector<double> values = op.numbers<double>(operand);
    walk<1>(op.shape(0), {broadcastStrides(op.shape(operand), op.shape(0))},
            [&](int64_t linear, const std::array<int64_t, 1> &at) {
              double value = values[static_cast<size_t>(at[0])];
              double &element = x[static_cast<size_t>(linear)];
              element = operand == 1 ? element * value : element + value;
            });
  }
  TRY(op.store(0, op.shape(0), x));
  Extents statistics = op.shape(0);
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  TRY(op.store(1, statistics, means));
  return op.store(2, statistics, inverses);
}

Status layerNormalization(Invocation &op) { return normalizeTail(op, true); }
Status rmsNormalization(Invocation &op) { return normalizeTail(op, false); }

Status lpNormalization(Invocation &op) {
  int64_t axis = op.integer("axis", -1), p = op.integer("p", 2);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  if (p != 1 && p != 2)
    return op.unsupported("p=", p, "; 1 and 2 are known");
  std::vector<double> x = op.numbers<double>(0);
  int64_t length = op.shape(0)[static_cast<size_t>(axis)];
  int64_t inner = productOf(op.shape(0), axis + 1, op.rank(0)),
          outer = productOf(op.shape(0), 0, axis);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      double *line = x.data() + o * length * inner + i, sum = 0;
      for (int64_t k = 0; k < length; ++k)
        sum += p == 1 ? std::fabs(line[k * inner]) : line[k * inner] * line[k * inner];
      double norm = p == 1 ? sum : std::sqrt(sum);
      for (int64_t k = 0; k < length; ++k)
        line[k * inner] = norm == 0 ? 0 : line[k * inner] / norm;
    }
  return op.store(0, op.shape(0), x);
}

Status lrn(Invocation &op) {
  TRY(op.needRank(0, 2));
  int64_t size = op.integer("size", 1), channels = op.shape(0)[1];
  if (size < 1)
    return op.bad("size ", size, " must be at least 1");
  double alpha = op.real("alpha", 1e-4f), beta = op.real("beta", 0.75), bias = op.real("bias", 1);
  int64_t inner = productOf(op.shape(0), 2, op.rank(0));
  std::vector<double> x = op.numbers<double>(0), y(x.size());
  for (int64_t i = 0, count = op.in(0).count(); i < count; ++i) {
    int64_t c = i / inner % channels, base = i - c * inner;
    double squares = 0;
    for (int64_t k = std::max<int64_t>(0, c - (size - 1) / 2),
                 end = std::min(channels - 1, c + size / 2);
         k <= end; ++k) {
      double value = x[static_cast<size_t>(base + k * inner)];
      squares += value * value;
    }
    y[static_cast<size_t>(i)] = x[static_cast<size_t>(i)] /
                                std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
  }
  return op.store(0, op.shape(0), y);
}

Status meanVarianceNormalization(Invocation &op) {
  Extents axes = op.integers("axes").value_or(Extents{0, 2, 3});
  TRY(op.normalizeAxes(axes, op.rank(0)));
  Extents kept = op.shape(0);
  int64_t length = 1;
  for (int64_t axis : axes) {
    length *= kept[static_cast<size_t>(axis)];
    kept[static_cast<size_t>(axis)] = 1;
  }
  std::vector<double> x = op.numbers<double>(0);
  auto groups = static_cast<size_t>(elementCount(kept).value_or(0));
  std::vector<double> mean(groups, 0), variance(groups, 0);
  auto each = [&](auto body) {
    walk<1>(op.shape(0), {broadcastStrides(kept, op.shape(0))},
            [&](int64_t linear, const std::array<int64_t, 1> &at) {
              body(x[static_cast<size_t>(linear)], static_cast<size_t>(at[0]));
            });
  };
  auto n = static_cast<double>(length);
  each([&](double value, size_t group) { mean[group] += value / n; });
  each([&](double value, size_t group) {
    variance[group] += (value - mean[group]) * (value - mean[group]) / n;
  });
  // ONNX's function body adds 1e-9 to the deviation.
  each([&](double &value, size_t group) {
    value = (value - mean[group]) / (std::sqrt(variance[group]) + 1e-9);
  });
  return op.store(0, op.shape(0), x);
}

} // namespace dovetail::reference::ops
