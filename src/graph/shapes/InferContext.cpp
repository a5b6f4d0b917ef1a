// SPDX-License-Identifier: Apache-2.0
//
// Reading operands and attributes, arithmetic on extents that uses what is known of symbols, and
// checks.
#include "graph/shapes/InferContext.h"

#include <cmath>
#include <cstring>

namespace dovetail::graph {
namespace {

template <typename T> T load(const char *bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

double halfToDouble(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                    : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double bfloatToDouble(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

} // namespace

bool isIntegerType(dvt_type type) {
  switch (type) {
  case DVT_U8:
  case DVT_I8:
  case DVT_U16:
  case DVT_I16:
  case DVT_I32:
  case DVT_I64:
  case DVT_U32:
  case DVT_U64:
  case DVT_BOOL:
    return true;
  default:
    return false;
  }
}

bool isFloatType(dvt_type type) {
  return type == DVT_F32 || type == DVT_F64 || type == DVT_F16 || type == DVT_BF16;
}

std::optional<int64_t> integerAt(dvt_type type, const char *bytes, size_t index) {
  switch (type) {
  case DVT_U8:
    return load<uint8_t>(bytes, index);
  case DVT_BOOL:
    return load<uint8_t>(bytes, index) != 0;
  case DVT_I8:
    return load<int8_t>(bytes, index);
  case DVT_U16:
    return load<uint16_t>(bytes, index);
  case DVT_I16:
    return load<int16_t>(bytes, index);
  case DVT_I32:
    return load<int32_t>(bytes, index);
  case DVT_U32:
    return load<uint32_t>(bytes, index);
  case DVT_I64:
    return load<int64_t>(bytes, index);
  case DVT_U64: {
    uint64_t value = load<uint64_t>(bytes, index);
    if (value > uint64_t(INT64_MAX))
      return std::nullopt;
    return int64_t(value);
  }
  default:
    return std::nullopt;
  }
}

std::optional<double> numberAt(dvt_type type, const char *bytes, size_t index) {
  switch (type) {
  case DVT_F32:
    return load<float>(bytes, index);
  case DVT_F64:
    return load<double>(bytes, index);
  case DVT_F16:
    return halfToDouble(load<uint16_t>(bytes, index));
  case DVT_BF16:
    return bfloatToDouble(load<uint16_t>(bytes, index));
  default:
    if (std::optional<int64_t> value = integerAt(type, bytes, index))
      return double(*value);
    return std::nullopt;
  }
}

std::string shapeText(const Shape &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + shape[i].text();
  return text + "]";
}

InferContext::InferContext(const OpInfo &info, std::string node, const AttributeMap &attributes,
                           std::vector<ValueFacts> operands, size_t resultCount,
                           const SymbolRanges &ranges)
    : info(info), nodeName(std::move(node)), attributes(attributes), operands(std::move(operands)),
      results(resultCount), ranges(ranges) {}

std::string InferContext::title() const {
  std::string text(info.onnxName);
  return nodeName.empty() ? text : text + " '" + nodeName + "'";
}

std::optional<Elements> InferContext::elements(size_t i) const {
  if (!has(i))
    return std::nullopt;
  const ValueFacts &facts = operands[i];
  if (facts.elements || !facts.constant || !isIntegerType(facts.type))
    return facts.elements;
  std::optional<int64_t> count = elementCount(facts.shape).staticValue();
  if (!count || *count < 0 || size_t(*count) > kMostTrackedElements)
    return std::nullopt;
  Elements elements;
  for (int64_t e = 0; e < *count; ++e) {
    std::optional<int64_t> value = integerAt(facts.type, facts.bytes.data(), facts.uniform ? 0 : e);
    elements.push_back(value ? std::optional<Extent>(*value) : std::nullopt);
  }
  return elements;
}

std::optional<std::vector<int64_t>> InferContext::integers(size_t i) const {
  if (!has(i))
    return std::nullopt;
  const ValueFacts &facts = operands[i];
  std::vector<int64_t> values;
  if (facts.elements) {
    for (const std::optional<Extent> &element : *facts.elements) {
      if (!element || !element->isStatic())
        return std::nullopt;
      values.push_back(element->value());
    }
    return values;
  }
  std::optional<int64_t> count = elementCount(facts.shape).staticValue();
  if (!facts.constant || !count)
    return std::nullopt;
  for (int64_t e = 0; e < *count; ++e) {
    std::optional<int64_t> value = integerAt(facts.type, facts.bytes.data(), facts.uniform ? 0 : e);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<std::vector<double>> InferContext::numbers(size_t i) const {
  if (!has(i))
    return std::nullopt;
  const ValueFacts &facts = operands[i];
  std::vector<double> values;
  std::optional<int64_t> count = elementCount(facts.shape).staticValue();
  if (!facts.constant || !count)
    return std::nullopt;
  for (int64_t e = 0; e < *count; ++e) {
    std::optional<double> value = numberAt(facts.type, facts.bytes.data(), facts.uniform ? 0 : e);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

int64_t InferContext::integer(std::string_view name, int64_t fallback) const {
  auto found = attributes.find(name);
  const int64_t *value = found == attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : fallback;
}

dvt_type InferContext::elementType(std::string_view name, dvt_type fallback) const {
  int64_t number = integer(name, fallback);
  return number >= 0 && number <= DVT_I4 ? dvt_type(number) : DVT_UNDEFINED;
}

double InferContext::real(std::string_view name, double fallback) const {
  auto found = attributes.find(name);
  const double *value = found == attributes.end() ? nullptr : std::get_if<double>(&found->second);
  return value ? *value : fallback;
}

std::string InferContext::text(std::string_view name, std::string_view fallback) const {
  auto found = attributes.find(name);
  const std::string *value =
      found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value ? *value : std::string(fallback);
}

std::optional<std::vector<int64_t>> InferContext::list(std::string_view name) const {
  auto found = attributes.find(name);
  if (found == attributes.end())
    return std::nullopt;
  const auto *value = std::get_if<std::vector<int64_t>>(&found->second);
  return value ? std::optional(*value) : std::nullopt;
}

void InferContext::result(size_t i, dvt_type type, Shape shape) {
  if (i >= results.size())
    return;
  results[i].type = type;
  results[i].shape = std::move(shape);
}

void InferContext::resultElements(size_t i, Elements elements) {
  if (i < results.size() && elements.size() <= kMostTrackedElements)
    results[i].elements = std::move(elements);
}

Extent InferContext::fresh(size_t i, size_t dimension, int64_t least) {
  if (freshSymbol)
    return freshSymbol(i, dimension, least);
  return Extent::symbol(std::string(info.name) + "." + std::to_string(freshCount++));
}

bool InferContext::surelyAtMost(const Extent &a, const Extent &b) const {
  if (a == b)
    return true;
  std::optional<int64_t> x = a.staticValue(), y = b.staticValue();
  return x && y ? *x <= *y : range(b - a).min >= 0;
}

Extent InferContext::least(const Extent &a, const Extent &b) const {
  if (surelyAtMost(a, b))
    return a;
  return surelyAtMost(b, a) ? b : Extent::min(a, b);
}

Extent InferContext::most(const Extent &a, const Extent &b) const {
  if (surelyAtMost(a, b))
    return b;
  return surelyAtMost(b, a) ? a : Extent::max(a, b);
}

Expected<Extent> InferContext::broadcast(const Extent &a, const Extent &b) const {
  std::optional<int64_t> x = a.staticValue(), y = b.staticValue();
  if (a == b || y == 1)
    return a;
  if (x == 1)
    return b;
  if (x && y)
    return fail("extents {} and {} cannot be broadcast", *x, *y);
  requirements.push_back({Requirement::Relation::Broadcast, a, b, title()});
  // Valid operands are equal where neither is 1, so a number other than 1 decides.
  if (x)
    return a;
  if (y)
    return b;
  if (range(a).min >= 1 && range(b).min >= 1)
    return most(a, b);
  // Of an extent 0 and an extent 1 the result is 0.
  return most(a, b) * least(least(a, b), 1);
}

Expected<Shape> InferContext::broadcast(const Shape &a, const Shape &b) const {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Expected<Extent> extent = broadcast(longer[offset + i], shorter[i]);
    if (!extent)
      return fail("operands of extents {} and {} cannot be broadcast to one shape", shapeText(a),
                  shapeText(b));
    result[offset + i] = *extent;
  }
  return result;
}

Expected<int64_t> InferContext::axis(int64_t axis, size_t rank) const {
  int64_t signedRank = int64_t(rank);
  if (axis < -signedRank || axis >= signedRank)
    return fail("axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + signedRank : axis;
}

Expected<std::vector<int64_t>> InferContext::axes(const std::vector<int64_t> &axes,
                                                  size_t rank) const {
  std::vector<int64_t> result;
  std::vector<bool> seen(rank);
  for (int64_t given : axes) {
    Expected<int64_t> one = axis(given, rank);
    if (!one)
      return one.takeError();
    if (seen[*one])
      return fail("axis {} is named twice", given);
    seen[*one] = true;
    result.push_back(*one);
  }
  return result;
}

Status InferContext::needRank(size_t i, size_t rank) const {
  if (operands[i].shape.size() != rank)
    return fail("operand {} has extents {}, expected rank {}", i, shapeText(shape(i)), rank);
  return Status::success();
}

Status InferContext::needRankAtLeast(size_t i, size_t rank) const {
  if (operands[i].shape.size() < rank)
    return fail("operand {} has extents {}, expected rank {} or more", i, shapeText(shape(i)),
                rank);
  return Status::success();
}

Status InferContext::needEqual(const Extent &a, const Extent &b, std::string_view what) const {
  std::optional<int64_t> x = a.staticValue(), y = b.staticValue();
  if (x && y && *x != *y)
    return fail("{}: {} and {} differ", what, *x, *y);
  if (a != b)
    requirements.push_back(
        {Requirement::Relation::Equal, a, b, title() + ": " + std::string(what)});
  return Status::success();
}

Status InferContext::needAtLeast(const Extent &extent, const Extent &least,
                                 std::string_view what) const {
  if (surelyAtMost(least, extent))
    return Status::success();
  Requirement requirement{Requirement::Relation::AtLeast, extent, least,
                          title() + ": " + std::string(what)};
  if (extent.isStatic() && least.isStatic())
    return badInput("{}", violation(requirement, {}));
  requirements.push_back(std::move(requirement));
  return Status::success();
}

} // namespace dovetail::graph
