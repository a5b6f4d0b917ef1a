// SPDX-License-Identifier: Apache-2.0
//
// A node on its way from the op-set version it was written for to the newest definition of its op.
// The rule of its op family rewrites operands and attributes in place, emits further ops where the
// new definition needs them, or replaces the node as a whole; then it is emitted. libonnx's own
// converter is not used: it drops functions, gives old ways of resizing another meaning, and names
// no node in what it refuses (docs/decisions/0010-import-is-our-own.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/OpEmitter.h"

namespace dovetail::importer {

class NodeImport {
public:
  NodeImport(OpEmitter &emitter, std::string op, int version)
      : emitter(emitter), op(std::move(op)), version(version) {}

  OpEmitter &emitter;
  std::string op;  ///< ONNX op; a rule may change it
  int version;     ///< op-set version of the definition the node was written for
  Values operands; ///< null: absent
  OpAttributes attributes;
  std::vector<bool> wanted; ///< for each output, whether it has a name
  /// Values that stand for the outputs, set by rules that emit everything themselves.
  std::optional<Values> replacement;

  mlir::Value operand(size_t i) const { return i < operands.size() ? operands[i] : mlir::Value(); }
  void setOperand(size_t i, mlir::Value value);
  bool wants(size_t output) const { return output < wanted.size() && wanted[output]; }

  bool has(std::string_view name) const { return attributes.has(name); }
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::optional<std::vector<int64_t>> ints(std::string_view name) const;
  void set(std::string_view name, AttributeValue value);
  void erase(std::string_view name);

  /// Turns the attribute `name`, a list of integers, into operand `index`; leaves the operand
  /// absent without it.
  void intsToOperand(std::string_view name, size_t index);

  /// "node 'name' (Conv): ..."
  template <typename... Args> Error fail(fmt::format_string<Args...> format, Args &&...args) const {
    return emitter.fail(op, format, std::forward<Args>(args)...);
  }
};

/// What a family does to a node of one of its ops.
using OpRule = Status (*)(NodeImport &);
struct NamedRule {
  std::string_view op;
  OpRule rule;
};

/// The rule of an op; null where all definitions of the op read the same.
OpRule findOpRule(std::string_view op);

// The families, each in a file of its own.
std::vector<NamedRule> pointwiseRules();
std::vector<NamedRule> convolutionRules();
std::vector<NamedRule> poolRules();
std::vector<NamedRule> normalizationRules();
std::vector<NamedRule> reductionRules();
std::vector<NamedRule> viewRules();
std::vector<NamedRule> movementRules();
std::vector<NamedRule> resizeRules();
std::vector<NamedRule> recurrentRules();
std::vector<NamedRule> generatorRules();

} // namespace dovetail::importer
