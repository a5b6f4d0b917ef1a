// SPDX-License-Identifier: Apache-2.0
//
// Values are numbered in the order in which they are defined, so a symbol belongs to the first one
// that has it.
#include "plan/ExtentSources.h"

#include <algorithm>
#include <set>

#include "graph/OpRegistry.h"

namespace dovetail::plan {
namespace {

std::vector<uint32_t> sorted(std::vector<uint32_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

} // namespace

ExtentSources::ExtentSources(const OpTable &table) : table(table) {
  std::set<std::string> seen = table.outerSymbols; // nothing in a body is waited for to know these
  for (uint32_t number = 0; number < table.values.size(); ++number)
    for (const Extent &extent : table.values[number].extents) {
      if (extent.isStatic())
        continue;
      std::vector<std::string> symbols = extent.symbols();
      for (const std::string &symbol : symbols)
        if (seen.insert(symbol).second && table.values[number].dataDependent &&
            extent == Extent::symbol(symbol))
          sources.emplace(symbol, number);
    }
}

void ExtentSources::add(const std::vector<Extent> &extents, std::vector<uint32_t> &values) const {
  if (sources.empty())
    return;
  for (const Extent &extent : extents)
    if (!extent.isStatic())
      for (const std::string &symbol : extent.symbols())
        if (auto source = sources.find(symbol); source != sources.end())
          values.push_back(source->second);
}

void ExtentSources::addAll(const OpTable &body, std::vector<uint32_t> &values) const {
  for (const TableValue &value : body.values) {
    add(value.extents, values);
    add(value.shapeData, values);
  }
  for (const OpTable &inner : body.bodies)
    addAll(inner, values);
}

std::vector<uint32_t> ExtentSources::ofShapeData(uint32_t value) const {
  std::vector<uint32_t> values;
  add(table.values[value].shapeData, values);
  return sorted(std::move(values));
}

std::vector<uint32_t> ExtentSources::ofOp(const TableOp &op) const {
  std::vector<uint32_t> values;
  if (op.role == OpRole::View)
    for (uint32_t output : op.outputs)
      if (output != kNoValue)
        add(table.values[output].extents, values);
  if (op.role == OpRole::Control)
    for (uint32_t body : op.bodies)
      if (body < table.bodies.size())
        addAll(table.bodies[body], values);
  auto isBeside = [&](uint32_t value) {
    return std::find(op.inputs.begin(), op.inputs.end(), value) != op.inputs.end() ||
           std::find(op.outputs.begin(), op.outputs.end(), value) != op.outputs.end();
  };
  std::erase_if(values, isBeside);
  return sorted(std::move(values));
}

bool findsOutExtents(const OpTable &table, const Region &region) {
  return std::any_of(region.outputs.begin(), region.outputs.end(), [&](uint32_t value) {
    if (!table.values[value].dataDependent || table.values[value].producer < 0)
      return false;
    const auto *info =
        graph::findOp(table.ops[static_cast<size_t>(table.values[value].producer)].name);
    return info && !info->dataDependent;
  });
}

} // namespace dovetail::plan
