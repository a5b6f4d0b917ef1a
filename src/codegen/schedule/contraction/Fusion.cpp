// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/schedule/contraction/Fusion.h"

#include <algorithm>

#include "codegen/schedule/Expression.h"

namespace dovetail::codegen {

std::optional<uint32_t> Fusion::findAnchor(const ProblemReader &problem,
                                           std::initializer_list<std::string_view> names) {
  for (uint32_t i = 0; i < problem.opCount(); ++i)
    if (std::find(names.begin(), names.end(), problem.op(i).name) != names.end())
      return i;
  return std::nullopt;
}

static bool sameExtents(const dvt_value &value, const std::vector<dvt_extent> &extents) {
  return value.rank == extents.size() &&
         std::equal(extents.begin(), extents.end(), value.extents, sameExtent);
}

/// Outputs are written while operands of the contraction are still read, so these two may not share
/// memory.
static Status checkMemory(const ProblemReader &problem, uint32_t anchor, uint32_t rightPosition) {
  const dvt_op &op = problem.op(anchor);
  auto reads = [&](uint32_t value) {
    for (uint32_t i = 0; i < op.input_count; ++i) {
      uint32_t operand = op.inputs[i];
      while (operand != DVT_NO_VALUE && operand != value && problem.producerOf(operand) >= 0)
        operand = problem.op(uint32_t(problem.producerOf(operand))).inputs[0];
      if (operand != DVT_NO_VALUE && operand == value)
        return true;
    }
    return false;
  };
  const dvt_problem &source = problem.problem();
  for (uint32_t i = 0; i < problem.valueCount(); ++i)
    if (problem.value(i).strides)
      return badInput("{} on strided memory; dense tensors are supported", op.name);
  for (uint32_t i = 0; i < source.output_count; ++i) {
    int32_t shared = problem.value(source.outputs[i]).may_alias;
    if (shared >= 0 && uint32_t(shared) < source.input_count && reads(source.inputs[shared]))
      return badInput("{} with an output in the memory of its operand", op.name);
  }
  for (uint32_t i : {0u, rightPosition})
    if (auto operand = ProblemReader::input(op, i); operand && problem.isLiteral(*operand))
      return badInput("{} with a literal as operand {}", op.name, i);
  return Status::success();
}

/// The dequantisation behind an operand of the contraction, if need be behind a transpose; nothing
/// where there is none that serves this operand alone and, if asked for, is of constants.
static std::optional<uint32_t> findDequantization(const ProblemReader &problem, uint32_t value,
                                                  bool ofConstants) {
  for (int hops = 0; hops < 2; ++hops) {
    int producer = problem.producerOf(value);
    if (producer < 0 || problem.useCount(value) != 1 || problem.outputOf(value) >= 0)
      return std::nullopt;
    const dvt_op &op = problem.op(uint32_t(producer));
    if (std::string_view(op.name) == "dequantize_linear") {
      for (uint32_t i = 0; ofConstants && i < op.input_count; ++i)
        if (op.inputs[i] != DVT_NO_VALUE && !problem.isConstant(op.inputs[i]) &&
            !problem.isLiteral(op.inputs[i]))
          return std::nullopt;
      return uint32_t(producer);
    }
    if (std::string_view(op.name) != "transpose")
      return std::nullopt;
    value = op.inputs[0];
  }
  return std::nullopt;
}

Expected<Fusion> Fusion::around(const ProblemReader &problem, uint32_t anchor, Takes takes) {
  Fusion fusion;
  fusion.anchor = anchor;
  const dvt_op &contraction = problem.op(anchor);
  std::string name = contraction.name;
  if (name.starts_with("q_linear_"))
    fusion.rightPosition = 3;
  if (contraction.output_count != 1 || contraction.outputs[0] == DVT_NO_VALUE)
    return badInput("{} with {} outputs", name, contraction.output_count);
  fusion.result = contraction.outputs[0];
  fusion.extents = extentsOf(problem.value(fusion.result));
  for (uint32_t i = 0; i < contraction.input_count; ++i)
    if (takes != Takes::Bytes && contraction.inputs[i] != DVT_NO_VALUE &&
        !isFloatType(problem.value(contraction.inputs[i]).type))
      return badInput("{} of {}; f32, f16 and bf16 are supported", name,
                      elementTypeName(problem.value(contraction.inputs[i]).type));

  if (Status status = checkMemory(problem, anchor, fusion.rightPosition); !status)
    return status.takeError();
  bool bytes = takes == Takes::Bytes;
  if (auto right = ProblemReader::input(contraction, fusion.rightPosition);
      takes != Takes::Floats && right)
    fusion.dequantization = findDequantization(problem, *right, !bytes);
  if (auto left = ProblemReader::input(contraction, 0); bytes && left)
    fusion.leftDequantization = findDequantization(problem, *left, false);
  auto isDequantization = [&](int op) {
    return op >= 0 && (uint32_t(op) == fusion.dequantization.value_or(UINT32_MAX) ||
                       uint32_t(op) == fusion.leftDequantization.value_or(UINT32_MAX));
  };
  auto dequantizedBy = [&](uint32_t value) { return isDequantization(problem.producerOf(value)); };
  auto feedsDequantization = [&](uint32_t value) {
    for (auto op : {fusion.dequantization, fusion.leftDequantization})
      if (bytes && op && problem.op(*op).inputs[0] == value)
        return true;
    return false;
  };

  std::vector<bool> follows(problem.valueCount(), false);
  follows[fusion.result] = true;
  Expression expression;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const dvt_op &op = problem.op(i);
    if (i == anchor || isDequantization(int(i)))
      continue;
    if (std::string_view(op.name) == "transpose" && op.input_count == 1) {
      bool feeds = std::find(contraction.inputs, contraction.inputs + contraction.input_count,
                             op.outputs[0]) != contraction.inputs + contraction.input_count ||
                   feedsDequantization(op.outputs[0]);
      if (!feeds || problem.useCount(op.outputs[0]) != 1 || problem.outputOf(op.outputs[0]) >= 0 ||
          (problem.inputOf(op.inputs[0]) < 0 && !dequantizedBy(op.inputs[0])))
        return badInput("a transpose beside {} that does not only feed it", name);
      fusion.transposes.push_back(i);
      continue;
    }
    if (!isPointwiseOp(op.name))
      return badInput("{} together with {}", name, op.name);
    for (uint32_t j = 0; j < contraction.input_count; ++j)
      for (uint32_t k = 0; k < op.output_count; ++k)
        if (contraction.inputs[j] != DVT_NO_VALUE && contraction.inputs[j] == op.outputs[k])
          return badInput("{} before {} in one kernel", op.name, name);
    if (auto reason = pointwiseRefusal(problem, op))
      return badInput("after {}: {}", name, *reason);
    if (Status status = expression.add(problem, op); !status)
      return status.takeError();
    for (uint32_t j = 0; j < op.input_count; ++j) {
      uint32_t operand = op.inputs[j];
      if (operand == DVT_NO_VALUE || problem.uniformLiteral(operand))
        continue;
      auto dimensions = operandDimensions(problem, op, j);
      if (!dimensions)
        return dimensions.takeError();
      uint32_t own = problem.value(*ProblemReader::output(op, 0)).rank;
      if (!dimensions->empty() && dimensions->back() + 1 != own)
        return badInput("{} along an axis after {}", op.name, name);
      if (follows[operand])
        continue;
      if ((problem.inputOf(operand) >= 0 || problem.isLiteral(operand)) &&
          std::find(fusion.leaves.begin(), fusion.leaves.end(), operand) == fusion.leaves.end())
        fusion.leaves.push_back(operand);
    }
    for (uint32_t j = 0; j < op.output_count; ++j)
      if (op.outputs[j] != DVT_NO_VALUE) {
        const dvt_value &output = problem.value(op.outputs[j]);
        if (output.rank > fusion.extents.size())
          return badInput("{} widens the output of {} to {}", op.name, name, valueText(output));
        follows[op.outputs[j]] = true;
      }
    fusion.followers.push_back(i);
  }
  for (uint32_t i = 0; i < problem.problem().output_count; ++i) {
    uint32_t output = problem.problem().outputs[i];
    if (!follows[output] || !sameExtents(problem.value(output), fusion.extents))
      return badInput("{} with an output {} beside its {}", name, valueText(problem.value(output)),
                      valueText(problem.value(fusion.result)));
  }
  fusion.cost = expression.cost();
  return fusion;
}

