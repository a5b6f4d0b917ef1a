// SPDX-License-Identifier: Apache-2.0
//
// Bounds of extents from bounds of their symbols, by interval arithmetic that saturates at the ends
// of 64 bits.
#include "support/Extent.h"

#include <algorithm>
#include <numeric>

#include "support/ExtentParser.h"

namespace dovetail {

namespace {

using Wide = __int128;

int64_t saturate(Wide value) { return int64_t(std::clamp<Wide>(value, INT64_MIN, INT64_MAX)); }

SymbolRange exactly(int64_t value) {
  return {value, value, value == INT64_MIN ? 1 : std::abs(value)};
}

SymbolRange times(const SymbolRange &a, const SymbolRange &b) {
  Wide corners[] = {Wide(a.min) * b.min, Wide(a.min) * b.max, Wide(a.max) * b.min,
                    Wide(a.max) * b.max};
  auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  Wide divisor = Wide(a.divisor) * b.divisor;
  return {saturate(*low), saturate(*high), divisor > INT64_MAX ? 1 : int64_t(divisor)};
}

SymbolRange plus(const SymbolRange &a, const SymbolRange &b) {
  return {saturate(Wide(a.min) + b.min), saturate(Wide(a.max) + b.max),
          std::gcd(a.divisor, b.divisor)};
}

// Any quotient lies between the corner quotients rounded outwards; a divisor that may be zero or
// negative tells nothing.
SymbolRange quotient(const SymbolRange &a, const SymbolRange &b) {
  if (b.min <= 0)
    return {INT64_MIN, INT64_MAX, 1};
  Wide corners[] = {Wide(a.min) / b.min, Wide(a.min) / b.max, Wide(a.max) / b.min,
                    Wide(a.max) / b.max};
  auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return {saturate(*low - (a.min < 0)), saturate(*high), 1};
}

SymbolRange call(const ExtentParser::Call &call, const SymbolRanges &ranges) {
  SymbolRange a = call.first.range(ranges), b = call.second.range(ranges);
  int64_t common = std::max<int64_t>(std::gcd(a.divisor, b.divisor), 1);
  if (call.name == "min")
    return {std::min(a.min, b.min), std::min(a.max, b.max), common};
  if (call.name == "max")
    return {std::max(a.min, b.min), std::max(a.max, b.max), common};
  if (call.name == "mod")
    return b.min > 0 ? SymbolRange{0, b.max - 1, common} : SymbolRange{INT64_MIN, INT64_MAX, 1};
  SymbolRange result = quotient(a, b);
  if (call.name == "ceildiv" && result.max < INT64_MAX)
    ++result.max;
  return result;
}

} // namespace

SymbolRange Extent::range(const SymbolRanges &ranges) const {
  if (isOverflow())
    return {INT64_MIN, INT64_MAX, 1};
  SymbolRange sum{0, 0, 0};
  for (const auto &[monomial, coefficient] : terms) {
    SymbolRange product = exactly(coefficient);
    for (const std::string &factor : monomial) {
      SymbolRange known;
      if (auto parts = ExtentParser::splitCall(factor))
        known = call(*parts, ranges);
      else if (auto found = ranges.find(factor); found != ranges.end())
        known = found->second;
      product = times(product, known);
    }
    sum = plus(sum, product);
  }
  sum.divisor = std::max<int64_t>(sum.divisor, 1);
  return sum;
}

} // namespace dovetail
