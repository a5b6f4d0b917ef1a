// SPDX-License-Identifier: Apache-2.0
//
// What a shape rule sees of one op and what it states about the results. Free of MLIR: operands
// come as types, extents and known elements, attributes by ONNX name. Elements of small integer
// tensors are tracked as extents, so that shape arithmetic in a model turns into expressions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dovetail/provider.h"
#include "graph/OpRegistry.h"
#include "support/Expected.h"
#include "support/Extent.h"
#include "support/Problem.h"
#include "support/Requirement.h"

namespace dovetail::graph {

using Shape = std::vector<Extent>;
/// Elements of a tensor in row-major order; nothing where one is not known.
using Elements = std::vector<std::optional<Extent>>;

/// Most elements that are tracked of one tensor.
constexpr size_t kMostTrackedElements = 64;

/// What is known of an operand or a result.
struct ValueFacts {
  bool absent = false;
  dvt_type type = DVT_UNDEFINED;
  Shape shape;
  /// Known elements of an integer or bool tensor of at most kMostTrackedElements; empty otherwise.
  std::optional<Elements> elements;
  /// All elements of a constant, row-major, or one that stands for all where `uniform`. Not owned.
  std::span<const char> bytes;
  bool constant = false;
  bool uniform = false;
};

class InferContext {
public:
  InferContext(const OpInfo &info, std::string node, const AttributeMap &attributes,
               std::vector<ValueFacts> operands, size_t resultCount, const SymbolRanges &ranges);

  const OpInfo &info;

  // ---- Operands ----
  size_t operandCount() const { return operands.size(); }
  /// Whether operand `i` is there.
  bool has(size_t i) const { return i < operands.size() && !operands[i].absent; }
  const ValueFacts &operand(size_t i) const { return operands[i]; }
  const Shape &shape(size_t i) const { return operands[i].shape; }
  size_t rank(size_t i) const { return operands[i].shape.size(); }
  dvt_type type(size_t i) const { return operands[i].type; }
  /// Tracked elements of operand `i`, read from its bytes where it is constant.
  std::optional<Elements> elements(size_t i) const;
  /// Elements of operand `i` where all are known numbers; constants may be larger than tracked
  /// ones.
  std::optional<std::vector<int64_t>> integers(size_t i) const;
  /// Elements of a constant operand of any number type.
  std::optional<std::vector<double>> numbers(size_t i) const;

  // ---- Attributes ----
  bool hasAttribute(std::string_view name) const { return attributes.count(name) != 0; }
  int64_t integer(std::string_view name, int64_t fallback) const;
  /// An integer that numbers an element type; DVT_UNDEFINED where it is too large or negative.
  dvt_type elementType(std::string_view name, dvt_type fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::optional<std::vector<int64_t>> list(std::string_view name) const;
  const AttributeMap &allAttributes() const { return attributes; }

  // ---- Results ----
  size_t resultCount() const { return results.size(); }
  /// States type and extents of result `i`; ignored where the op has fewer results.
  void result(size_t i, dvt_type type, Shape shape);
  /// States elements of result `i`; ignored where they are too many.
  void resultElements(size_t i, Elements elements);
  std::vector<ValueFacts> &takeResults() { return results; }

  // ---- Extents ----
  /// A new symbol for dimension `dimension` of result `i`, with at least `least` as its value.
  Extent fresh(size_t i, size_t dimension, int64_t least = 0);
  /// Supplies new symbols; by default they are named after the op and counted.
  std::function<Extent(size_t result, size_t dimension, int64_t least)> freshSymbol;
  SymbolRange range(const Extent &extent) const { return extent.range(ranges); }
  /// Whether a <= b, a >= b hold for all values of the symbols, as far as is known.
  bool surelyAtMost(const Extent &a, const Extent &b) const;
  Extent least(const Extent &a, const Extent &b) const;
  Extent most(const Extent &a, const Extent &b) const;
  /// Extent of two broadcast ones; an error where they are known to differ.
  Expected<Extent> broadcast(const Extent &a, const Extent &b) const;
  Expected<Shape> broadcast(const Shape &a, const Shape &b) const;

  // ---- Checks ----
  /// `axis` counted from the front; an error where it is out of range for `rank`.
  Expected<int64_t> axis(int64_t axis, size_t rank) const;
  Expected<std::vector<int64_t>> axes(const std::vector<int64_t> &axes, size_t rank) const;
  Status needRank(size_t i, size_t rank) const;
  Status needRankAtLeast(size_t i, size_t rank) const;
  /// An error where two extents are known to differ; a requirement where that is not known yet.
  Status needEqual(const Extent &a, const Extent &b, std::string_view what) const;
  /// An error where `extent` is known to be less than `least`; a requirement where it may be.
  /// `what` is what has the extent.
  Status needAtLeast(const Extent &extent, const Extent &least, std::string_view what) const;
  /// What must hold for the values that symbols will have, as far as the rule asked for it.
  std::vector<Requirement> &takeRequirements() { return requirements; }
  template <typename... Args> Error fail(fmt::format_string<Args...> format, Args &&...args) const {
    return {ErrorKind::BadInput, title() + ": " + fmt::format(format, std::forward<Args>(args)...)};
  }
  /// "Conv 'node'" for messages.
  std::string title() const;
  const std::string &node() const { return nodeName; }

private:
  std::string nodeName;
  const AttributeMap &attributes;
  std::vector<ValueFacts> operands;
  std::vector<ValueFacts> results;
  const SymbolRanges &ranges;
  unsigned freshCount = 0;
  /// Grows while operands are checked, which changes nothing else.
  mutable std::vector<Requirement> requirements;
};

/// "[2,N,3]"
std::string shapeText(const Shape &shape);

/// Element `index` of a row-major buffer as a number; nothing for types that are none.
std::optional<double> numberAt(dvt_type type, const char *bytes, size_t index);
std::optional<int64_t> integerAt(dvt_type type, const char *bytes, size_t index);
bool isIntegerType(dvt_type type); ///< bool included
bool isFloatType(dvt_type type);

} // namespace dovetail::graph
