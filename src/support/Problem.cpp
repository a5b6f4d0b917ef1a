// SPDX-License-Identifier: Apache-2.0
//
// Canonical numbering, checking and specialising of problems.
#include "support/Problem.h"

#include <algorithm>
#include <set>

namespace dovetail {

namespace {

bool isName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
}

std::set<std::string> usedSymbols(const Problem &problem) {
  std::set<std::string> symbols;
  for (const ProblemValue &value : problem.values)
    for (const Extent &extent : value.extents)
      if (!extent.isStatic())
        for (std::string &name : extent.symbols())
          symbols.insert(std::move(name));
  return symbols;
}

Status verifyValue(const Problem &problem, uint32_t index) {
  const ProblemValue &value = problem.values[index];
  if (!typeName(value.type))
    return badInput("value %{} has the unknown element type {}", index, int(value.type));
  for (const Extent &extent : value.extents)
    if (extent.isStatic() && extent.value() < 0)
      return badInput("value %{} has the negative extent {}", index, extent.value());
  if (!value.strides.empty() && value.strides.size() != value.extents.size())
    return badInput("value %{} has {} strides and {} extents", index, value.strides.size(),
                    value.extents.size());
  if (value.mayAlias < -1 || value.mayAlias >= int64_t(problem.inputs.size()))
    return badInput("value %{} may alias input {}, but there are {} inputs", index, value.mayAlias,
                    problem.inputs.size());
  if (!value.isLiteral && !value.uniform)
    return value.literal.empty() ? Status::success()
                                 : badInput("value %{} has bytes but is not a literal", index);
  if (value.type == DVT_STRING)
    return badInput("value %{} is a literal of strings, which are not supported", index);
  if (value.uniform)
    return value.literal.size() == bytesOf(value.type, 1)
               ? Status::success()
               : badInput("value %{} is uniform and has {} bytes instead of one element", index,
                          value.literal.size());
  int64_t count = 1;
  for (const Extent &extent : value.extents)
    if (!extent.isStatic() || __builtin_mul_overflow(count, extent.value(), &count) ||
        count > INT64_MAX / 16)
      return badInput("value %{} is a literal whose size is symbolic or too large", index);
  if (value.literal.size() != bytesOf(value.type, count))
    return badInput("value %{} is a literal of {} elements with {} bytes", index, count,
                    value.literal.size());
  return Status::success();
}

} // namespace

void Problem::canonicalize() {
  // A uniform constant that nobody hands over is a literal.
  std::vector<bool> fromOutside(values.size(), false);
  for (uint32_t input : inputs)
    if (input < values.size())
      fromOutside[input] = true;
  for (size_t i = 0; i < values.size(); ++i)
    values[i].isLiteral |= values[i].uniform && !fromOutside[i];

  std::vector<uint32_t> renumbered(values.size(), kNoValue);
  std::vector<ProblemValue> kept;
  auto place = [&](uint32_t &index) {
    if (index >= values.size()) // absent, or for verify to find
      return;
    if (renumbered[index] == kNoValue) {
      renumbered[index] = kept.size();
      kept.push_back(std::move(values[index]));
    }
    index = renumbered[index];
  };
  std::vector<bool> literal(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    literal[i] = values[i].isLiteral;
  for (uint32_t &input : inputs)
    place(input);
  // The text declares literals beside the inputs, so they come next, in the order of their first
  // use.
  for (ProblemOp &op : ops)
    for (uint32_t operand : op.inputs)
      if (operand < literal.size() && literal[operand])
        place(operand);
  for (uint32_t output : outputs)
    if (output < literal.size() && literal[output])
      place(output);
  for (ProblemOp &op : ops) {
    for (uint32_t &operand : op.inputs)
      place(operand);
    for (uint32_t &result : op.outputs)
      place(result);
  }
  for (uint32_t &output : outputs)
    place(output);
  values = std::move(kept);
  for (ProblemValue &value : values)
    value.constant |= value.isLiteral || value.uniform;

  SymbolRanges used;
  for (const std::string &name : usedSymbols(*this)) {
    auto known = ranges.find(name);
    used[name] = known == ranges.end() ? SymbolRange() : known->second;
  }
  ranges = std::move(used);
}

Problem Problem::specialize(const SymbolValues &symbols) const {
  Problem result = *this;
  for (ProblemValue &value : result.values)
    for (Extent &extent : value.extents)
      if (!extent.isStatic())
        extent = extent.substitute(symbols);
  for (const auto &[name, value] : symbols)
    result.ranges.erase(name);
  return result;
}

bool Problem::hasSymbols() const {
  return std::any_of(values.begin(), values.end(), [](const ProblemValue &value) {
    return std::any_of(value.extents.begin(), value.extents.end(),
                       [](const Extent &extent) { return !extent.isStatic(); });
  });
}

Status Problem::verify() const {
  std::vector<bool> defined(values.size(), false);
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (Status status = verifyValue(*this, i); !status)
      return status;
    defined[i] = values[i].isLiteral;
  }
  for (uint32_t input : inputs) {
    if (input >= values.size())
      return badInput("input %{} does not exist", input);
    if (defined[input])
      return badInput("input %{} is listed twice or is a literal", input);
    defined[input] = true;
  }
  for (const ProblemOp &op : ops) {
    if (!isName(op.name))
      return badInput("'{}' is not the name of an op", op.name);
    for (const auto &[name, value] : op.attributes)
      if (!isName(name))
        return badInput("{}: '{}' is not the name of an attribute", op.name, name);
    for (uint32_t operand : op.inputs)
      if (operand != kNoValue && (operand >= values.size() || !defined[operand]))
        return badInput("{}: operand %{} is used before it is defined", op.name, operand);
    for (uint32_t result : op.outputs) {
      if (result == kNoValue)
        continue;
      if (result >= values.size() || defined[result])
        return badInput("{}: result %{} does not exist or is defined twice", op.name, result);
      defined[result] = true;
    }
  }
  for (uint32_t output : outputs)
    if (output >= values.size() || !defined[output])
      return badInput("output %{} is not defined", output);
  for (const auto &[name, range] : ranges)
    if (range.min < 0 || range.min > range.max || range.divisor < 1)
      return badInput("symbol {}: {}..{}/{} is not a range", name, range.min, range.max,
                      range.divisor);
  return Status::success();
}

std::string summary(const Problem &problem) {
  std::string out;
  for (const ProblemOp &op : problem.ops)
    out += (out.empty() ? "" : "+") + op.name;
  return out;
}

} // namespace dovetail
