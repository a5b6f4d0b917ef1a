// SPDX-License-Identifier: Apache-2.0
//
// Reads a pooling op and places it and what follows it in an iteration space.
#include "codegen/schedule/Pool.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/schedule/Expression.h"
#include "codegen/schedule/Families.h"
#include "codegen/schedule/Pointwise.h"

namespace dovetail::codegen {
namespace {

bool isPool(std::string_view name) { return name == "max_pool" || name == "average_pool"; }

Status readWindows(const dvt_op &op, uint32_t spatial, PoolPlan &plan) {
  auto list = [&](const char *name, size_t count, int64_t otherwise) {
    auto given = ProblemReader::integers(op, name);
    return given && given->size() == count ? *given : std::vector<int64_t>(count, otherwise);
  };
  auto sizes = ProblemReader::integers(op, "kernel_shape");
  if (!sizes || sizes->size() != spatial)
    return badInput("{} has no kernel_shape of {} numbers", op.name, spatial);
  std::string_view automatic = ProblemReader::text(op, "auto_pad", "NOTSET");
  using Same = PoolPlan::Window::Same;
  Same same = automatic == "SAME_UPPER"   ? Same::Upper
              : automatic == "SAME_LOWER" ? Same::Lower
                                          : Same::No;
  if (same == Same::No && automatic != "NOTSET" && automatic != "VALID")
    return badInput("{} has auto_pad {}", op.name, automatic);
  auto strides = list("strides", spatial, 1), dilations = list("dilations", spatial, 1),
       pads = list("pads", 2 * spatial, 0);
  for (uint32_t i = 0; i < spatial; ++i) {
    PoolPlan::Window window{(*sizes)[i], strides[i],        dilations[i],
                            pads[i],     pads[spatial + i], same};
    if (automatic != "NOTSET")
      window.before = window.after = 0;
    if (window.size <= 0 || window.stride <= 0 || window.dilation <= 0 || window.before < 0 ||
        window.after < 0)
      return badInput("{} has a window of {} with stride {}, dilation {} and pads {}, {}", op.name,
                      window.size, window.stride, window.dilation, window.before, window.after);
    plan.windows.push_back(window);
  }
  return Status::success();
}

} // namespace

Expected<PoolPlan> planPool(const ProblemReader &problem, const Machine &machine,
                            const Layout &layout) {
  PoolPlan plan;
  plan.layout = layout;
  const dvt_op &op = problem.op(0);
  if (!isPool(op.name))
    return badInput("the first op is {}, not a pool", op.name);
  auto source = ProblemReader::input(op, 0), pooled = ProblemReader::output(op, 0);
  if (!source || !pooled || problem.inputOf(*source) < 0)
    return badInput("{} does not read an input", op.name);
  if (ProblemReader::output(op, 1))
    return badInput("{} with indices is not supported", op.name);
  const dvt_value &value = problem.value(*source);
  bool average = std::string_view(op.name) == "average_pool";
  if (!isFloatType(value.type) && (average || (value.type != DVT_U8 && value.type != DVT_I8)))
    return badInput("{} of {}: f32, f16, bf16{} are supported", op.name, valueText(value),
                    average ? "" : ", u8 and i8");
  if (value.rank < 3 || value.rank > 5)
    return badInput("{} of {}: rank 3 to 5 is supported", op.name, valueText(value));
  plan.source = *source;
  plan.pooled = *pooled;
  plan.average = average;
  plan.countPadding = ProblemReader::integer(op, "count_include_pad", 0) != 0;
  if (Status status = readWindows(op, value.rank - 2, plan); !status)
    return status.takeError();
  SpaceRequest request;
  request.shape = shapeOf(problem.value(*pooled));
  request.layout = layout;
  request.merge = false;
  Expression expression;
  expression.leaf(problem, *pooled);
  for (uint32_t i = 1; i < problem.opCount(); ++i) {
    if (Status status = expression.add(problem, problem.op(i)); !status)
      return status.takeError();
    plan.epilogue.push_back(i);
  }
  size_t rank = request.shape.size();
  auto dimensions = leafDimensions(problem, plan.epilogue, rank);
  if (!dimensions)
    return dimensions.takeError();
  for (const ExpressionNode &node : expression.nodes) {
    if (node.kind != ExpressionKind::Leaf || node.value == *pooled)
      continue;
    if (node.value == *source)
      return badInput("the operand of the pool is used after it, too");
    const dvt_value &tensor = problem.value(node.value);
    bool constant = problem.isConstant(node.value) || problem.isLiteral(node.value);
    bool channels = tensor.rank == rank && !isOne(tensor.extents[1]);
    request.tensors.push_back({node.value, !layout.isRowMajor() && !constant && channels, constant,
                               dimensions->at(node.value)});
  }
  const dvt_problem &all = problem.problem();
  for (uint32_t i = 0; i < all.output_count; ++i) {
    if (!sameShape(shapeOf(problem.value(all.outputs[i])), request.shape))
      return badInput("output {} has another shape than the pool",
                      valueText(problem.value(all.outputs[i])));
    if (problem.value(all.outputs[i]).may_alias == problem.inputOf(*source))
      return badInput("a pool cannot be computed in place");
    request.tensors.push_back({all.outputs[i], true, false});
  }
  auto space = makeSpace(problem, request);
  if (!space)
    return space.takeError();
  plan.space = std::move(*space);
  double window = 1;
  for (const PoolPlan::Window &one : plan.windows)
    window *= double(one.size);
  plan.split = splitTasks(plan.space.axes, machine.grain(std::clamp(32768 / window, 64.0, 16384.0)),
                          machine.isa.f32Lanes);
  return plan;
}

static std::string offerPool(const ProblemReader &problem, const Machine &machine,
                             const std::string &text, const ScheduleSink &sink) {
  auto layout = Layout::parse(text);
  if (!layout)
    return layout.error().message;
  auto plan = planPool(problem, machine, *layout);
  if (!plan)
    return plan.error().message;
  Schedule schedule = Schedule::rowMajor(text.empty() ? "pool" : "pool:" + text, problem.problem());
  for (const SpaceOperand &operand : plan->space.operands) {
    const dvt_value &value = problem.value(operand.value);
    int input = problem.inputOf(operand.value), output = problem.outputOf(operand.value);
    if (operand.packed && input >= 0) {
      auto bytes = packedBytesOf(plan->space, operand, value.type);
      if (!bytes)
        return "a constant of run-time extents cannot be packed";
      schedule.packedBytes[input] = *bytes;
    }
    bool channels = value.rank == plan->space.shape.size() && !isOne(value.extents[1]);
    if (output >= 0)
      schedule.outputLayouts[output] = text;
    else if (input >= 0 && channels && !problem.isConstant(operand.value))
      schedule.inputLayouts[input] = text;
  }
  schedule.inputLayouts[problem.inputOf(plan->source)] = text;
  double elements = ProblemReader::typicalElements(problem.value(plan->pooled)), window = 1;
  for (const PoolPlan::Window &one : plan->windows)
    window *= double(one.size);
  double speed = text.empty() && plan->windows.back().stride != 1
                     ? 1.5
                     : 6; // elements and window places in a cycle
  double bytes = elementBytes(problem.value(plan->source).type) *
                 (elements + ProblemReader::typicalElements(problem.value(plan->source)));
  schedule.estimateMicros =
      machine.startMicros() +
      std::max(elements * window / speed / 3000 / machine.threads, machine.memoryMicros(bytes));
  sink.offer(std::move(schedule));
  return {};
}

void proposePool(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink) {
  if (problem.opCount() == 0 || !isPool(problem.op(0).name))
    return;
  for (uint32_t i = 1; i < problem.opCount(); ++i)
    if (!isPointwiseOp(problem.op(i).name))
      return;
  if (std::string reason = offerPool(problem, machine, "", sink); !reason.empty())
    return sink.refuse("pool", reason);
  uint32_t rank = problem.value(*ProblemReader::output(problem.op(0), 0)).rank;
  if (isOne(problem.value(*ProblemReader::output(problem.op(0), 0)).extents[1]))
    return;
  for (const std::string &layout : imageLayouts(rank, machine))
    offerPool(problem, machine, layout, sink);
}

void packPool(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
              uint32_t input, const void *constant, void *packed) {
  auto layout = Layout::parse(schedule.parameter(""));
  if (!layout)
    return;
  if (auto plan = planPool(problem, machine, *layout))
    packInput(plan->space, problem, input, constant, packed);
}

} // namespace dovetail::codegen
