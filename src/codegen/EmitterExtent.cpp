// SPDX-License-Identifier: Apache-2.0
//
// Turns the text of symbolic extents into index arithmetic.
#include "codegen/Emitter.h"

#include <charconv>

#include "support/ExtentParser.h"

namespace dovetail::codegen {
namespace {

class ExtentEmission {
public:
  ExtentEmission(Emitter &emitter, std::string_view text) : e(emitter), text(text) {}

  Value sum() {
    bool negative = take('-');
    Value total = product();
    if (negative)
      total = e.sub(e.index(0), total);
    while (position < text.size() && (text[position] == '+' || text[position] == '-')) {
      bool minus = text[position++] == '-';
      Value next = product();
      total = minus ? e.sub(total, next) : e.add(total, next);
    }
    return total;
  }

private:
  bool take(char c) {
    if (position >= text.size() || text[position] != c)
      return false;
    ++position;
    return true;
  }

  Value product() {
    Value result = factor();
    while (take('*'))
      result = e.mul(result, factor());
    return result;
  }

  Value factor() {
    size_t start = position;
    take('-');
    while (position < text.size() && isSymbolCharacter(text[position]))
      ++position;
    std::string_view word = text.substr(start, position - start);
    int64_t number;
    if (std::from_chars(word.data(), word.data() + word.size(), number).ptr ==
            word.data() + word.size() &&
        !word.empty())
      return e.index(number);
    if (take('(')) {
      Value a = sum();
      take(',');
      Value b = sum();
      take(')');
      return call(word, a, b);
    }
    std::string symbol(word);
    return e.extentOf(dvt_extent{-1, symbol.c_str(), 0, 0, 1});
  }

  /// Extents are not negative, nor is what they are divided by.
  Value call(std::string_view name, Value a, Value b) {
    if (name == "floordiv")
      return e.div(a, b);
    if (name == "ceildiv")
      return e.ceilDiv(a, b);
    if (name == "mod")
      return e.rem(a, b);
    if (name == "min")
      return e.minimum(a, b);
    if (name == "max")
      return e.maximum(a, b);
    e.fail("extent function " + std::string(name));
    return a;
  }

  Emitter &e;
  std::string_view text;
  size_t position = 0;
};

} // namespace

Value Emitter::extentOf(const Extent &extent) {
  if (auto known = extent.staticValue())
    return index(*known);
  std::string text = extent.text();
  dvt_extent whole{-1, text.c_str(), 0, 0, 1};
  if (problem.placeOf(whole))
    return extentOf(whole);
  return ExtentEmission(*this, text).sum();
}

} // namespace dovetail::codegen