std::optional<Fusion::Operand> Fusion::operand(const ProblemReader &problem,
                                               uint32_t position) const {
  std::optional<uint32_t> value = ProblemReader::input(problem.op(anchor), position);
  if (!value)
    return std::nullopt;
  Operand operand{*value, {}};
  for (unsigned i = 0; i < problem.value(*value).rank; ++i)
    operand.order.push_back(i);
  for (int producer = problem.producerOf(*value); producer >= 0;
       producer = problem.producerOf(operand.value)) {
    const dvt_op &op = problem.op(uint32_t(producer));
    operand.value = op.inputs[0];
    if (std::string_view(op.name) != "transpose")
      continue;
    std::optional<std::vector<int64_t>> order = ProblemReader::integers(op, "perm");
    for (unsigned &dimension : operand.order)
      dimension =
          order ? unsigned((*order)[dimension]) : unsigned(operand.order.size()) - 1 - dimension;
  }
  return operand;
}

std::optional<std::vector<Access>>
Fusion::leafAccesses(const ProblemReader &problem,
                     const std::vector<std::string> &inputLayouts) const {
  std::vector<Access> accesses;
  for (uint32_t leaf : leaves) {
    int input = problem.inputOf(leaf);
    auto layout = Layout::parse(input < 0 ? std::string() : inputLayouts[uint32_t(input)]);
    if (!layout)
      return std::nullopt;
    auto access = broadcastAccess(problem.value(leaf), *layout, extents);
    if (!access)
      return std::nullopt;
    accesses.push_back(std::move(*access));
  }
  return accesses;
}

} // namespace dovetail::codegen
