// SPDX-License-Identifier: Apache-2.0
//
// Reads the text form of problems. Text may come from outside: sizes are bounded by the text
// itself, nothing recurses but extents, and every failure says where it stopped.
#include <charconv>

#include "support/Literal.h"
#include "support/Problem.h"

namespace dovetail {

namespace {

constexpr size_t kLongestText = size_t(1) << 26;

class ProblemParser {
public:
  explicit ProblemParser(std::string_view text) : text(text) {}
  Expected<Problem> parse();

private:
  bool take(std::string_view token) {
    if (text.substr(position, token.size()) != token)
      return false;
    position += token.size();
    return true;
  }
  /// For tokens that must be there: remembers what was wanted.
  bool want(std::string_view token) { return take(token) || fail("'" + std::string(token) + "'"); }
  bool fail(std::string what) {
    if (wanted.empty())
      wanted = std::move(what);
    return false;
  }
  std::string_view name() { return span("_."); }
  std::string_view span(std::string_view extra);
  template <typename T> bool number(T &value);
  bool reference(uint32_t &index, bool mayBeAbsent);
  bool declaration(uint32_t &index, bool isInput);
  bool type(ProblemValue &value, bool isInput);
  bool extents(std::vector<Extent> &out);
  bool literal(ProblemValue &value);
  bool op();
  bool attributes(AttributeMap &out);
  bool attribute(AttributeValue &out);
  bool list(AttributeValue &out);
  bool scalar(AttributeValue &out);
  bool string(std::string &out);
  bool range();
  bool all();

  std::string_view text;
  size_t position = 0;
  std::string wanted;
  Problem problem;
  std::map<uint32_t, uint32_t> indexOf; ///< number in the text -> value
};

std::string_view ProblemParser::span(std::string_view extra) {
  size_t start = position;
  while (position < text.size()) {
    char c = text[position];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && extra.find(c) == std::string_view::npos)
      break;
    if (c == '.' && text.substr(position, 2) == "..")
      break;
    ++position;
  }
  return text.substr(start, position - start);
}

template <typename T> bool ProblemParser::number(T &value) {
  auto [end, error] = std::from_chars(text.data() + position, text.data() + text.size(), value);
  if (error != std::errc())
    return fail("a number");
  position = end - text.data();
  return true;
}

bool ProblemParser::reference(uint32_t &index, bool mayBeAbsent) {
  index = kNoValue;
  if (mayBeAbsent && take("_"))
    return true;
  uint32_t written = 0;
  if (!want("%") || !number(written))
    return false;
  auto found = indexOf.find(written);
  if (found == indexOf.end())
    return fail("a value that is defined before, not %" + std::to_string(written));
  index = found->second;
  return true;
}

bool ProblemParser::declaration(uint32_t &index, bool isInput) {
  uint32_t written = 0;
  if (!want("%") || !number(written) || !want(": "))
    return false;
  index = problem.values.size();
  if (!indexOf.emplace(written, index).second)
    return fail("a value that is not defined yet, not %" + std::to_string(written));
  ProblemValue value;
  if (!type(value, isInput))
    return false;
  problem.values.push_back(std::move(value));
  return true;
}

bool ProblemParser::extents(std::vector<Extent> &out) {
  if (take("]"))
    return true;
  for (;;) {
    size_t start = position, depth = 0;
    for (; position < text.size(); ++position) {
      char c = text[position];
      if (depth == 0 && (c == ',' || c == ']'))
        break;
      depth += c == '(';
      if (c == ')' && depth-- == 0)
        return fail("an extent");
    }
    auto extent = Extent::parse(text.substr(start, position - start));
    if (!extent) {
      position = start;
      return fail("an extent");
    }
    out.push_back(std::move(*extent));
    if (take("]"))
      return true;
    if (!want(","))
      return false;
  }
}

bool ProblemParser::literal(ProblemValue &value) {
  value.constant = true;
  value.isLiteral = true;
  if (take("}"))
    return true;
  for (int64_t count = 0;; ++count) {
    if (!appendElement(value.type, span("+-.:"), count, value.literal))
      return fail(std::string("an element of type ") + typeName(value.type));
    if (count == 0 && take("..}"))
      return value.uniform = true;
    if (take("}"))
      return true;
    if (!want(","))
      return false;
  }
}

bool ProblemParser::type(ProblemValue &value, bool isInput) {
  bool constant = isInput && take("const ");
  value.constant = constant;
  value.type = parseTypeName(span(""));
  if (value.type == DVT_UNDEFINED)
    return fail("an element type");
  if (!want("[") || !extents(value.extents))
    return false;
  if (take(" strides[")) {
    do {
      if (!number(value.strides.emplace_back()))
        return false;
    } while (take(","));
    if (!want("]"))
      return false;
  }
  if (take(" alias(") && (!number(value.mayAlias) || !want(")")))
    return false;
  if (isInput && take(" {")) {
    if (!literal(value))
      return false;
    // A constant that is handed over when the kernel is prepared may still be known to be uniform.
    // With all its elements in the text there is nothing to hand over: a literal.
    if (constant && value.uniform)
      value.isLiteral = false;
  }
  return true;
}

bool ProblemParser::string(std::string &out) {
  while (position < text.size() && text[position] != '"') {
    char c = text[position++];
    if (c != '\\') {
      out += c;
      continue;
    }
    if (take("x")) {
      unsigned code = 0;
      const char *start = text.data() + position;
      if (text.size() - position < 2)
        return fail("two hexadecimal digits");
      auto [end, error] = std::from_chars(start, start + 2, code, 16);
      if (error != std::errc() || end != start + 2)
        return fail("two hexadecimal digits");
      out += char(code);
      position += 2;
    } else if (position < text.size() && (text[position] == '"' || text[position] == '\\')) {
      out += text[position++];
    } else {
      return fail("an escaped character");
    }
  }
  return want("\"");
}

bool ProblemParser::scalar(AttributeValue &out) {
  size_t start = position;
  std::string_view token = span("+-.:");
  int64_t integer = 0;
  auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), integer);
  if (error == std::errc() && end == token.data() + token.size()) {
    out = integer;
    return true;
  }
  if (auto real = parseFloatText(token)) {
    out = *real;
    return true;
  }
  position = start;
  return fail("a number");
}

