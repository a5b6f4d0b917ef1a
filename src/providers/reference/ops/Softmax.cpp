// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and hardmax along one axis, and the losses built on them.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dovetail::reference::ops {

void softmaxInPlace(double *values, int64_t length, int64_t stride, bool logarithm) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t k = 0; k < length; ++k)
    largest = std::max(largest, values[k * stride]);
  for (int64_t k = 0; k < length; ++k)
    sum += std::exp(values[k * stride] - largest);
  for (int64_t k = 0; k < length; ++k) {
    double shifted = values[k * stride] - largest;
    values[k * stride] = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
  }
}

/// Calls body(pointer to the first element, length, stride) for each line along the axis attribute,
/// then stores.
template <typename Body> static Status alongAxis(Invocation &op, Body body) {
  int64_t axis = op.integer("axis", -1);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  std::vector<double> values = op.numbers<double>(0);
  int64_t length = op.shape(0)[static_cast<size_t>(axis)];
  int64_t inner = productOf(op.shape(0), axis + 1, op.rank(0)),
          outer = productOf(op.shape(0), 0, axis);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      body(values.data() + o * length * inner + i, length, inner);
  return op.store(0, op.shape(0), values);
}

Status softmax(Invocation &op) {
  return alongAxis(op, [](double *values, int64_t length, int64_t stride) {
    softmaxInPlace(values, length, stride, false);
  });
}

Status logSoftmax(Invocation &op) {
  return alongAxis(op, [](double *values, int64_t length, int64_t stride) {
    softmaxInPlace(values, length, stride, true);
  });
}

Status hardmax(Invocation &op) {
  return alongAxis(op, [](double *values, int64_t length, int64_t stride) {
    int64_t best = 0;
    for (int64_t k = 1; k < length; ++k)
      if (values[k * stride] > values[best * stride])
        best = k;
    for (int64_t k = 0; k < length; ++k)
      values[k * stride] = k == best;
  });
}

/// Negative log-likelihood of log probabilities [N, C, ...] with targets [N, ...].
static Status likelihood(Invocation &op, const std::vector<double> &logProbabilities) {
  TRY(op.needRank(0, 2));
  Extents expected = op.shape(0);
  expected.erase(expected.begin() + 1);
  if (op.shape(1) != expected)
    return op.bad("targets have extents ", textOf(op.shape(1)), "; they must be ",
                  textOf(expected));
  std::vector<int64_t> targets;
  TRY(op.integerOperand(1, targets));
  int64_t classes = op.shape(0)[1], inner = productOf(op.shape(0), 2, op.rank(0));
  std::vector<double> weights(static_cast<size_t>(classes), 1);
  if (op.has(2)) {
    if (op.in(2).count() != classes)
      return op.bad(op.in(2).count(), " weights for ", classes, " classes");
    weights = op.numbers<double>(2);
  }
  std::optional<int64_t> ignored;
  if (op.hasAttribute("ignore_index"))
    ignored = op.integer("ignore_index", 0);
  std::vector<double> losses(targets.size(), 0);
  double total = 0, totalWeight = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (ignored && targets[i] == *ignored)
      continue;
    if (targets[i] < 0 || targets[i] >= classes)
      return op.bad("target ", targets[i], " is outside [0, ", classes - 1, "]");
    auto n = static_cast<int64_t>(i) / inner, at = static_cast<int64_t>(i) % inner;
    double weight = weights[static_cast<size_t>(targets[i])];
    losses[i] =
        -weight * logProbabilities[static_cast<size_t>((n * classes + targets[i]) * inner + at)];
    total += losses[i];
    totalWeight += weight;
  }
  std::string_view reduction = op.text("reduction", "mean");
  if (reduction == "none")
    return op.store(0, op.shape(1), losses);
  if (reduction != "sum" && reduction != "mean")
    return op.unsupported("reduction=", reduction, "; none, sum and mean are known");
  return op.store(0, {}, std::vector<double>{reduction == "sum" ? total : total / totalWeight});
}

Status negativeLogLikelihoodLoss(Invocation &op) { return likelihood(op, op.numbers<double>(0)); }

Status softmaxCrossEntropyLoss(Invocation &op) {
  TRY(op.needRank(0, 2));
  std::vector<double> values = op.numbers<double>(0);
  int64_t classes = op.shape(0)[1], inner = productOf(op.shape(0), 2, op.rank(0));
  for (int64_t n = 0; n < op.shape(0)[0]; ++n)
    for (int64_t i = 0; i < inner; ++i)
      softmaxInPlace(values.data() + n * classes * inner + i, classes, inner, true);
  TRY(likelihood(op, values));
  return op.store(1, op.shape(0), values);
}

} // namespace dovetail::reference::ops
