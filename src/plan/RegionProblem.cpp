// SPDX-License-Identifier: Apache-2.0
//
// Turns a region into a problem: its values become self-contained, small constants become literals,
// so that what a provider may embed in a kernel is part of the problem's identity and what it may
// not is handed over at prepare.
#include <cstring>
#include <map>
#include <set>

#include "graph/OpRegistry.h"
#include "plan/Regions.h"

namespace dovetail::plan {
namespace {

constexpr int64_t kMaxLiteralElements = 64;

bool isFloat(dvt_type type) {
  return type == DVT_F32 || type == DVT_F64 || type == DVT_F16 || type == DVT_BF16;
}

/// All elements equal, byte for byte.
bool isUniform(const TableValue &value, uint64_t elementBytes) {
  const char *bytes = static_cast<const char *>(value.data);
  return value.dataBytes > elementBytes && elementBytes > 0 &&
         std::memcmp(bytes, bytes + elementBytes, value.dataBytes - elementBytes) == 0;
}

/// The same for two elements to a byte; where their number is odd, half of the last byte is
/// nothing.
bool isUniformOfNibbles(const TableValue &value, int64_t count) {
  const auto *bytes = static_cast<const uint8_t *>(value.data);
  for (int64_t i = 1; i < count; ++i)
    if ((bytes[i / 2] >> (i % 2 * 4) & 15) != (bytes[0] & 15))
      return false;
  return true;
}

/// Whether a single number on a grid is left out of a problem, so that layers that differ by their
/// scales and zero points only share kernels and measurements: scales of ordinary size, and zero
/// points other than 0, which kernels treat alike.
bool isInterchangeable(const TableValue &value) {
  if (!value.constant || !value.data || elementCount(value.extents) != Extent(1))
    return false;
  if (value.type == DVT_F32) {
    float scale;
    std::memcpy(&scale, value.data, sizeof scale);
    return scale >= 1e-9f && scale <= 1e9f;
  }
  return (value.type == DVT_U8 || value.type == DVT_I8) &&
         *static_cast<const uint8_t *>(value.data) != 0;
}

/// `decidesExtents`: its elements are read for extents, so they belong to the problem whatever
/// their type. `onGrid`: it is a scale or a zero point and nothing else.
ProblemValue describe(const TableValue &from, bool decidesExtents, bool onGrid) {
  ProblemValue to;
  to.type = from.type;
  to.extents = from.extents;
  to.constant = from.constant;
  if (!from.constant || !from.data || (onGrid && isInterchangeable(from)))
    return to;
  uint64_t bits = typeBits(from.type);
  Extent count = elementCount(from.extents);
  if (bits == 0 || !count.isStatic())
    return to;
  const uint8_t *bytes = static_cast<const uint8_t *>(from.data);
  uint64_t elementBytes = bits / 8;
  bool small = count.value() <= (isFloat(from.type) && !decidesExtents ? 1 : kMaxLiteralElements);
  if (small) {
    to.isLiteral = true;
    to.literal.assign(bytes, bytes + from.dataBytes);
  } else if (bits >= 8 && isUniform(from, elementBytes)) {
    to.isLiteral = to.uniform = true;
    to.literal.assign(bytes, bytes + elementBytes);
  } else if (bits == 4 && isUniformOfNibbles(from, count.value())) {
    to.isLiteral = to.uniform = true;
    to.literal = {uint8_t(bytes[0] & 15)};
  }
  return to;
}

/// Values that ops of the region read as scales or zero points only. Zero points of weights stay:
/// some decide how weights are packed.
std::set<uint32_t> gridValues(const OpTable &table, const Region &region) {
  std::set<uint32_t> grids, others;
  auto isGrid = [&](const TableOp &op, size_t operand) {
    if (op.role == OpRole::Quantize)
      return operand > 0;
    if (op.role == OpRole::Dequantize)
      return operand == 1 || (operand == 2 && !table.values[op.inputs[0]].constant);
    return (op.name == "q_linear_conv" || op.name == "q_linear_mat_mul") &&
           (operand == 1 || operand == 2 || operand == 4 || operand == 6 || operand == 7);
  };
  for (Unit unit : region.units) {
    if (unit.composite) {
      const std::vector<uint32_t> &inputs = table.composites[unit.index].inputs;
      others.insert(inputs.begin(), inputs.end());
      continue;
    }
    const TableOp &op = table.ops[unit.index];
    for (size_t i = 0; i < op.inputs.size(); ++i)
      (isGrid(op, i) ? grids : others).insert(op.inputs[i]);
  }
  for (uint32_t value : others)
    grids.erase(value);
  return grids;
}

} // namespace

RegionProblem makeProblem(const OpTable &table, const Region &region) {
  RegionProblem result;
  Problem &problem = result.problem;
  std::map<uint32_t, uint32_t> numbers;
  std::set<uint32_t> decidesExtents;
  auto noteShapeOperands = [&](const auto &op) {
    const graph::OpInfo *info = graph::findOp(op.name);
    for (unsigned i = 0; info && i < op.inputs.size(); ++i)
      if (info->isShapeOperand(i))
        decidesExtents.insert(op.inputs[i]);
  };
  for (Unit unit : region.units) {
    if (unit.composite)
      noteShapeOperands(table.composites[unit.index]);
    else
      noteShapeOperands(table.ops[unit.index]);
  }
  const std::set<uint32_t> grids = gridValues(table, region);
  auto numberOf = [&](uint32_t value) -> uint32_t {
    if (value == kNoValue || table.values[value].absent)
      return kNoValue;
    auto [found, isNew] = numbers.try_emplace(value, static_cast<uint32_t>(problem.values.size()));
    if (isNew)
      problem.values.push_back(
          describe(table.values[value], decidesExtents.count(value) != 0, grids.count(value) != 0));
    return found->second;
  };
  for (uint32_t value : region.inputs) {
    uint32_t number = numberOf(value);
    if (problem.values[number].isLiteral)
      continue;
    problem.inputs.push_back(number);
    result.operands.push_back(value);
  }
  for (Unit unit : region.units) {
    ProblemOp op;
    const auto &fill = [&](const auto &from) {
      op.name = from.name;
      op.version = from.version;
      op.attributes = from.attributes;
      for (uint32_t value : from.inputs)
        op.inputs.push_back(numberOf(value));
      for (uint32_t value : from.outputs)
        op.outputs.push_back(numberOf(value));
    };
    if (unit.composite)
      fill(table.composites[unit.index]);
    else
      fill(table.ops[unit.index]);
    while (!op.inputs.empty() && op.inputs.back() == kNoValue)
      op.inputs.pop_back();
    while (!op.outputs.empty() && op.outputs.back() == kNoValue)
      op.outputs.pop_back();
    problem.ops.push_back(std::move(op));
  }
  for (uint32_t value : region.outputs) {
    problem.outputs.push_back(numberOf(value));
    result.results.push_back(value);
  }
  for (const ProblemValue &value : problem.values)
    for (const Extent &extent : value.extents)
      for (const std::string &symbol : extent.symbols()) {
        auto known = table.ranges.find(symbol);
        problem.ranges[symbol] = known == table.ranges.end() ? SymbolRange{} : known->second;
      }
  problem.canonicalize();
  return result;
}

} // namespace dovetail::plan
