// SPDX-License-Identifier: Apache-2.0
//
// Reads the text form of extents, whole ones and the function calls that are atoms inside them.
// Nesting is bounded, so that text from outside cannot exhaust the stack.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/Extent.h"

namespace dovetail {

constexpr bool isSymbolCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.';
}

class ExtentParser {
public:
  struct Call {
    std::string_view name; ///< points into the text that was split
    Extent first, second;
  };
  static Expected<Extent> parse(std::string_view text);
  /// Parts of a function atom, such as "floordiv(W+1,2)"; nothing where it is none.
  static std::optional<Call> splitCall(std::string_view atom);
  /// x and y of "floordiv(x,y)" where y is a positive number; nothing otherwise.
  static std::optional<std::pair<Extent, int64_t>> splitStaticDivision(std::string_view atom);
  /// The function of that name; nothing where there is none.
  static std::optional<Extent> apply(std::string_view name, const Extent &a, const Extent &b);

private:
  explicit ExtentParser(std::string_view text) : text(text) {}
  std::optional<Extent> sum(unsigned depth);
  std::optional<Extent> product(unsigned depth);
  std::optional<Extent> factor(unsigned depth);
  std::optional<Call> arguments(std::string_view name, unsigned depth);
  bool take(char c);
  std::string_view takeName();

  std::string_view text;
  size_t position = 0;
};

} // namespace dovetail
