// SPDX-License-Identifier: Apache-2.0
//
// Checks that ops can be pulled through and reads those of their operands that are literals.
#include "codegen/schedule/Move.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "codegen/schedule/Expression.h"
#include "codegen/schedule/Families.h"
#include "codegen/schedule/IndexDemands.h"
#include "codegen/schedule/Pointwise.h"

namespace dovetail::codegen {
namespace {

bool isPulled(std::string_view name) {
  for (const char *known : {"gather", "gather_elements", "gather_nd", "pad", "resize", "trilu"})
    if (name == known)
      return true;
  return false;
}

bool isBeside(std::string_view name) {
  for (const char *known : {"transpose", "slice", "expand", "reshape", "flatten", "squeeze",
                            "unsqueeze", "identity", "concat"})
    if (name == known)
      return true;
  return false;
}

Status checkElements(const ProblemReader &problem, const dvt_op &op) {
  for (uint32_t i = 0; i < op.input_count; ++i)
    if (auto value = ProblemReader::input(op, i))
      if (!elementBytes(problem.value(*value).type))
        return badInput("{} of {}: elements of whole bytes are supported", op.name,
                        valueText(problem.value(*value)));
  return Status::success();
}

/// Operands of an extent that may be 1 or that of the result cannot be read by positions that are
/// the same for both.
Status checkBroadcast(const ProblemReader &problem, const dvt_op &op, uint32_t position) {
  auto dimensions = operandDimensions(problem, op, position);
  if (!dimensions)
    return dimensions.takeError();
  const dvt_value &operand = problem.value(*ProblemReader::input(op, position));
  const dvt_value &result = problem.value(*ProblemReader::output(op, 0));
  for (uint32_t i = 0; i < operand.rank; ++i)
    if (!surelyBroadcasts(operand.extents[i], result.extents[(*dimensions)[i]]))
      return badInput("{}: {} does not surely broadcast to {}", op.name, valueText(operand),
                      valueText(result));
  return Status::success();
}

Status checkOp(const ProblemReader &problem, const dvt_op &op) {
  std::string_view name = op.name;
  if (isPointwiseOp(name)) {
    if (auto reason = pointwiseRefusal(problem, op))
      return badInput("{}", *reason);
    for (uint32_t i = 0; i < op.input_count; ++i)
      if (ProblemReader::input(op, i))
        if (Status status = checkBroadcast(problem, op, i); !status)
          return status;
    return Status::success();
  }
  if (!isPulled(name) && !isBeside(name))
    return badInput("{} is not moved by native kernels", name);
  if (!ProblemReader::input(op, 0) || !ProblemReader::output(op, 0))
    return badInput("{} lacks an operand or a result", name);
  if (Status status = checkElements(problem, op); !status)
    return status;
  if (auto reason = uncheckedIndices(problem, op))
    return badInput("{}", *reason);
  uint32_t rank = problem.value(*ProblemReader::input(op, 0)).rank;
  if (name == "expand")
    return checkBroadcast(problem, op, 0);
  if (name == "pad") {
    auto pads = readPads(problem, op);
    return pads ? Status::success() : Status(pads.takeError());
  }
  if (name == "resize") {
    auto scales = readScales(problem, op);
    return scales ? Status::success() : Status(scales.takeError());
  }
  if (name == "slice") {
    auto slice = readSlice(problem, op);
    return slice ? Status::success() : Status(slice.takeError());
  }
  if (name == "gather_nd") {
    const dvt_value &indices = problem.value(*ProblemReader::input(op, 1));
    int64_t batch = ProblemReader::integer(op, "batch_dims", 0);
    if (indices.rank == 0 || !isStaticExtent(indices.extents[indices.rank - 1]) ||
        indices.extents[indices.rank - 1].value + batch > rank || batch >= indices.rank)
      return badInput("gather_nd of {} by {}",
                      valueText(problem.value(*ProblemReader::input(op, 0))), valueText(indices));
  }
  if (name == "gather" || name == "gather_elements" || name == "concat") {
    int64_t axis = ProblemReader::integer(op, "axis", 0);
    if (axis < -int64_t(rank) || axis >= int64_t(rank))
      return badInput("{} has axis {} for rank {}", name, axis, rank);
  }
  if (name == "trilu" && ProblemReader::input(op, 1)) {
    auto k = problem.uniformLiteral(*ProblemReader::input(op, 1));
    if (!k)
      return badInput("trilu with a diagonal known only at run time");
  }
  return Status::success();
}

} // namespace

Expected<PadAmounts> readPads(const ProblemReader &problem, const dvt_op &op) {
  uint32_t rank = problem.value(*ProblemReader::input(op, 0)).rank;
  std::string_view mode = ProblemReader::text(op, "mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return badInput("pad has mode {}", mode);
  std::optional<std::vector<int64_t>> pads = ProblemReader::integers(op, "pads");
  if (auto value = ProblemReader::input(op, 1))
    pads = problem.integerLiteral(*value);
  if (!pads)
    return badInput("pad has amounts that are known only at run time");
  std::vector<int64_t> axes;
  if (auto value = ProblemReader::input(op, 3)) {
    auto literal = problem.integerLiteral(*value);
    if (!literal)
      return badInput("pad has axes that are known only at run time");
    axes = *literal;
  } else {
    for (uint32_t i = 0; i < rank; ++i)
      axes.push_back(i);
  }
  if (pads->size() != 2 * axes.size())
    return badInput("pad has {} amounts for {} axes", pads->size(), axes.size());
  PadAmounts amounts{std::vector<int64_t>(rank), std::vector<int64_t>(rank)};
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= int64_t(rank))
      return badInput("pad has axis {}", axes[i]);
    amounts.before[axis] = (*pads)[i];
    amounts.after[axis] = (*pads)[axes.size() + i];
  }
  if (mode == "constant")
    if (auto value = ProblemReader::input(op, 2))
      if (!problem.uniformLiteral(*value) && problem.value(*value).rank > 1)
        return badInput("pad has a filling of {}", valueText(problem.value(*value)));
  return amounts;
}

