// SPDX-License-Identifier: Apache-2.0
//
// The parts of operands by kind of step, and the checks in the order in which each relies on the
// one before.
#include "artifact/ControlFlow.h"

#include "support/Layout.h"

namespace dovetail {

namespace {

/// Bodies inside bodies. ONNX models nest two or three deep.
constexpr uint32_t kDeepestBlock = 64;

Error bad(const PlanStep &step, const std::string &why) {
  return badInput("step '{}': {}", step.label, why);
}

class ControlFlowCheck {
public:
  ControlFlowCheck(const Plan &plan, const PlanBlock &block, const PlanStep &step)
      : plan(plan), block(block), step(step) {}
  Status run();

private:
  const PlanValue &operand(uint32_t i) const { return block.values[step.inputs[i]]; }
  const PlanValue &result(uint32_t i) const { return block.values[step.outputs[i]]; }
  Status isOneOf(const PlanValue &value, dvt_type type, const char *what) const;
  Status isAlike(const PlanValue &outer, const PlanValue &inner, int rankDifference) const;
  Status ifStep(const BodyBorder &border) const;
  Status loopStep(const BodyBorder &border) const;
  Status scanStep(const BodyBorder &border) const;
  Status captured(const BodyBorder &border, const PlanBlock &body) const;
  Status bodyHas(const PlanBlock &body, size_t inputs, size_t outputs) const {
    return body.inputs.size() == inputs && body.outputs.size() == outputs
               ? Status::success()
               : Status(bad(step, "its body has other inputs or outputs than it needs"));
  }

  const Plan &plan;
  const PlanBlock &block;
  const PlanStep &step;
};

Status ControlFlowCheck::isOneOf(const PlanValue &value, dvt_type type, const char *what) const {
  Extent count = elementCount(value.extents);
  if (value.type != type || (count.isStatic() && count.value() != 1))
    return bad(step, fmt::format("its {} is not one {}", what, typeName(type)));
  return Status::success();
}

/// `outer` has `rankDifference` dimensions more than `inner`, and the same type.
Status ControlFlowCheck::isAlike(const PlanValue &outer, const PlanValue &inner,
                                 int rankDifference) const {
  if (outer.type != inner.type ||
      int64_t(outer.extents.size()) != int64_t(inner.extents.size()) + rankDifference)
    return bad(step, fmt::format("'{}' and '{}' of its body differ in type or rank", outer.name,
                                 inner.name));
  return rankDifference > 0 && typeBits(outer.type) < 8
             ? Status(bad(step, fmt::format("'{}' has elements of less than a byte, which cannot "
                                            "be taken apart",
                                            outer.name)))
             : Status::success();
}

Status ControlFlowCheck::captured(const BodyBorder &border, const PlanBlock &body) const {
  size_t outer = step.inputs.size() - border.captured, inner = body.inputs.size() - border.captured;
  for (uint32_t i = 0; i < border.captured; ++i)
    if (Status status = isAlike(operand(outer + i), body.values[body.inputs[inner + i]], 0);
        !status)
      return status;
  return Status::success();
}

Status ControlFlowCheck::ifStep(const BodyBorder &border) const {
  if (Status status = isOneOf(operand(0), DVT_BOOL, "condition"); !status)
    return status;
  for (uint32_t number : step.bodies) {
    const PlanBlock &body = plan.blocks[number];
    if (Status status = bodyHas(body, border.captured, border.results); !status)
      return status;
    if (Status status = captured(border, body); !status)
      return status;
    for (uint32_t i = 0; i < border.results; ++i)
      if (Status status = isAlike(result(i), body.values[body.outputs[i]], 0); !status)
        return status;
  }
  return Status::success();
}

Status ControlFlowCheck::loopStep(const BodyBorder &border) const {
  const PlanBlock &body = plan.blocks[step.bodies[0]];
  if (Status status =
          bodyHas(body, 2 + border.carried + border.captured, 1 + border.carried + border.stacked);
      !status)
    return status;
  auto inner = [&](uint32_t i) -> const PlanValue & { return body.values[body.inputs[i]]; };
  auto given = [&](uint32_t i) -> const PlanValue & { return body.values[body.outputs[i]]; };
  Status status = isOneOf(inner(0), DVT_I64, "iteration number");
  if (status)
    status = isOneOf(inner(1), DVT_BOOL, "condition");
  if (status)
    status = isOneOf(given(0), DVT_BOOL, "condition");
  if (status && step.inputs[0] != kNoValue)
    status = isOneOf(operand(0), DVT_I64, "trip count");
  if (status && step.inputs[1] != kNoValue)
    status = isOneOf(operand(1), DVT_BOOL, "condition");
  for (uint32_t i = 0; status && i < border.carried; ++i) {
    status = isAlike(operand(2 + i), inner(2 + i), 0);
    if (status)
      status = isAlike(given(1 + i), inner(2 + i), 0);
    if (status)
      status = isAlike(result(i), inner(2 + i), 0);
  }
  for (uint32_t i = 0; status && i < border.stacked; ++i)
    status = isAlike(result(border.carried + i), given(1 + border.carried + i), 1);
  return status ? captured(border, body) : status;
}

Status ControlFlowCheck::scanStep(const BodyBorder &border) const {
  const PlanBlock &body = plan.blocks[step.bodies[0]];
  Status status = bodyHas(body, border.carried + border.scanned + border.captured, border.results);
  if (!status)
    return status;
  auto inner = [&](uint32_t i) -> const PlanValue & { return body.values[body.inputs[i]]; };
  auto given = [&](uint32_t i) -> const PlanValue & { return body.values[body.outputs[i]]; };
  for (uint32_t i = 0; status && i < border.carried; ++i) {
    status = isAlike(operand(i), inner(i), 0);
    if (status)
      status = isAlike(given(i), inner(i), 0);
    if (status)
      status = isAlike(result(i), inner(i), 0);
  }
  auto hasAxis = [&](const PlanValue &value, uint32_t i) {
    return step.scanned[i].axis < value.extents.size()
               ? Status::success()
               : Status(bad(step,
                            fmt::format("'{}' has no axis {}", value.name, step.scanned[i].axis)));
  };
  for (uint32_t i = 0; status && i < border.scanned; ++i) {
    status = isAlike(operand(border.carried + i), inner(border.carried + i), 1);
    if (status)
      status = hasAxis(operand(border.carried + i), i);
  }
  for (uint32_t i = 0; status && i < border.stacked; ++i) {
    status = isAlike(result(border.carried + i), given(border.carried + i), 1);
    if (status)
      status = hasAxis(result(border.carried + i), border.scanned + i);
  }
  return status ? captured(border, body) : status;
}

Status ControlFlowCheck::run() {
  auto border = borderOf(step);
  if (!border)
    return border.takeError();
  for (uint32_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] == kNoValue) {
      if (step.kind == StepKind::Loop && i < 2)
        continue;
      return bad(step, "an operand is absent that must be there");
    }
    auto layout = Layout::parse(operand(i).layout);
    if (!layout || !layout->isRowMajor() || !operand(i).strides.empty())
      return bad(step, "control flow reads something that is not dense and row-major");
  }
  for (uint32_t i = 0; i < step.outputs.size(); ++i) {
    auto layout = step.outputs[i] == kNoValue ? Expected<Layout>(bad(step, "a result is absent"))
                                              : Layout::parse(result(i).layout);
    if (!layout || !layout->isRowMajor() || result(i).inPlaceOf != kNoValue)
      return bad(step, "control flow gives something that is not a row-major value of its own");
  }
  switch (step.kind) {
  case StepKind::If:
    return ifStep(*border);
  case StepKind::Loop:
    return loopStep(*border);
  default:
    return scanStep(*border);
  }
}

} // namespace

