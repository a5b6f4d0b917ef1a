// SPDX-License-Identifier: Apache-2.0
//
// How much work a problem is, and how many threads a library call is worth. Waking a team costs
// microseconds, which small problems do not repay, so for those the call on one thread is a
// candidate of its own, and for tiny ones the only one. Measuring decides; this only keeps the list
// short. Header-only, shared by providers whose libraries bring threads.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "providers/ProblemReader.h"

namespace dovetail::providers {

/// How much a problem computes and moves.
struct RoughWork {
  double operations = 0; ///< additions and multiplications
  double bytes = 0;      ///< of operands and results
};

inline RoughWork roughWork(const ProblemReader &problem) {
  double bytes = 0, operations = 0;
  auto elements = [&](uint32_t value) {
    return static_cast<double>(product(problem.extents(value)));
  };
  for (uint32_t i = 0; i < problem.raw().value_count; ++i)
    if (problem.inputPosition(i) >= 0 || problem.outputPosition(i) >= 0)
      bytes += elements(i) * static_cast<double>(elementBytes(problem.type(i)));
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const OpReader op = problem.op(i);
    if (op.output(0) == DVT_NO_VALUE)
      continue;
    const double results = elements(op.output(0));
    operations += 4 * results;
    if (!op.hasInput(0) || !op.hasInput(1))
      continue;
    const Dims a = problem.extents(op.input(0)), b = problem.extents(op.input(1));
    const uint32_t weights = op.name().starts_with("q_linear") ? op.input(3) : op.input(1);
    const int64_t outputs = weights == DVT_NO_VALUE || problem.rank(weights) == 0
                                ? 0
                                : problem.extents(weights).front();
    if ((op.name() == "conv" || op.name() == "conv_integer" || op.name() == "q_linear_conv") &&
        outputs > 0)
      operations += 2 * results * elements(weights) / static_cast<double>(outputs);
    else if (op.name() == "conv_transpose" && b.size() > 1)
      operations += 2 * elements(op.input(0)) * elements(op.input(1)) / static_cast<double>(b[0]);
    else if ((op.name() == "mat_mul" || op.name() == "gemm" || op.name() == "mat_mul_integer" ||
              op.name() == "q_linear_mat_mul") &&
             !a.empty())
      operations +=
          2 * results * static_cast<double>(op.integer("transA", 0) ? a.front() : a.back());
    else if ((op.name() == "lstm" || op.name() == "gru" || op.name() == "rnn") && a.size() == 3 &&
             op.hasInput(2))
      operations +=
          2 * static_cast<double>(a[0] * a[1]) * (elements(op.input(1)) + elements(op.input(2)));
    else if (op.name() == "attention" && a.size() > 1 && b.size() > 1)
      operations += 4 * elements(op.input(0)) * static_cast<double>(b[b.size() - 2]);
  }
  return {operations, bytes};
}

/// An estimate for where nothing is measured: the larger of arithmetic and memory traffic, and a
/// fixed cost. `efficiency` is the part of a core's peak with 512-bit vectors that the kernel
/// reaches.
inline double roughMicros(const RoughWork &work, double efficiency, uint32_t team) {
  constexpr double kOperationsPerMicro = 85e3, kBytesPerMicro = 15e3;
  const double start = team > 1 ? 3 : 1;
  return start + std::max(work.operations / (kOperationsPerMicro * efficiency * team),
                          work.bytes / (kBytesPerMicro * std::min<double>(team, 2)));
}

/// Numbers of threads to offer, `threads` first where it is among them.
inline std::vector<uint32_t> teamSizes(const ProblemReader &problem, uint32_t threads) {
  if (threads <= 1)
    return {1};
  const RoughWork work = roughWork(problem);
  const double micros = work.operations / 50e3 + work.bytes / 10e3;
  if (micros < 3)
    return {1};
  return micros < 150 ? std::vector<uint32_t>{threads, 1} : std::vector<uint32_t>{threads};
}

/// What is put behind the name of an algorithm that runs on one thread where more are there.
inline std::string teamSuffix(uint32_t team, uint32_t threads) {
  return team == 1 && threads > 1 ? ":serial" : "";
}

} // namespace dovetail::providers