Expected<ResizeScales> readScales(const ProblemReader &problem, const dvt_op &op) {
  const dvt_value &source = problem.value(*ProblemReader::input(op, 0));
  const dvt_value &result = problem.value(*ProblemReader::output(op, 0));
  std::string_view mode = ProblemReader::text(op, "mode", "nearest");
  std::string_view coordinates =
      ProblemReader::text(op, "coordinate_transformation_mode", "half_pixel");
  if (mode != "nearest" && mode != "linear")
    return badInput("resize has mode {}; nearest and linear are supported", mode);
  if (!isFloatType(source.type) && mode == "linear")
    return badInput("linear resize of {}", valueText(source));
  if (coordinates != "half_pixel" && coordinates != "asymmetric" &&
      coordinates != "align_corners" && coordinates != "pytorch_half_pixel" &&
      coordinates != "half_pixel_symmetric")
    return badInput("resize has coordinate_transformation_mode {}", coordinates);
  if (ProblemReader::integer(op, "antialias", 0) ||
      ProblemReader::integer(op, "exclude_outside", 0))
    return badInput("resize with antialias or exclude_outside is not supported");
  if (ProblemReader::text(op, "keep_aspect_ratio_policy", "stretch") != "stretch")
    return badInput("resize with keep_aspect_ratio_policy is not supported");
  ResizeScales scales{std::vector<double>(source.rank, 0)};
  std::vector<int64_t> axes;
  if (auto given = ProblemReader::integers(op, "axes"))
    axes = *given;
  if (axes.empty()) {
    axes.resize(source.rank);
    std::iota(axes.begin(), axes.end(), int64_t(0));
  }
  auto operand = ProblemReader::input(op, 2);
  if (operand && problem.isLiteral(*operand) && problem.value(*operand).type == DVT_F32) {
    const dvt_value &literal = problem.value(*operand);
    if (literal.literal_bytes == 4 * axes.size() ||
        (literal.literal_bytes == 4 && axes.size() > 1)) {
      for (size_t i = 0; i < axes.size(); ++i) {
        float scale;
        size_t at = literal.literal_bytes == 4 ? 0 : i;
        std::memcpy(&scale, static_cast<const char *>(literal.literal) + 4 * at, 4);
        int64_t axis = axes[i] < 0 ? axes[i] + source.rank : axes[i];
        if (axis < 0 || axis >= int64_t(source.rank) || !(scale > 0))
          return badInput("resize has axis {} and scale {}", axes[i], scale);
        scales.scales[axis] = scale;
      }
    }
  } else if (operand && (!problem.isLiteral(*operand) || problem.value(*operand).rank != 1)) {
    return badInput("resize has scales that are known only at run time");
  }
  uint32_t resized = 0;
  for (uint32_t i = 0; i < source.rank; ++i)
    resized += !sameExtent(source.extents[i], result.extents[i]) ||
               (scales.scales[i] != 0 && scales.scales[i] != 1);
  if (mode == "linear" && resized > 3)
    return badInput("linear resize of {} dimensions", resized);
  return scales;
}

