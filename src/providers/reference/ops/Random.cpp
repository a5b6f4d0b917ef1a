// SPDX-License-Identifier: Apache-2.0
//
// Random numbers. With a seed the same numbers come every time; without one every run continues a
// process-wide sequence, and the candidate does not call itself deterministic. The generator is
// SplitMix64, normal numbers are made by the Box-Muller transform.
#include "Ops.h"

#include <atomic>
#include <bit>
#include <cmath>

namespace dovetail::reference::ops {

namespace {

class Generator {
public:
  explicit Generator(const Invocation &op) {
    // One step apart is enough: the output function decorrelates neighbouring states.
    static std::atomic<uint64_t> sequence{0};
    state = op.hasAttribute("seed") ? std::bit_cast<uint64_t>(op.real("seed", 0))
                                    : (sequence += uint64_t(1) << 32);
  }
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double normal() {
    double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::acos(-1.0) * uniform());
  }

private:
  uint64_t state;
};

} // namespace

/// Fills a result of `extents` with draw(generator).
template <typename Draw> static Status fill(Invocation &op, const Extents &extents, Draw draw) {
  std::optional<int64_t> count = elementCount(extents);
  if (!count)
    return op.bad("shape ", textOf(extents), " is not a shape");
  Generator generator(op);
  std::vector<double> values(static_cast<size_t>(*count));
  for (double &value : values)
    value = draw(generator);
  return op.store(0, extents, values);
}

/// The shape attribute where there is no operand.
static Extents shapeOf(const Invocation &op) {
  return op.has(0) ? op.shape(0) : op.integers("shape").value_or(Extents());
}

Status randomUniform(Invocation &op) {
  double low = op.real("low", 0), high = op.real("high", 1);
  return fill(op, shapeOf(op),
              [=](Generator &generator) { return low + (high - low) * generator.uniform(); });
}

Status randomNormal(Invocation &op) {
  double mean = op.real("mean", 0), scale = op.real("scale", 1);
  return fill(op, shapeOf(op),
              [=](Generator &generator) { return mean + scale * generator.normal(); });
}

Status bernoulli(Invocation &op) {
  std::vector<double> chances = op.numbers<double>(0);
  size_t next = 0;
  return fill(op, op.shape(0), [&](Generator &generator) {
    return generator.uniform() < chances[next++] ? 1.0 : 0.0;
  });
}

Status multinomial(Invocation &op) {
  int64_t samples = op.integer("sample_size", 1);
  if (op.rank(0) != 2 || op.shape(0)[1] < 1 || samples < 0)
    return op.bad("log probabilities ", textOf(op.shape(0)), " and sample_size ", samples);
  int64_t classes = op.shape(0)[1], drawn = 0;
  std::vector<double> chances = op.numbers<double>(0);
  for (int64_t n = 0; n < op.shape(0)[0]; ++n)
    softmaxInPlace(chances.data() + n * classes, classes, 1, false);
  return fill(op, {op.shape(0)[0], samples}, [&](Generator &generator) {
    const double *line = chances.data() + drawn++ / samples * classes;
    double left = generator.uniform();
    int64_t chosen = 0;
    while (chosen + 1 < classes && left >= line[chosen])
      left -= line[chosen++];
    return static_cast<double>(chosen);
  });
}

Status dropout(Invocation &op) {
  double ratio = 0.5;
  if (op.has(1))
    TRY(op.realScalar(1, ratio));
  if (!(ratio >= 0 && ratio < 1))
    return op.bad("ratio ", ratio, " is outside [0, 1)");
  bool training = op.has(2) && op.in(2).count() == 1 && op.numbers<int64_t>(2)[0];
  Generator generator(op);
  std::vector<double> values = op.numbers<double>(0);
  std::vector<uint64_t> kept(values.size(), 1);
  for (size_t i = 0; i < values.size() && training && ratio > 0; ++i) {
    kept[i] = generator.uniform() >= ratio;
    values[i] *= kept[i] ? 1 / (1 - ratio) : 0;
  }
  TRY(op.store(0, op.shape(0), values));
  return op.store(1, op.shape(0), kept);
}

} // namespace dovetail::reference::ops
