// SPDX-License-Identifier: Apache-2.0
//
// Permissions from the table, uses from the order of the steps.
#include "plan/InPlace.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <set>

#include "artifact/BlockMemory.h"

namespace dovetail::plan {

bool suitsInPlace(const OpTable &table, const Region &region) {
  return std::all_of(region.units.begin(), region.units.end(), [&](Unit unit) {
    OpRole role = unit.composite ? table.composites[unit.index].role : table.ops[unit.index].role;
    return role == OpRole::Pointwise || role == OpRole::Reduction;
  });
}

namespace {

/// The last op, in the table's order, that reads the memory of a value, through views or not;
/// nothing where that memory is no activation's.
std::optional<uint32_t> lastReader(const OpTable &table, uint32_t value) {
  auto viewedBy = [&](uint32_t op) { return table.ops[op].role == OpRole::View; };
  while (table.values[value].producer >= 0 &&
         viewedBy(static_cast<uint32_t>(table.values[value].producer)))
    value = table.ops[static_cast<uint32_t>(table.values[value].producer)].inputs[0];
  const TableValue &owner = table.values[value];
  if (owner.constant || owner.producer < 0 || owner.isShapeData || owner.dataDependent)
    return std::nullopt;
  uint32_t last = 0;
  std::vector<uint32_t> shown{value};
  while (!shown.empty()) {
    uint32_t next = shown.back();
    shown.pop_back();
    if (std::find(table.outputs.begin(), table.outputs.end(), next) != table.outputs.end())
      return std::nullopt;
    for (uint32_t user : table.values[next].users) {
      last = std::max(last, user);
      if (viewedBy(user) && table.ops[user].inputs[0] == next)
        shown.push_back(table.ops[user].outputs[0]);
    }
  }
  return last;
}

} // namespace

bool allowInPlace(const OpTable &table, const Region &region, RegionProblem &problem) {
  if (!suitsInPlace(table, region))
    return false;
  auto dies = [&](uint32_t value) {
    auto reader = lastReader(table, value);
    return reader && std::binary_search(region.ops.begin(), region.ops.end(), *reader);
  };
  std::set<size_t> taken;
  for (size_t i = 0; i < problem.results.size(); ++i) {
    const TableValue &result = table.values[problem.results[i]];
    for (size_t k = 0; k < problem.operands.size(); ++k) {
      const TableValue &operand = table.values[problem.operands[k]];
      if (operand.type != result.type || operand.extents != result.extents ||
          !operand.strides.empty() || !dies(problem.operands[k]) || !taken.insert(k).second)
        continue;
      problem.problem.values[problem.problem.outputs[i]].mayAlias = static_cast<int32_t>(k);
      break;
    }
  }
  return !taken.empty();
}

void takeOverDyingOperands(PlanBlock &block, const std::vector<std::string> &problems) {
  std::map<uint32_t, Problem> parsed;
  std::vector<uint32_t> roots = aliasRoots(block), lastRead = lastReads(block);
  for (uint32_t s = 0; s < block.steps.size(); ++s) {
    const PlanStep &step = block.steps[s];
    if ((step.kind != StepKind::Kernel && step.kind != StepKind::LateBound) ||
        problems[step.problem].find(" alias(") == std::string::npos)
      continue;
    auto known = parsed.find(step.problem);
    if (known == parsed.end()) {
      auto problem = Problem::parse(problems[step.problem]);
      assert(problem && "the plan's own problems can be read");
      known = parsed.emplace(step.problem, std::move(*problem)).first;
    }
    // Layouts of the same bytes may still be two to a library, which then refuses.
    const Candidate &candidate = step.choice.candidate;
    auto takesAsItGives = [&](size_t operand, size_t result) {
      return candidate.inputLayouts[operand] == candidate.outputLayouts[result];
    };
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      int32_t k = known->second.values[known->second.outputs[i]].mayAlias;
      PlanValue &output = block.values[step.outputs[i]];
      if (k < 0 || output.storage != Storage::Arena)
        continue;
      uint32_t operand = step.inputs[static_cast<size_t>(k)], root = roots[operand];
      const PlanValue &dying = block.values[operand];
      auto isOther = [&](uint32_t value) { return value != operand && roots[value] == root; };
      if (block.values[root].storage == Storage::Arena && lastRead[root] == s &&
          dying.type == output.type && dying.extents == output.extents &&
          dying.layout == output.layout && takesAsItGives(static_cast<size_t>(k), i) &&
          dying.memory == output.memory && dying.strides.empty() &&
          std::none_of(step.inputs.begin(), step.inputs.end(), isOther))
        output.inPlaceOf = operand;
    }
  }
}

} // namespace dovetail::plan
