// SPDX-License-Identifier: Apache-2.0
//
// Roofline estimates (Williams, Waterman, Patterson 2009): time is the larger of work over peak and
// traffic over bandwidth, with an efficiency by family, plus a fixed cost per step. Used where
// nothing was measured.
#include <algorithm>
#include <string_view>

#include "plan/Evaluations.h"
#include "support/DeviceKernel.h"

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

/// Threads of a block in the kernel that was compiled; before that, and in libraries' kernels, what
/// most take.
double blockThreadsOf(const Trial &trial) {
  constexpr uint32_t kUsual = 256;
  uint32_t most = 0;
  if (DeviceKernel::recognises(trial.kernel))
    if (auto kernel = DeviceKernel::parse(trial.kernel))
      for (const DeviceLaunch &launch : kernel->launches)
        most = std::max(most, launch.threads);
  return most > 0 ? most : kUsual;
}

/// Threads of a kernel for f32 that can be in flight, of those that a unit has room for.
double occupancyOf(const Trial &trial, const device::DeviceDescription &d) {
  const Candidate &candidate = trial.candidate;
  double threads = d.threadsPerUnit;
  if (candidate.registers > 0)
    threads = std::min(threads, double(d.registersPerUnit) / candidate.registers);
  if (candidate.sharedBytes > 0)
    threads = std::min(threads, double(d.sharedBytesPerUnit) / candidate.sharedBytes *
                                    blockThreadsOf(trial));
  return std::clamp(threads / d.threadsPerUnit, 1.0 / 64, 1.0);
}

/// What a kernel may reach of the peak for its class of rounding and type of elements, in 10^12
/// operations per second: of matrix units for contractions whose class says so, else of arithmetic
/// on the type. To keep matrix units busy takes more bandwidth between memories than most have.
double reachedPeak(const Candidate &candidate, dvt_type type, const device::DeviceDescription &d) {
  constexpr double kEfficiency = 0.5, kMatrixEfficiency = 0.25;
  double peak = 0;
  if (candidate.algorithm.find("mma") != std::string::npos ||
      candidate.algorithm.find("tensor") != std::string::npos || candidate.numerics == "tf32")
    peak = d.peak(candidate.numerics + "_matrix");
  if (peak > 0)
    return peak * kMatrixEfficiency;
  peak = d.peak(type == DVT_F64 ? "f64" : "f32");
  return (peak > 0 ? peak : d.peak("f32")) * kEfficiency;
}

/// A quarter of all threads in flight hides what memory takes to answer; with fewer, speed falls in
/// proportion (Little's law). Of the peaks kernels reach a part.
double onDevice(const Trial &trial, const Problem &problem, const device::DeviceDescription &d,
                const SymbolValues &symbols) {
  const Candidate &candidate = trial.candidate;
  constexpr double kMemoryEfficiency = 0.8, kEnough = 0.25;
  double bytes = 0, results = 0;
  for (const std::vector<uint32_t> *operands : {&problem.inputs, &problem.outputs})
    for (uint32_t number : *operands)
      bytes +=
          elementsOf(problem.values[number], symbols) * typeBits(problem.values[number].type) / 8;
  for (uint32_t number : problem.outputs)
    results += elementsOf(problem.values[number], symbols);
  // Spilled registers go through memory: each thread's once out and once back.
  bytes += 2.0 * candidate.scratchBytes * std::min(results, 1e6);
  double filled = std::min(1.0, results / (double(d.computeUnits) * d.threadsPerUnit * kEnough));
  double share = std::min(1.0, occupancyOf(trial, d) / kEnough) * std::max(filled, 1e-3);
  dvt_type type = problem.outputs.empty() ? DVT_F32 : problem.values[problem.outputs[0]].type;
  double flopsPerMicro = reachedPeak(candidate, type, d) * 1e6 * share;
  double bytesPerMicro = d.memoryGigabytesPerSecond * 1e3 * kMemoryEfficiency * share;
  return d.launchMicros +
         std::max(flopsOf(problem, symbols) / flopsPerMicro, bytes / bytesPerMicro);
}

} // namespace

double CostModel::ofTransfer(double bytes) const {
  return description
             ? description->transferMicros + bytes / (description->linkGigabytesPerSecond * 1e3)
             : 0;
}

double CostModel::of(const Trial &trial, const Problem &problem,
                     const SymbolValues &representative) const {
  if (trial.micros >= 0)
    return trial.micros;
  if (trial.candidate.estimateMicros >= 0)
    return trial.candidate.estimateMicros;
  if (trial.candidate.memory == DVT_MEMORY_DEVICE && description)
    return onDevice(trial, problem, *description, representative);
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
