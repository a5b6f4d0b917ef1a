// SPDX-License-Identifier: Apache-2.0
//
// Roofline estimates (Williams, Waterman, Patterson 2009): time is the larger of work over peak and
// traffic over bandwidth, with an efficiency by family, plus a fixed cost per step. Used where
// nothing was measured.
#include <algorithm>
#include <string_view>

#include "plan/Evaluations.h"

namespace dovetail::plan {
namespace {

double valueOf(const Extent &extent, const SymbolValues &symbols) {
  return static_cast<double>(extent.evaluate(symbols).value_or(64));
}

double elementsOf(const ProblemValue &value, const SymbolValues &symbols) {
  double count = 1;
  for (const Extent &extent : value.extents)
    count *= valueOf(extent, symbols);
  return count;
}

double flopsOf(const Problem &problem, const SymbolValues &symbols) {
  double flops = 0;
  for (const ProblemOp &op : problem.ops) {
    if (op.outputs.empty() || op.outputs[0] == kNoValue)
      continue;
    double outputs = elementsOf(problem.values[op.outputs[0]], symbols);
    bool two = op.inputs.size() > 1 && op.inputs[1] != kNoValue;
    const size_t second = op.name.starts_with("q_linear") && op.inputs.size() > 3 ? 3 : 1;
    if (two && (op.name == "conv" || op.name == "conv_transpose" || op.name == "conv_integer" ||
                op.name == "q_linear_conv")) {
      const ProblemValue &weights = problem.values[op.inputs[second]];
      double perOutput =
          elementsOf(weights, symbols) / std::max(1.0, valueOf(weights.extents[0], symbols));
      flops += 2 * perOutput *
               (op.name != "conv_transpose" ? outputs
                                            : elementsOf(problem.values[op.inputs[0]], symbols));
    } else if (two && (op.name == "mat_mul" || op.name == "gemm" || op.name == "mat_mul_integer" ||
                       op.name == "q_linear_mat_mul")) {
      const ProblemValue &a = problem.values[op.inputs[0]];
      bool transposed =
          op.attributes.count("transA") && std::get<int64_t>(op.attributes.at("transA")) != 0;
      if (!a.extents.empty())
        flops += 2 * outputs * valueOf(transposed ? a.extents.front() : a.extents.back(), symbols);
    } else if (two && op.inputs.size() > 2 && op.inputs[2] != kNoValue &&
               (op.name == "lstm" || op.name == "gru" || op.name == "rnn")) {
      const ProblemValue &x = problem.values[op.inputs[0]];
      if (x.extents.size() == 3)
        flops += 2 * valueOf(x.extents[0], symbols) * valueOf(x.extents[1], symbols) *
                 (elementsOf(problem.values[op.inputs[1]], symbols) +
                  elementsOf(problem.values[op.inputs[2]], symbols));
    } else if (op.name == "attention" && two) {
      const ProblemValue &k = problem.values[op.inputs[1]];
      if (k.extents.size() >= 2)
        flops += 4 * outputs * valueOf(k.extents[k.extents.size() - 2], symbols);
    } else {
      for (uint32_t input : op.inputs)
        if (input != kNoValue)
          flops += elementsOf(problem.values[input], symbols);
    }
  }
  return flops;
}

} // namespace

double costOf(const Trial &trial, const Problem &problem, const Target &target,
              const SymbolValues &representative) {
  if (trial.micros >= 0)
    return trial.micros;
  if (trial.candidate.estimateMicros >= 0)
    return trial.candidate.estimateMicros;
  std::string_view algorithm = trial.candidate.algorithm;
  bool slow =
      trial.candidate.provider == "reference" || algorithm.find("ref") != std::string_view::npos;
  double efficiency = slow ? 0.005 : algorithm.find("gemm") != std::string_view::npos ? 0.5 : 0.6;
  double lanes = target.hasFeature("avx512f") ? 32 : 16;
  double threads = trial.candidate.threading == DVT_THREADING_SERIAL ? 1 : target.threads;
  double flopsPerMicro = lanes * 2.6e3 * threads * efficiency;
  double bytes = 0;
  for (uint32_t number : problem.inputs) {
    const ProblemValue &value = problem.values[number];
    // Of a cache line one element is used at a time where neighbours lie apart.
    double share = value.strides.empty() || value.strides.back() == 1 ? 1 : 4;
    bytes += share * elementsOf(value, representative) * typeBits(value.type) / 8;
  }
  for (uint32_t value : problem.outputs)
    bytes += elementsOf(problem.values[value], representative) *
             typeBits(problem.values[value].type) / 8;
  constexpr double kBytesPerMicro = 15e3, kStepMicros = 1.5;
  return kStepMicros +
         std::max(flopsOf(problem, representative) / flopsPerMicro, bytes / kBytesPerMicro);
}

} // namespace dovetail::plan
