// SPDX-License-Identifier: Apache-2.0
//
// Prints a problem as its one line of text. ProblemParser reads exactly this form.
#include <fmt/format.h>

#include "support/Literal.h"
#include "support/Problem.h"

namespace dovetail {

namespace {

void printString(std::string &out, std::string_view text) {
  out += '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += char(c);
    else if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else
      out += char(c);
  }
  out += '"';
}

void printAttribute(std::string &out, const AttributeValue &value) {
  if (const auto *i = std::get_if<int64_t>(&value)) {
    out += std::to_string(*i);
  } else if (const auto *f = std::get_if<double>(&value)) {
    out += floatText(*f);
  } else if (const auto *s = std::get_if<std::string>(&value)) {
    printString(out, *s);
  } else if (const auto *ints = std::get_if<std::vector<int64_t>>(&value)) {
    out += '[';
    for (size_t k = 0; k < ints->size(); ++k)
      out += (k ? "," : "") + std::to_string((*ints)[k]);
    out += ']';
  } else {
    const auto &floats = std::get<std::vector<double>>(value);
    out += '[';
    for (size_t k = 0; k < floats.size(); ++k)
      out += (k ? "," : "") + floatText(floats[k]);
    out += floats.empty() ? "]f" : "]";
  }
}

void printType(std::string &out, const ProblemValue &value, bool isInput) {
  if (isInput && value.constant)
    out += "const ";
  const char *name = typeName(value.type);
  out += name ? name : "?";
  out += '[';
  for (size_t d = 0; d < value.extents.size(); ++d)
    out += (d ? "," : "") + value.extents[d].text();
  out += ']';
  if (!value.strides.empty()) {
    out += " strides[";
    for (size_t d = 0; d < value.strides.size(); ++d)
      out += (d ? "," : "") + std::to_string(value.strides[d]);
    out += ']';
  }
  if (value.mayAlias >= 0)
    out += fmt::format(" alias({})", value.mayAlias);
  if (value.uniform) {
    out += " {" + elementText(value.type, value.literal, 0) + "..}";
  } else if (value.isLiteral) {
    int64_t count = 1;
    for (const Extent &extent : value.extents)
      count *= extent.staticValue().value_or(0);
    out += " {";
    for (int64_t i = 0; i < count; ++i)
      out += (i ? "," : "") + elementText(value.type, value.literal, i);
    out += '}';
  }
}

void printOp(std::string &out, const Problem &problem, const ProblemOp &op) {
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    out += i ? ", " : "";
    if (op.outputs[i] == kNoValue) {
      out += '_';
      continue;
    }
    out += fmt::format("%{}: ", op.outputs[i]);
    printType(out, problem.values[op.outputs[i]], false);
  }
  out += fmt::format(" = {}@{}(", op.name, op.version);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    out += i ? ", " : "";
    out += op.inputs[i] == kNoValue ? "_" : fmt::format("%{}", op.inputs[i]);
  }
  out += ')';
  if (op.attributes.empty())
    return;
  out += " {";
  bool first = true;
  for (const auto &[name, value] : op.attributes) {
    out += (first ? "" : ", ") + name + "=";
    printAttribute(out, value);
    first = false;
  }
  out += '}';
}

} // namespace

std::string Problem::text() const {
  std::string out = "problem(";
  bool first = true;
  auto declare = [&](uint32_t index, bool isInput) {
    out += fmt::format("{}%{}: ", first ? "" : ", ", index);
    printType(out, values[index], isInput);
    first = false;
  };
  for (uint32_t input : inputs)
    declare(input, true);
  for (uint32_t i = 0; i < values.size(); ++i)
    if (values[i].isLiteral)
      declare(i, false);
  out += ')';
  for (size_t i = 0; i < ops.size(); ++i) {
    out += i ? "; " : " ";
    printOp(out, *this, ops[i]);
  }
  out += " return(";
  for (size_t i = 0; i < outputs.size(); ++i)
    out += fmt::format("{}%{}", i ? ", " : "", outputs[i]);
  out += ')';
  first = true;
  for (const auto &[name, range] : ranges) {
    out += fmt::format("{}{} in {}..{}", first ? " where " : ", ", name, range.min, range.max);
    if (range.divisor != 1)
      out += fmt::format("/{}", range.divisor);
    first = false;
  }
  return out;
}

} // namespace dovetail
