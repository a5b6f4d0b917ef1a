// SPDX-License-Identifier: Apache-2.0
//
// Offers schedules of recurrent ops and packs their weights. Steps depend on each other, so threads
// share directions and sequences; where these are fewer than threads, the input's share of all
// steps can be computed beforehand by all of them. Everything a task needs lies in its worker's
// scratch, whose size does not depend on how many steps or sequences there are.
#include <algorithm>
#include <cmath>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/recurrent/Recurrent.h"

namespace dovetail::codegen {
namespace {

constexpr uint64_t kMostScratchBytes = uint64_t(256) << 20;
constexpr double kTypicalSteps = 32, kTypicalSequences = 1;

double typical(const dvt_extent &extent, double otherwise) {
  return isStaticExtent(extent) ? double(extent.value)
                                : std::clamp(otherwise, double(extent.min), double(extent.max));
}

/// Sequences of a task: as many tasks as threads where there are enough sequences, and few enough
/// for their sums to stay in the cache.
int64_t sequencesOfTask(const Recurrent &net, const Machine &machine) {
  constexpr int64_t kMost = 24, kUnknown = 8;
  if (!isStaticExtent(net.batch))
    return kUnknown;
  const int64_t shares = std::max<int64_t>(1, int64_t(machine.threads) / net.directions);
  return std::clamp<int64_t>((net.batch.value + shares - 1) / shares, 1, kMost);
}

int64_t stepsOfChunk(const Recurrent &net, const RecurrentShape &shape, const Machine &machine,
                     int64_t sequences) {
  const int64_t rowBytes = 4 * shape.sumRow;
  int64_t rows = std::clamp<int64_t>(int64_t(machine.l2Bytes) / 4 / rowBytes, 12, 48);
  int64_t steps = std::max<int64_t>(1, rows / sequences);
  return isStaticExtent(net.steps) ? std::clamp<int64_t>(net.steps.value, 1, steps) : steps;
}

double estimateMicros(const Recurrent &net, const RecurrentShape &shape, const Machine &machine,
                      const RecurrentPlan &plan) {
  constexpr double kCyclesPerMicro = 3000, kBytesPerCycle = 40;
  const double steps = typical(net.steps, kTypicalSteps),
               sequences = typical(net.batch, kTypicalSequences);
  const double tasks = double(net.directions) * std::ceil(sequences / double(plan.sequences));
  const double threads = double(machine.threads), rounds = std::ceil(tasks / threads);
  const double perTask = std::min(sequences, double(plan.sequences));
  const double lanes = double(shape.lanes), vectors = double(shape.sumRow) / lanes;
  const double product = 0.65 * double(net.input) * vectors * steps * sequences;
  const double recurrence =
      std::max(0.7 * double(net.hidden) * vectors * perTask,
               4.0 * double(shape.packedElements(net.hidden)) / kBytesPerCycle);
  const double gates = 25.0 * vectors * perTask;
  const double inputShare = plan.chunk ? product * double(net.directions) / tasks * rounds
                                       : product * double(net.directions) / threads;
  return 2 + (inputShare + rounds * steps * (recurrence + gates)) / kCyclesPerMicro;
}

/// One direction of a matrix whose rows are outputs, as ONNX has it.
void packWeights(const Recurrent &net, const RecurrentShape &shape, int64_t depth,
                 const float *from, float *to) {
  for (const RecurrentShape::Pass &pass : shape.passes)
    for (int64_t panel = 0; panel < pass.panels; ++panel)
      for (int64_t k = 0; k < depth; ++k)
        for (unsigned block = 0; block < pass.blocks; ++block)
          for (unsigned gate : pass.gates)
            for (int64_t lane = 0; lane < shape.lanes; ++lane) {
              const int64_t unit = (panel * pass.blocks + block) * shape.lanes + lane;
              *to++ = unit < net.hidden ? from[(gate * net.hidden + unit) * depth + k] : 0.0f;
            }
}

/// Biases of input and recurrence together; but those of the recurrence stand alone behind them
/// where a gate acts in between.
void packBias(const Recurrent &net, const RecurrentShape &shape, const float *from, float *to) {
  const int64_t half = net.gates * net.hidden;
  const bool apart = net.cell == Recurrent::Cell::GruLinear;
  float *behind = to + net.directions * shape.sumRow;
  for (int64_t d = 0; d < net.directions; ++d) {
    const float *input = from + d * 2 * half, *recurrent = input + half;
    for (const RecurrentShape::Pass &pass : shape.passes)
      for (int64_t block = 0; block < pass.panels * pass.blocks; ++block)
        for (unsigned gate : pass.gates)
          for (int64_t lane = 0; lane < shape.lanes; ++lane) {
            const int64_t unit = block * shape.lanes + lane, row = gate * net.hidden + unit;
            const bool alone = apart && gate == 2;
            *to++ = unit < net.hidden ? input[row] + (alone ? 0.0f : recurrent[row]) : 0.0f;
          }
    for (int64_t unit = 0; apart && unit < shape.stateRow; ++unit)
      *behind++ = unit < net.hidden ? recurrent[2 * net.hidden + unit] : 0.0f;
  }
}

} // namespace

void proposeRecurrent(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink) {
  auto found = Recurrent::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse("recurrent", found->error().message);
  const Recurrent &net = **found;
  const RecurrentShape shape(net, machine);
  Schedule base = Schedule::rowMajor("", problem.problem());
  const uint64_t directions = uint64_t(net.directions);
  auto packs = [&](uint32_t value, int64_t elements) {
    base.packedBytes[uint32_t(problem.inputOf(value))] = 4 * directions * uint64_t(elements);
  };
  if (net.w == net.r || (net.bias.value && (*net.bias.value == net.w || *net.bias.value == net.r)))
    return sink.refuse("recurrent", "one constant is two operands, which are packed differently");
  packs(net.w, shape.packedElements(net.input));
  packs(net.r, shape.packedElements(net.hidden));
  if (net.bias.value)
    packs(*net.bias.value,
          shape.sumRow + (net.cell == Recurrent::Cell::GruLinear ? shape.stateRow : 0));

  RecurrentPlan plan;
  plan.sequences = sequencesOfTask(net, machine);
  plan.chunk = stepsOfChunk(net, shape, machine, plan.sequences);
  auto offer = [&](uint64_t workspaceBytes) {
    Schedule schedule = base;
    schedule.algorithm = plan.text();
    schedule.workspaceBytes = workspaceBytes;
    schedule.scratchBytes = 4 * uint64_t(plan.scratchElements(net, shape));
    schedule.estimateMicros = estimateMicros(net, shape, machine, plan);
    if (schedule.scratchBytes > kMostScratchBytes)
      return sink.refuse(plan.text().c_str(), "the sums of one step need more than 256 MiB");
    sink.offer(std::move(schedule));
  };
  offer(0);
  if (machine.threads == 1 || !isStaticExtent(net.steps) || !isStaticExtent(net.batch) ||
      net.steps.value < 2)
    return;
  const double bytes = 4.0 * double(net.directions) * double(net.steps.value) *
                       double(net.batch.value) * double(shape.sumRow);
  plan.chunk = 0;
  if (bytes <= double(kMostScratchBytes))
    offer(uint64_t(bytes));
}

void packRecurrent(const ProblemReader &problem, const Machine &machine, const Schedule &,
                   uint32_t input, const void *constant, void *packed) {
  auto found = Recurrent::find(problem);
  if (!found || !*found)
    return;
  const Recurrent &net = **found;
  const RecurrentShape shape(net, machine);
  const auto *from = static_cast<const float *>(constant);
  auto *to = static_cast<float *>(packed);
  const uint32_t value = problem.problem().inputs[input];
  if (net.bias.value == value)
    return packBias(net, shape, from, to);
  const int64_t depth = value == net.w ? net.input : net.hidden;
  for (int64_t d = 0; d < net.directions; ++d)
    packWeights(net, shape, depth, from + d * net.gates * net.hidden * depth,
                to + d * shape.packedElements(depth));
}

std::vector<ValueDemand> recurrentDemands(const ProblemReader &problem) {
  auto found = Recurrent::find(problem);
  if (!found || !*found || !(*found)->lengths)
    return {};
  const Recurrent &net = **found;
  ValueDemand demand;
  demand.input = problem.inputOf(*net.lengths);
  demand.extentOf = {uint32_t(problem.inputOf(net.x)), net.batchFirst ? 1u : 0u};
  demand.what = "sequence length";
  return {demand};
}

} // namespace dovetail::codegen
