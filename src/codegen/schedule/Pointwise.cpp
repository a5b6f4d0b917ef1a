// SPDX-License-Identifier: Apache-2.0
//
// Plans fused element-wise ops in row-major and in the layouts that convolutions like, so that such
// ops between blocked convolutions need no conversion.
#include "codegen/schedule/Pointwise.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/schedule/Expression.h"
#include "codegen/schedule/Families.h"

namespace dovetail::codegen {

std::vector<std::string> imageLayouts(uint32_t rank, const Machine &machine) {
  if (rank < 3 || rank > 5 || machine.isDevice())
    return {};
  std::string spatial = std::string("cde").substr(0, rank - 2);
  std::vector<std::string> layouts = {"a" + spatial + "b"};
  if (machine.isa.f32Lanes >= 16)
    layouts.push_back("aB" + spatial + "16b");
  layouts.push_back("aB" + spatial + "8b");
  return layouts;
}

std::vector<std::string> imageLayouts(const ProblemReader &problem, const Machine &machine) {
  const dvt_problem &source = problem.problem();
  uint32_t rank = problem.value(source.outputs[0]).rank;
  for (uint32_t i = 0; i < source.output_count; ++i) {
    const dvt_value &output = problem.value(source.outputs[i]);
    if (output.rank != rank || rank < 3 || isOne(output.extents[1]))
      return {};
  }
  return imageLayouts(rank, machine);
}

namespace {

/// The ops that `outputs` need, ascending.
std::vector<uint32_t> slice(const ProblemReader &problem, const std::vector<uint32_t> &outputs) {
  std::vector<bool> needed(problem.opCount(), false);
  std::vector<uint32_t> values = outputs;
  while (!values.empty()) {
    uint32_t value = values.back();
    values.pop_back();
    int producer = problem.producerOf(value);
    if (producer < 0 || needed[producer])
      continue;
    needed[producer] = true;
    const dvt_op &op = problem.op(producer);
    for (uint32_t i = 0; i < op.input_count; ++i)
      if (auto operand = ProblemReader::input(op, i))
        values.push_back(*operand);
  }
  std::vector<uint32_t> ops;
  for (uint32_t i = 0; i < needed.size(); ++i)
    if (needed[i])
      ops.push_back(i);
  return ops;
}

Status planPhase(const ProblemReader &problem, const Machine &machine, const Layout &layout,
                 SpaceRequest::Unclear unclear, PointwisePhase &phase) {
  phase.ops = slice(problem, phase.outputs);
  Expression expression;
  for (uint32_t op : phase.ops) {
    if (Status status = expression.add(problem, problem.op(op)); !status)
      return status;
    // Values between must broadcast, too: an op inside may not widen an operand that is then cut.
    for (uint32_t i = 0; i < problem.op(op).output_count; ++i)
      if (auto result = ProblemReader::output(problem.op(op), i)) {
        const dvt_value &value = problem.value(*result);
        const dvt_value &output = problem.value(phase.outputs[0]);
        bool fits = value.rank <= output.rank;
        for (uint32_t j = 0; fits && j < value.rank; ++j)
          fits =
              surelyBroadcasts(value.extents[j], output.extents[output.rank - value.rank + j]) ||
              (unclear != SpaceRequest::Unclear::Refused &&
               perhapsBroadcasts(value.extents[j], output.extents[output.rank - value.rank + j]));
        if (!fits)
          return badInput("{} does not surely broadcast to {}", valueText(value),
                          valueText(output));
      }
  }
  auto dimensions = leafDimensions(problem, phase.ops, problem.value(phase.outputs[0]).rank);
  if (!dimensions)
    return dimensions.takeError();
  SpaceRequest request;
  request.shape = shapeOf(problem.value(phase.outputs[0]));
  request.layout = layout;
  request.unclear = unclear;
  size_t rank = request.shape.size();
  for (const ExpressionNode &node : expression.nodes) {
    if (node.kind != ExpressionKind::Leaf)
      continue;
    const dvt_value &value = problem.value(node.value);
    bool constant = problem.isConstant(node.value) || problem.isLiteral(node.value);
    bool channels = value.rank == rank && rank > 1 && !isOne(value.extents[1]);
    request.tensors.push_back({node.value, !layout.isRowMajor() && !constant && channels, constant,
                               dimensions->at(node.value)});
  }
  for (uint32_t output : phase.outputs)
    request.tensors.push_back({output, true, false});
  auto space = makeSpace(problem, request);
  if (!space)
    return space.takeError();
  phase.space = std::move(*space);
  double grain = std::clamp(32768 / (2 + expression.cost()), 512.0, 16384.0);
  phase.split = splitTasks(phase.space.axes, machine.grain(grain),
                           machine.chunkStep(4 * machine.isa.f32Lanes));
  return Status::success();
}

double estimate(const ProblemReader &problem, const Machine &machine,
                const std::vector<PointwisePhase> &phases) {
  double micros = machine.startMicros();
  for (const PointwisePhase &phase : phases) {
    if (phase.when == PointwiseCase::WhereSomeAreNot)
      continue;
    Expression expression;
    for (uint32_t op : phase.ops)
      if (!expression.add(problem, problem.op(op)))
        return -1;
    double elements = 1, bytes = 0;
    for (const Axis &axis : phase.space.axes)
      elements *= axis.typical;
    for (const SpaceOperand &operand : phase.space.operands)
      bytes += ProblemReader::typicalElements(problem.value(operand.value)) *
               elementBytes(problem.value(operand.value).type);
    double compute =
        elements * (1 + expression.cost()) / machine.isa.f32Lanes / 4000.0 / machine.threads;
    double memory = machine.memoryMicros(bytes);
    micros += std::max(compute, memory);
  }
  return micros;
}

} // namespace

Expected<std::vector<PointwisePhase>> planPointwise(const ProblemReader &problem,
                                                    const Machine &machine, const Layout &layout) {
  const dvt_problem &source = problem.problem();
  std::vector<PointwisePhase> phases;
  bool aliased = false;
  for (uint32_t i = 0; i < source.output_count; ++i) {
    uint32_t output = source.outputs[i];
    aliased |= problem.value(output).may_alias >= 0;
    auto shape = shapeOf(problem.value(output));
    auto same = std::find_if(phases.begin(), phases.end(), [&](const PointwisePhase &phase) {
      return sameShape(shapeOf(problem.value(phase.outputs[0])), shape);
    });
    if (same == phases.end())
      same = phases.insert(phases.end(), PointwisePhase());
    same->outputs.push_back(output);
  }
  if (aliased && phases.size() > 1)
    return badInput("outputs of several shapes cannot be computed in place");
  using Unclear = SpaceRequest::Unclear;
  std::vector<PointwisePhase> others;
  for (PointwisePhase &phase : phases) {
    Unclear unclear = layout.isRowMajor() ? Unclear::TakenAsEqual : Unclear::Refused;
    if (Status status = planPhase(problem, machine, layout, unclear, phase); !status)
      return status.takeError();
    if (phase.space.takenAsEqual.empty())
      continue;
    phase.when = PointwiseCase::WhereExtentsAreEqual;
    PointwisePhase &other = others.emplace_back();
    other.outputs = phase.outputs;
    other.when = PointwiseCase::WhereSomeAreNot;
    if (Status status = planPhase(problem, machine, layout, Unclear::EqualOrOne, other); !status)
      return status.takeError();
    other.space.takenAsEqual = phase.space.takenAsEqual;
  }
  phases.insert(phases.end(), others.begin(), others.end());
  return phases;
}

void proposePointwise(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink) {
  const dvt_problem &source = problem.problem();
  for (uint32_t i = 0; i < source.op_count; ++i)
    if (!isPointwiseOp(source.ops[i].name))
      return;
  auto offer = [&](const std::string &text) -> std::string {
    auto layout = Layout::parse(text);
    if (!layout)
      return layout.error().message;
    auto phases = planPointwise(problem, machine, *layout);
    if (!phases)
      return phases.error().message;
    Schedule schedule =
        Schedule::rowMajor(text.empty() ? "pointwise" : "pointwise:" + text, source);
    for (const PointwisePhase &phase : *phases)
      for (const SpaceOperand &operand : phase.space.operands) {
        int input = problem.inputOf(operand.value), output = problem.outputOf(operand.value);
        if (operand.packed && input >= 0) {
          auto bytes = packedBytesOf(phase.space, operand, problem.value(operand.value).type);
          // Phases of other shapes would want another form of the constant.
          if (!bytes || phases->size() > 1)
            return "a constant cannot be packed for this layout";
          schedule.packedBytes[input] = *bytes;
        }
        const dvt_value &value = problem.value(operand.value);
        bool channels =
            value.rank == phase.space.shape.size() && value.rank > 1 && !isOne(value.extents[1]);
        if (output >= 0)
          schedule.outputLayouts[output] = text;
        else if (input >= 0 && channels && !problem.isConstant(operand.value))
          schedule.inputLayouts[input] = text;
      }
    schedule.estimateMicros = estimate(problem, machine, *phases);
    sink.offer(std::move(schedule));
    return {};
  };
  if (std::string reason = offer(""); !reason.empty())
    return sink.refuse("pointwise", reason);
  uint32_t rank = problem.value(source.outputs[0]).rank;
  for (uint32_t i = 0; i < source.output_count; ++i) {
    const dvt_value &output = problem.value(source.outputs[i]);
    if (output.rank != rank || rank < 3 || isOne(output.extents[1]))
      return;
  }
  for (const std::string &layout : imageLayouts(rank, machine))
    offer(layout);
}

void packPointwise(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                   uint32_t input, const void *constant, void *packed) {
  auto layout = Layout::parse(schedule.outputLayouts[0]);
  if (!layout)
    return;
  auto phases = planPointwise(problem, machine, *layout);
  if (!phases)
    return;
  for (const PointwisePhase &phase : *phases)
    packInput(phase.space, problem, input, constant, packed);
}

} // namespace dovetail::codegen
