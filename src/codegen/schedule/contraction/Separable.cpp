// SPDX-License-Identifier: Apache-2.0
//
// Reads depthwise separable convolutions; see the header.
#include "codegen/schedule/contraction/Separable.h"

#include <algorithm>
#include <cstdio>

namespace dovetail::codegen {

dvt_problem SeparableHalves::first() const {
  dvt_problem half = *whole;
  half.op_count = split;
  half.output_count = 1;
  half.outputs = &between;
  return half;
}

dvt_problem SeparableHalves::second() const {
  dvt_problem half = *whole;
  half.ops += split;
  half.op_count -= split;
  half.input_count = uint32_t(inputs.size());
  half.inputs = inputs.data();
  return half;
}

std::optional<SeparableHalves> SeparableHalves::find(const ProblemReader &problem) {
  std::vector<uint32_t> convolutions;
  for (uint32_t i = 0; i < problem.opCount(); ++i)
    if (std::string_view(problem.op(i).name) == "conv")
      convolutions.push_back(i);
  if (convolutions.size() != 2)
    return std::nullopt;
  auto image = ProblemReader::input(problem.op(convolutions[1]), 0);
  if (!image || problem.producerOf(*image) < int(convolutions[0]) ||
      problem.useCount(*image) != 1 || problem.outputOf(*image) >= 0)
    return std::nullopt;
  SeparableHalves halves{&problem.problem(), *image, uint32_t(problem.producerOf(*image)) + 1, {}};
  if (halves.split > convolutions[1])
    return std::nullopt;
  // Nothing else goes from one half to the other.
  for (uint32_t i = halves.split; i < problem.opCount(); ++i)
    for (uint32_t j = 0; j < problem.op(i).input_count; ++j) {
      uint32_t value = problem.op(i).inputs[j];
      if (value != DVT_NO_VALUE && value != *image && problem.producerOf(value) >= 0 &&
          problem.producerOf(value) < int(halves.split))
        return std::nullopt;
    }
  const dvt_problem &whole = problem.problem();
  halves.inputs.assign(whole.inputs, whole.inputs + whole.input_count);
  halves.inputs.push_back(*image);
  return halves;
}

/// Outputs are written while other tasks still read the image.
static bool sharesMemory(const ProblemReader &problem, const SeparableHalves &halves) {
  const dvt_problem &whole = problem.problem();
  for (uint32_t i = 0; i < whole.output_count; ++i) {
    int32_t shared = problem.value(whole.outputs[i]).may_alias;
    if (shared < 0 || uint32_t(shared) >= whole.input_count)
      continue;
    for (uint32_t op = 0; op < halves.split; ++op) {
      const dvt_op &reader = problem.op(op);
      if (std::find(reader.inputs, reader.inputs + reader.input_count, whole.inputs[shared]) !=
          reader.inputs + reader.input_count)
        return true;
    }
  }
  return false;
}

std::optional<Expected<Separable>> Separable::find(const ProblemReader &problem) {
  auto halves = SeparableHalves::find(problem);
  if (!halves)
    return std::nullopt;
  const dvt_problem firstHalf = halves->first(), secondHalf = halves->second();
  auto depthwise = Convolution::find(ProblemReader(firstHalf));
  if (!depthwise || (*depthwise && !(*depthwise)->isDepthwise()))
    return std::nullopt;
  auto pointwise = Convolution::find(ProblemReader(secondHalf));
  if (!pointwise)
    return std::nullopt;
  auto fail = [](Error error) { return std::optional(Expected<Separable>(std::move(error))); };
  for (auto *half : {&*depthwise, &*pointwise})
    if (!*half)
      return fail(half->takeError());
  Separable pair{std::move(**depthwise), std::move(**pointwise), halves->between};
  if (!pair.pointwise.isPointwise() || pair.pointwise.groups != 1 ||
      pair.pointwise.inPerGroup != pair.depthwise.groups)
    return fail(
        badInput("a convolution of {}x{} in {} groups behind a depthwise one in one kernel; "
                 "pointwise ones are supported",
                 pair.pointwise.rows.size, pair.pointwise.columns.size, pair.pointwise.groups));
  if (sharesMemory(problem, *halves))
    return fail(badInput("conv with an output in the memory of its operand"));
  if (!isStaticExtent(pair.depthwise.outColumns) || !isStaticExtent(pair.depthwise.inColumns))
    return fail(
        badInput("two convolutions in one kernel over {} columns; their number must be known",
                 extentText(pair.depthwise.inColumns)));
  Fusion &fusion = pair.pointwise.fusion;
  fusion.anchor += halves->split;
  for (uint32_t &op : fusion.followers)
    op += halves->split;
  return Expected<Separable>(std::move(pair));
}

SeparablePlan SeparablePlan::read(const Schedule &schedule) {
  SeparablePlan plan;
  plan.pointwise = ConvolutionPlan::read(schedule);
  plan.depthwise.layout = plan.pointwise.in;
  long long tile = 1, blocks = 1;
  size_t end = schedule.algorithm.rfind(":d");
  std::sscanf(schedule.algorithm.c_str() + end, ":d%lldx%lld", &tile, &blocks);
  plan.depthwise.tile = tile;
  plan.depthwise.blocks = blocks;
  return plan;
}

std::string SeparablePlan::text() const {
  std::string tiles = pointwise.text();
  return fmt::format("separable{}:d{}x{}", tiles.substr(tiles.find(':')), depthwise.tile,
                     depthwise.blocks);
}

} // namespace dovetail::codegen