bool isControlFlow(StepKind kind) {
  return kind == StepKind::If || kind == StepKind::Loop || kind == StepKind::Scan;
}

Expected<BodyBorder> borderOf(const PlanStep &step) {
  BodyBorder border;
  uint64_t inputs = step.inputs.size();
  border.results = static_cast<uint32_t>(step.outputs.size());
  border.carried = step.carried;
  border.leading = step.kind == StepKind::If ? 1 : step.kind == StepKind::Loop ? 2 : 0;
  if (step.bodies.size() != (step.kind == StepKind::If ? 2u : 1u))
    return bad(step, fmt::format("has {} bodies", step.bodies.size()));
  if (border.carried > border.results || (step.kind == StepKind::If && border.carried > 0))
    return bad(step, "carries more values than it gives");
  if (step.kind != StepKind::If)
    border.stacked = border.results - border.carried;
  if (step.kind == StepKind::Scan) {
    if (step.scanned.size() <= border.stacked)
      return bad(step, "scans nothing, or does not say along which axis");
    border.scanned = static_cast<uint32_t>(step.scanned.size()) - border.stacked;
  } else if (!step.scanned.empty()) {
    return bad(step, "has axes, which only a scan has");
  }
  uint64_t own = uint64_t(border.leading) + border.carried + border.scanned;
  if (inputs < own)
    return bad(step, fmt::format("has {} operands and needs {}", inputs, own));
  border.captured = static_cast<uint32_t>(inputs - own);
  return border;
}

Status checkControlFlow(const Plan &plan, const PlanBlock &block, const PlanStep &step) {
  return ControlFlowCheck(plan, block, step).run();
}

Expected<std::vector<uint32_t>> outerBlocks(const Plan &plan) {
  std::vector<uint32_t> outer(plan.blocks.size(), kNoValue), depth(plan.blocks.size(), 0);
  if (!outer.empty())
    outer[0] = 0;
  for (uint32_t b = 0; b < plan.blocks.size(); ++b) {
    if (outer[b] == kNoValue)
      return badInput("block {} is the body of no step before it", b);
    for (const PlanStep &step : plan.blocks[b].steps)
      for (uint32_t body : step.bodies) {
        if (!isControlFlow(step.kind) || body <= b || body >= plan.blocks.size() ||
            outer[body] != kNoValue)
          return bad(step, "its body does not exist, or is that of another step, too");
        outer[body] = b;
        depth[body] = depth[b] + 1;
        if (depth[body] > kDeepestBlock)
          return bad(step, fmt::format("bodies nest more than {} deep", kDeepestBlock));
      }
  }
  return outer;
}

std::set<std::string> inheritedSymbols(const Plan &plan, uint32_t number) {
  const PlanBlock &block = plan.blocks[number];
  std::set<std::string> used;
  auto use = [&](const Extent &extent) {
    if (!extent.isStatic())
      for (std::string &symbol : extent.symbols())
        used.insert(std::move(symbol));
  };
  for (const PlanValue &value : block.values)
    for (const Extent &extent : value.extents)
      use(extent);
  for (const PlanStep &step : block.steps) {
    for (const Extent &extent : step.data)
      use(extent);
    for (uint32_t body : step.bodies)
      used.merge(inheritedSymbols(plan, body));
  }
  for (const Requirement &requirement : block.requirements) {
    use(requirement.left);
    use(requirement.right);
  }
  for (const SymbolSource &source : block.symbolSources)
    used.erase(source.symbol);
  return used;
}

} // namespace dovetail
