// SPDX-License-Identifier: Apache-2.0
//
// Recursive descent over sums of products of integers, symbols and two-argument functions.
#include "support/ExtentParser.h"

#include <charconv>

namespace dovetail {

namespace {
// Merging nested divisions reads their text again, so the work grows faster than the depth.
constexpr unsigned kMaxDepth = 48;
} // namespace

bool ExtentParser::take(char c) {
  if (position >= text.size() || text[position] != c)
    return false;
  ++position;
  return true;
}

std::string_view ExtentParser::takeName() {
  size_t start = position;
  while (position < text.size() && isSymbolCharacter(text[position]))
    ++position;
  return text.substr(start, position - start);
}

std::optional<Extent> ExtentParser::apply(std::string_view name, const Extent &a, const Extent &b) {
  if (name == "floordiv")
    return Extent::floorDiv(a, b);
  if (name == "ceildiv")
    return Extent::ceilDiv(a, b);
  if (name == "mod")
    return Extent::mod(a, b);
  if (name == "min")
    return Extent::min(a, b);
  if (name == "max")
    return Extent::max(a, b);
  return std::nullopt;
}

std::optional<ExtentParser::Call> ExtentParser::arguments(std::string_view name, unsigned depth) {
  auto a = sum(depth + 1);
  if (!a || !take(','))
    return std::nullopt;
  auto b = sum(depth + 1);
  if (!b || !take(')'))
    return std::nullopt;
  return Call{name, std::move(*a), std::move(*b)};
}

std::optional<Extent> ExtentParser::factor(unsigned depth) {
  std::string_view name = takeName();
  if (name.empty())
    return std::nullopt;
  if (name[0] >= '0' && name[0] <= '9') {
    int64_t number = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size())
      return std::nullopt;
    return Extent(number);
  }
  if (!take('('))
    return Extent::symbol(name);
  auto call = arguments(name, depth);
  return call ? apply(call->name, call->first, call->second) : std::nullopt;
}

std::optional<Extent> ExtentParser::product(unsigned depth) {
  auto result = factor(depth);
  while (result && take('*')) {
    auto next = factor(depth);
    if (!next)
      return std::nullopt;
    result = *result * *next;
  }
  return result;
}

std::optional<Extent> ExtentParser::sum(unsigned depth) {
  if (depth > kMaxDepth)
    return std::nullopt;
  bool negative = take('-');
  // The smallest integer has no positive counterpart to negate.
  constexpr std::string_view smallest = "9223372036854775808";
  std::optional<Extent> result;
  if (negative && text.substr(position, smallest.size()) == smallest) {
    position += smallest.size();
    result = Extent(INT64_MIN);
    negative = false;
    if (take('*')) {
      auto next = product(depth);
      result = next ? std::optional(*result * *next) : std::nullopt;
    }
  } else {
    result = product(depth);
  }
  if (!result)
    return std::nullopt;
  if (negative)
    result = Extent() - *result;
  for (;;) {
    bool minus = false;
    if (take('-'))
      minus = true;
    else if (!take('+'))
      return result;
    auto next = product(depth);
    if (!next)
      return std::nullopt;
    result = minus ? *result - *next : *result + *next;
  }
}

std::optional<ExtentParser::Call> ExtentParser::splitCall(std::string_view atom) {
  ExtentParser parser(atom);
  std::string_view name = parser.takeName();
  if (name.empty() || !parser.take('('))
    return std::nullopt;
  auto call = parser.arguments(name, 0);
  return parser.position == atom.size() ? std::move(call) : std::nullopt;
}

std::optional<std::pair<Extent, int64_t>> ExtentParser::splitStaticDivision(std::string_view atom) {
  constexpr std::string_view prefix = "floordiv(";
  size_t comma = atom.rfind(',');
  if (!atom.starts_with(prefix) || comma == std::string_view::npos)
    return std::nullopt;
  int64_t divisor = 0;
  const char *end = atom.data() + atom.size() - 1;
  auto [next, error] = std::from_chars(atom.data() + comma + 1, end, divisor);
  if (error != std::errc() || next != end || divisor <= 0)
    return std::nullopt;
  ExtentParser parser(atom.substr(prefix.size(), comma - prefix.size()));
  auto first = parser.sum(0);
  if (!first || parser.position != parser.text.size())
    return std::nullopt;
  return std::pair(std::move(*first), divisor);
}

Expected<Extent> ExtentParser::parse(std::string_view text) {
  constexpr size_t longest = 1 << 16;
  if (text.size() > longest)
    return badInput("extent of {} characters: at most {} are supported", text.size(), longest);
  ExtentParser parser(text);
  auto result = parser.sum(0);
  if (!result || parser.position != text.size())
    return badInput("'{}' is not an extent: expected a sum such as 2*H+floordiv(W+1,2), stopped at "
                    "character {}",
                    text, parser.position);
  return std::move(*result);
}

Expected<Extent> Extent::parse(std::string_view text) { return ExtentParser::parse(text); }

} // namespace dovetail
