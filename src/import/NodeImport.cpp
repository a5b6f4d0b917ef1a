// SPDX-License-Identifier: Apache-2.0
//
// Reading and changing a node's operands and attributes, and the map of all families' rules.
#include "import/NodeImport.h"

#include <unordered_map>

namespace dovetail::importer {

void NodeImport::setOperand(size_t i, mlir::Value value) {
  if (i >= operands.size())
    operands.resize(i + 1);
  operands[i] = value;
}

int64_t NodeImport::integer(std::string_view name, int64_t fallback) const {
  auto found = attributes.plain.find(name);
  auto *value = found == attributes.plain.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : fallback;
}

double NodeImport::real(std::string_view name, double fallback) const {
  auto found = attributes.plain.find(name);
  auto *value = found == attributes.plain.end() ? nullptr : std::get_if<double>(&found->second);
  return value ? *value : fallback;
}

std::string NodeImport::text(std::string_view name, std::string_view fallback) const {
  auto found = attributes.plain.find(name);
  auto *value =
      found == attributes.plain.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value ? *value : std::string(fallback);
}

std::optional<std::vector<int64_t>> NodeImport::ints(std::string_view name) const {
  auto found = attributes.plain.find(name);
  if (found == attributes.plain.end())
    return std::nullopt;
  auto *value = std::get_if<std::vector<int64_t>>(&found->second);
  return value ? std::optional(*value) : std::nullopt;
}

void NodeImport::set(std::string_view name, AttributeValue value) {
  attributes.plain.insert_or_assign(std::string(name), std::move(value));
}

void NodeImport::erase(std::string_view name) {
  if (auto found = attributes.plain.find(name); found != attributes.plain.end())
    attributes.plain.erase(found);
  if (auto found = attributes.strings.find(name); found != attributes.strings.end())
    attributes.strings.erase(found);
}

void NodeImport::intsToOperand(std::string_view name, size_t index) {
  if (std::optional<std::vector<int64_t>> values = ints(name))
    setOperand(index, emitter.ints(*values));
  erase(name);
}

OpRule findOpRule(std::string_view op) {
  static const std::unordered_map<std::string_view, OpRule> rules = [] {
    std::unordered_map<std::string_view, OpRule> all;
    for (auto family :
         {pointwiseRules, convolutionRules, poolRules, normalizationRules, reductionRules,
          viewRules, movementRules, resizeRules, recurrentRules, generatorRules})
      for (const NamedRule &named : family())
        all.emplace(named.op, named.rule);
    return all;
  }();
  auto found = rules.find(op);
  return found == rules.end() ? nullptr : found->second;
}

} // namespace dovetail::importer