Expected<SliceBounds> readSlice(const ProblemReader &problem, const dvt_op &op) {
  const dvt_value &source = problem.value(*ProblemReader::input(op, 0));
  SliceBounds bounds{std::vector<int64_t>(source.rank, 0), std::vector<int64_t>(source.rank, 1)};
  std::vector<int64_t> starts, axes, steps;
  for (auto [position, list] : {std::pair(1u, &starts), {3u, &axes}, {4u, &steps}})
    if (auto value = ProblemReader::input(op, position)) {
      auto literal = problem.integerLiteral(*value);
      if (!literal)
        return badInput("slice has bounds that are known only at run time");
      *list = *literal;
    }
  for (size_t i = axes.size(); i < starts.size(); ++i)
    axes.push_back(i);
  steps.resize(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + source.rank : axes[i];
    if (axis < 0 || axis >= int64_t(source.rank) || !isStaticExtent(source.extents[axis]) ||
        steps[i] == 0)
      return badInput("slice of {} along {}", valueText(source), axes[i]);
    int64_t extent = source.extents[axis].value;
    int64_t from = starts[i] < 0 ? std::max<int64_t>(starts[i], -extent - 1) + extent : starts[i];
    bounds.starts[axis] =
        steps[i] < 0 ? std::clamp<int64_t>(from, std::min<int64_t>(0, extent - 1), extent - 1)
                     : std::clamp<int64_t>(from, 0, extent);
    bounds.steps[axis] = steps[i];
  }
  return bounds;
}

bool isLaidOut(const ProblemReader &problem, uint32_t value, uint32_t rank) {
  const dvt_value &tensor = problem.value(value);
  return tensor.rank == rank && rank > 1 && !isOne(tensor.extents[1]) &&
         !problem.isConstant(value) && !problem.isLiteral(value);
}

Expected<MovePlan> planMove(const ProblemReader &problem, const Machine &machine,
                            const Layout &layout) {
  const dvt_problem &source = problem.problem();
  MovePlan plan;
  plan.layout = layout;
  for (uint32_t i = 0; i < source.op_count; ++i)
    if (Status status = checkOp(problem, source.ops[i]); !status)
      return status.takeError();
  for (uint32_t i = 0; i < source.value_count; ++i)
    for (uint32_t j = 0; j < source.values[i].rank; ++j)
      if (!isStaticExtent(source.values[i].extents[j]) &&
          !problem.placeOf(source.values[i].extents[j]))
        return badInput("extent {} is not one of an input or output",
                        extentText(source.values[i].extents[j]));
  for (uint32_t i = 0; i < source.output_count; ++i) {
    if (problem.value(source.outputs[i]).may_alias >= 0)
      return badInput("elements cannot be moved in place");
    auto shape = shapeOf(problem.value(source.outputs[i]));
    auto same = std::find_if(plan.phases.begin(), plan.phases.end(), [&](const MovePhase &phase) {
      return sameShape(phase.space.shape, shape);
    });
    if (same == plan.phases.end()) {
      same = plan.phases.insert(plan.phases.end(), MovePhase());
      same->space.shape = shape;
    }
    same->outputs.push_back(source.outputs[i]);
  }
  for (MovePhase &phase : plan.phases) {
    SpaceRequest request;
    request.shape = phase.space.shape;
    request.layout = layout;
    request.merge = false;
    for (uint32_t output : phase.outputs)
      request.tensors.push_back({output, true, false});
    auto space = makeSpace(problem, request);
    if (!space)
      return space.takeError();
    phase.space = std::move(*space);
    phase.split = splitTasks(phase.space.axes, machine.grain(4096), machine.isa.f32Lanes);
  }
  return plan;
}

static std::string offerMove(const ProblemReader &problem, const Machine &machine,
                             const std::string &text, const ScheduleSink &sink) {
  const dvt_problem &source = problem.problem();
  auto layout = Layout::parse(text);
  if (!layout)
    return layout.error().message;
  auto plan = planMove(problem, machine, *layout);
  if (!plan)
    return plan.error().message;
  Schedule schedule = Schedule::rowMajor(text.empty() ? "move" : "move:" + text, source);
  uint32_t rank = problem.value(source.outputs[0]).rank;
  for (uint32_t i = 0; i < source.input_count && !text.empty(); ++i)
    if (isLaidOut(problem, source.inputs[i], rank))
      schedule.inputLayouts[i] = text;
  double bytes = 0;
  for (uint32_t i = 0; i < source.output_count; ++i) {
    schedule.outputLayouts[i] = text;
    bytes += 8 * ProblemReader::typicalElements(problem.value(source.outputs[i]));
  }
  schedule.estimateMicros = machine.startMicros() + 4 * machine.memoryMicros(bytes);
  sink.offer(std::move(schedule));
  return {};
}

void proposeMove(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink) {
  bool pulled = false, keepsChannels = true;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    std::string_view name = problem.op(i).name;
    if (!isPulled(name) && !isBeside(name) && !isPointwiseOp(name))
      return;
    pulled |= isPulled(name);
    keepsChannels &= name == "resize" || name == "pad" || name == "identity" || isPointwiseOp(name);
  }
  if (!pulled)
    return;
  if (std::string reason = offerMove(problem, machine, "", sink); !reason.empty())
    return sink.refuse("move", reason);
  if (keepsChannels)
    for (const std::string &layout : imageLayouts(problem, machine))
      offerMove(problem, machine, layout, sink);
}

} // namespace dovetail::codegen