bool ProblemParser::list(AttributeValue &out) {
  if (take("]f")) {
    out = std::vector<double>();
    return true;
  }
  std::vector<int64_t> ints;
  std::vector<double> reals;
  bool allInts = true;
  if (!take("]")) {
    do {
      AttributeValue element;
      if (!scalar(element))
        return false;
      if (const auto *integer = std::get_if<int64_t>(&element)) {
        ints.push_back(*integer);
        reals.push_back(double(*integer));
      } else {
        allInts = false;
        reals.push_back(std::get<double>(element));
      }
    } while (take(","));
    if (!want("]"))
      return false;
  }
  if (allInts)
    out = std::move(ints);
  else
    out = std::move(reals);
  return true;
}

bool ProblemParser::attribute(AttributeValue &out) {
  if (take("\"")) {
    std::string value;
    if (!string(value))
      return false;
    out = std::move(value);
    return true;
  }
  return take("[") ? list(out) : scalar(out);
}

bool ProblemParser::attributes(AttributeMap &out) {
  do {
    std::string key(name());
    AttributeValue value;
    if (key.empty())
      return fail("the name of an attribute");
    if (!want("=") || !attribute(value))
      return false;
    if (!out.emplace(key, std::move(value)).second)
      return fail("attribute " + key + " once");
  } while (take(", "));
  return want("}");
}

bool ProblemParser::op() {
  ProblemOp op;
  do {
    uint32_t result = kNoValue;
    if (!take("_") && !declaration(result, false))
      return false;
    op.outputs.push_back(result);
  } while (take(", "));
  if (!want(" = "))
    return false;
  op.name = name();
  if (op.name.empty())
    return fail("the name of an op");
  if (!want("@") || !number(op.version) || !want("("))
    return false;
  if (!take(")")) {
    do {
      if (!reference(op.inputs.emplace_back(), true))
        return false;
    } while (take(", "));
    if (!want(")"))
      return false;
  }
  if (take(" {") && !attributes(op.attributes))
    return false;
  problem.ops.push_back(std::move(op));
  return true;
}

bool ProblemParser::range() {
  std::string key(name());
  SymbolRange value;
  if (key.empty())
    return fail("the name of a symbol");
  if (!want(" in ") || !number(value.min) || !want("..") || !number(value.max) ||
      (take("/") && !number(value.divisor)))
    return false;
  return problem.ranges.emplace(std::move(key), value).second || fail("each symbol once");
}

bool ProblemParser::all() {
  if (!want("problem("))
    return false;
  if (!take(")")) {
    do {
      uint32_t index = kNoValue;
      if (!declaration(index, true))
        return false;
      if (!problem.values[index].isLiteral)
        problem.inputs.push_back(index);
    } while (take(", "));
    if (!want(")"))
      return false;
  }
  if (text.substr(position, 8) != " return(") {
    if (!want(" "))
      return false;
    do {
      if (!op())
        return false;
    } while (take("; "));
  }
  if (!want(" return("))
    return false;
  if (!take(")")) {
    do {
      if (!reference(problem.outputs.emplace_back(), false))
        return false;
    } while (take(", "));
    if (!want(")"))
      return false;
  }
  if (take(" where ")) {
    do {
      if (!range())
        return false;
    } while (take(", "));
  }
  return position == text.size() || fail("the end");
}

Expected<Problem> ProblemParser::parse() {
  if (text.size() > kLongestText)
    return badInput("problem text of {} bytes: at most {} are supported", text.size(),
                    kLongestText);
  if (!all())
    return badInput("problem text, character {}: expected {}, found '{}'", position, wanted,
                    text.substr(std::min(position, text.size()), 20));
  if (Status status = problem.verify(); !status)
    return status.takeError();
  problem.canonicalize();
  return std::move(problem);
}

} // namespace

Expected<Problem> Problem::parse(std::string_view text) { return ProblemParser(text).parse(); }

} // namespace dovetail
