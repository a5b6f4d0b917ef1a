// SPDX-License-Identifier: Apache-2.0
//
// Error bounds from types and reduction lengths: rounding errors of a sum of n terms grow like
// sqrt(n) for random signs (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2);
// the factors leave room for a different order of summation and for polynomial approximations of a
// few units in the last place.
#include <algorithm>
#include <cmath>

#include "plan/Trial.h"

namespace dovetail::plan {
namespace {

int64_t staticOr(const Extent &extent, int64_t other) {
  return extent.isStatic() ? extent.value() : other;
}

int64_t elements(const ProblemValue &value) {
  int64_t count = 1;
  for (const Extent &extent : value.extents)
    count *= std::max<int64_t>(1, staticOr(extent, 1024));
  return count;
}

double unitRoundoff(dvt_type type) {
  switch (type) {
  case DVT_F64:
    return 0x1p-53;
  case DVT_F16:
    return 0x1p-11;
  case DVT_BF16:
    return 0x1p-8;
  default:
    return 0x1p-24;
  }
}

} // namespace

int64_t reductionLength(const Problem &problem) {
  int64_t longest = 1;
  for (const ProblemOp &op : problem.ops) {
    auto operand = [&](size_t i) -> const ProblemValue * {
      return i < op.inputs.size() && op.inputs[i] != kNoValue ? &problem.values[op.inputs[i]]
                                                              : nullptr;
    };
    if (op.name == "conv" || op.name == "conv_transpose") {
      if (const ProblemValue *weights = operand(1); weights && !weights->extents.empty())
        longest = std::max(longest, elements(*weights) /
                                        std::max<int64_t>(1, staticOr(weights->extents[0], 1)));
    } else if (op.name.starts_with("q_linear") || op.name.ends_with("_integer")) {
      continue; // sums of integers are exact
    } else if (op.name == "mat_mul" || op.name == "gemm") {
      if (const ProblemValue *a = operand(0); a && !a->extents.empty())
        longest = std::max(longest, std::max(staticOr(a->extents.back(), 1024),
                                             staticOr(a->extents.front(), 1024)));
    } else if (op.name == "lstm" || op.name == "gru" || op.name == "rnn") {
      // Each step adds the errors of its own sums to what is left of those before.
      const ProblemValue *x = operand(0), *r = operand(2);
      if (x && r && x->extents.size() == 3 && !r->extents.empty())
        longest = std::max(longest,
                           staticOr(x->extents[0], 64) +
                               4 * (staticOr(x->extents[2], 64) + staticOr(r->extents.back(), 64)));
    } else if (op.name == "attention") {
      if (const ProblemValue *k = operand(1); k && k->extents.size() >= 2)
        longest = std::max(longest, staticOr(k->extents[k->extents.size() - 2], 1024) +
                                        staticOr(k->extents.back(), 64));
    } else if (const ProblemValue *in = operand(0)) {
      int64_t out = 1;
      for (uint32_t value : op.outputs)
        if (value != kNoValue)
          out = std::max(out, elements(problem.values[value]));
      longest = std::max(longest, elements(*in) / std::max<int64_t>(1, out));
      if (op.name.find("normalization") != std::string::npos ||
          op.name.find("softmax") != std::string::npos)
        longest = std::max(longest, in->extents.empty() ? 1 : staticOr(in->extents.back(), 1024));
    }
  }
  return longest;
}

double errorBound(const Problem &problem, const std::string &numerics) {
  double roundoff = 0;
  for (const ProblemValue &value : problem.values)
    if (value.type == DVT_F32 || value.type == DVT_F64 || value.type == DVT_F16 ||
        value.type == DVT_BF16)
      roundoff = std::max(roundoff, unitRoundoff(value.type));
  if (roundoff == 0)
    return 0;
  if (numerics.find("bf16") != std::string::npos)
    roundoff = std::max(roundoff, unitRoundoff(DVT_BF16));
  // tf32 has f16's ten bits of fraction.
  if (numerics.find("tf32") != std::string::npos || numerics.find("f16") != std::string::npos)
    roundoff = std::max(roundoff, unitRoundoff(DVT_F16));
  double bound = roundoff * (64 + 8 * std::sqrt(static_cast<double>(reductionLength(problem))));
  if (numerics.find("winograd") != std::string::npos || numerics.find("fft") != std::string::npos)
    bound *= 16;
  return bound;
}

} // namespace dovetail::plan
