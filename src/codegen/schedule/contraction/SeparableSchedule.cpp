// SPDX-License-Identifier: Apache-2.0
//
// Offers schedules of depthwise separable convolutions, one for each layout that keeps channels
// side by side, and packs the weights of both halves as their own families do.
#include <algorithm>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/Separable.h"

namespace dovetail::codegen {

constexpr const char *kFamily = "separable";

/// Layouts of the whole from those of the halves.
static bool setLayouts(const ProblemReader &problem, const Separable &pair, ImageLayout layout,
                       int64_t lanes, Schedule &schedule) {
  const dvt_problem &whole = problem.problem();
  setImageLayouts(problem, pair.depthwise.fusion, pair.depthwise.input, pair.depthwise.spatial,
                  layout, layout, lanes, schedule);
  std::string text = imageLayoutText(layout, pair.pointwise.spatial, lanes);
  setLeafLayouts(problem, pair.pointwise.fusion, text, schedule);
  for (uint32_t i = 0; i < whole.output_count; ++i)
    schedule.outputLayouts[i] = text;
  return pair.depthwise.fusion.leafAccesses(problem, schedule.inputLayouts) &&
         pair.pointwise.fusion.leafAccesses(problem, schedule.inputLayouts);
}

void proposeSeparable(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink) {
  auto found = Separable::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse(kFamily, found->error().message);
  const Separable &pair = **found;
  const Convolution &depthwise = pair.depthwise, &pointwise = pair.pointwise;
  int64_t lanes = machine.isa.f32Lanes, blocks = (depthwise.groups + lanes - 1) / lanes;
  if (depthwise.groups < lanes)
    return sink.refuse(kFamily, fmt::format("two convolutions in one kernel pay from {} channels "
                                            "between them on; these are {}",
                                            lanes, depthwise.groups));
  double pixels = Product::of(depthwise.batch).typical(4) *
                  Product::of(depthwise.outRows).typical() * double(depthwise.outColumns.value);
  for (ImageLayout layout : {ImageLayout::Blocked, ImageLayout::ChannelsLast}) {
    Schedule schedule = Schedule::rowMajor("", problem.problem());
    if (!setLayouts(problem, pair, layout, lanes, schedule))
      return sink.refuse(kFamily, "an operand after conv whose extents are not known to broadcast");
    SeparablePlan plan;
    plan.pointwise.in = plan.pointwise.out = layout;
    double cycles = completePlan(pointwise, machine, plan.pointwise, ConvolutionTasks::WholeRows);
    plan.depthwise = chooseDepthwiseTile(depthwise, machine, layout);
    double window = double(depthwise.rows.size * depthwise.columns.size);
    cycles += pixels * double(blocks) * (window + 0.6 + 0.6 * depthwise.fusion.cost) /
              double(machine.threads);
    ConvolutionSizes sizes(pointwise, plan.pointwise, machine);
    schedule.algorithm = plan.text();
    schedule.packedBytes[uint32_t(problem.inputOf(depthwise.weight))] =
        4 * uint64_t(blocks * depthwise.rows.size * depthwise.columns.size * lanes);
    schedule.packedBytes[uint32_t(problem.inputOf(pointwise.weight))] =
        4 * uint64_t(sizes.groupElements);
    schedule.scratchBytes =
        sizes.scratchBytes() + 4 * uint64_t(plan.depthwise.tile * plan.depthwise.blocks * lanes);
    constexpr double kCyclesPerMicro = 3500;
    schedule.estimateMicros = cycles / kCyclesPerMicro + 2;
    sink.offer(std::move(schedule));
  }
}

void packSeparable(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                   uint32_t input, const void *constant, void *packed) {
  auto halves = SeparableHalves::find(problem);
  if (!halves)
    return;
  // Each half packs what is its own.
  const dvt_problem first = halves->first(), second = halves->second();
  packDepthwise(ProblemReader(first), machine, schedule, input, constant, packed);
  packConvolution(ProblemReader(second), machine, schedule, input, constant, packed);
}

} // namespace dovetail::codegen
