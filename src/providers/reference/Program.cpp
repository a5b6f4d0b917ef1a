// SPDX-License-Identifier: Apache-2.0
//
// Copies a problem and refuses what the reference does not know: ops, versions, element types,
// counts of operands. Indices and pointers are checked as well, since a plug-in cannot know who
// calls it.
#include "Program.h"

#include <cstring>
#include <set>

namespace dovetail::reference {

/// Element of an array of structs that state their own size; a newer host's are longer.
template <typename T> static const T &elementAt(const T *array, uint32_t index) {
  return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(array) +
                                      static_cast<size_t>(index) * array->struct_size);
}

template <typename... Parts> static Status unsupported(const Parts &...parts) {
  return {DVT_UNSUPPORTED, join("reference: ", parts...)};
}

bool acceptsType(const char *letters, dvt_type type) {
  if (!*letters)
    return isKnownType(type);
  char letter = isFourBit(type)                      ? 'q'
                : type == DVT_BOOL                   ? 'b'
                : kindOf(type) == NumberKind::Real   ? 'f'
                : kindOf(type) == NumberKind::Signed ? 'i'
                                                     : 'u';
  return isKnownType(type) && std::strchr(letters, letter);
}

static std::string allowedTypes(std::string_view letters) {
  std::string text;
  for (auto [letter, name] : {std::pair('f', "floats"),
                              {'i', "signed integers"},
                              {'u', "unsigned integers"},
                              {'b', "bool"},
                              {'q', "4-bit integers"}})
    if (letters.find(letter) != std::string_view::npos)
      text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

static Status copyValue(const dvt_value &from, Value &to) {
  to.type = from.type;
  if (!isKnownType(from.type))
    return unsupported("element type ", static_cast<int>(from.type), " (", nameOf(from.type),
                       ") is not one of f32, f64, f16, bf16, i4 to i64, u4 to u64, bool");
  for (uint32_t i = 0; i < from.rank; ++i) {
    const dvt_extent &extent = from.extents[i];
    bool symbolic = extent.value < 0;
    to.extents.push_back(symbolic ? -1 : extent.value);
    to.lowest.push_back(symbolic ? extent.min : extent.value);
    to.highest.push_back(symbolic ? extent.max : extent.value);
    to.divisor.push_back(symbolic && extent.divisor > 1 ? extent.divisor : 1);
  }
  to.uniform = from.flags & DVT_VALUE_UNIFORM;
  to.isLiteral = (from.flags & DVT_VALUE_LITERAL) || to.uniform;
  if (!to.isLiteral)
    return {};
  for (int64_t extent : to.extents)
    if (extent < 0)
      return unsupported("a literal with symbolic extents");
  std::optional<int64_t> count = to.uniform ? 1 : elementCount(to.extents);
  if (!count)
    return unsupported("a literal of extents ", textOf(to.extents));
  uint64_t bytes = isFourBit(to.type) ? static_cast<uint64_t>(*count + 1) / 2
                                      : static_cast<uint64_t>(*count) * elementBytes(to.type);
  if (from.literal_bytes < bytes || (bytes && !from.literal))
    return unsupported("a literal of ", from.literal_bytes, " bytes where ", bytes, " are needed");
  auto *data = static_cast<const uint8_t *>(from.literal);
  to.literal.assign(data, data + bytes);
  return {};
}

static Status copyAttributes(const dvt_op &from, Operation &to) {
  for (uint32_t i = 0; i < from.attribute_count; ++i) {
    const dvt_attribute &attribute = elementAt(from.attributes, i);
    Attribute value;
    switch (attribute.kind) {
    case DVT_ATTRIBUTE_INT:
      value = attribute.i;
      break;
    case DVT_ATTRIBUTE_FLOAT:
      value = attribute.f;
      break;
    case DVT_ATTRIBUTE_STRING:
      value = std::string(attribute.s ? attribute.s : "");
      break;
    case DVT_ATTRIBUTE_INTS:
      value = std::vector<int64_t>(attribute.ints, attribute.ints + attribute.count);
      break;
    case DVT_ATTRIBUTE_FLOATS:
      value = std::vector<double>(attribute.floats, attribute.floats + attribute.count);
      break;
    default:
      return unsupported(from.name, ": attribute ", attribute.name, " is of a kind not known here");
    }
    to.attributes.emplace(attribute.name, std::move(value));
  }
  return {};
}

static Status copyOperation(const dvt_op &from, const Program &program, std::set<uint32_t> &defined,
                            Operation &to) {
  to.entry = findOp(from.name ? from.name : "");
  if (!to.entry)
    return unsupported("op ", from.name, " is not known");
  to.version = from.version;
  const OpEntry &entry = *to.entry;
  if (from.version < entry.minVersion || from.version > entry.maxVersion)
    return unsupported(from.name, " of op set version ", from.version, "; versions ",
                       entry.minVersion, " to ", entry.maxVersion, " are known");
  if (from.input_count > entry.maxInputs || from.output_count > entry.maxOutputs ||
      !from.output_count)
    return unsupported(from.name, " with ", from.input_count, " operands and ", from.output_count,
                       " results; at most ", entry.maxInputs, " and ", entry.maxOutputs,
                       " are known");
  for (uint32_t i = 0; i < std::max(from.input_count, entry.minInputs); ++i) {
    uint32_t index = i < from.input_count ? from.inputs[i] : DVT_NO_VALUE;
    if (index == DVT_NO_VALUE && i < entry.minInputs)
      return unsupported(from.name, ": operand ", i, " is missing");
    if (index != DVT_NO_VALUE && !defined.count(index))
      return unsupported(from.name, ": operand ", i, " is not computed before it is used");
    to.inputs.push_back(index);
  }
  for (uint32_t i = 0; i < from.output_count; ++i) {
    uint32_t index = from.outputs[i];
    if (index != DVT_NO_VALUE && (index >= program.values.size() || !defined.insert(index).second))
      return unsupported(from.name, ": result ", i, " is out of range or computed twice");
    to.outputs.push_back(index);
  }
  if (!to.inputs.empty() && to.inputs[0] != DVT_NO_VALUE &&
      !acceptsType(entry.types, program.values[to.inputs[0]].type))
    return unsupported(from.name, " of ", nameOf(program.values[to.inputs[0]].type), "; it takes ",
                       allowedTypes(entry.types));
  return copyAttributes(from, to);
}

static std::string textAttribute(const Operation &op, std::string_view name) {
  auto found = op.attributes.find(name);
  const auto *text =
      found == op.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text ? *text : std::string();
}

Status makeProgram(const dvt_problem &problem, Program &program) {
  if (problem.struct_size < sizeof(dvt_problem) ||
      (problem.value_count && problem.values->struct_size < sizeof(dvt_value)) ||
      (problem.op_count && problem.ops->struct_size < sizeof(dvt_op)))
    return unsupported("a problem of an older host");
  program.values.resize(problem.value_count);
  std::set<uint32_t> defined;
  for (uint32_t i = 0; i < problem.value_count; ++i) {
    TRY(copyValue(elementAt(problem.values, i), program.values[i]));
    if (program.values[i].isLiteral)
      defined.insert(i);
  }
  for (uint32_t i = 0; i < problem.input_count; ++i) {
    if (problem.inputs[i] >= problem.value_count)
      return unsupported("input ", i, " is out of range");
    defined.insert(problem.inputs[i]);
    program.inputs.push_back(problem.inputs[i]);
  }
  for (uint32_t i = 0; i < problem.op_count; ++i) {
    Operation operation;
    TRY(copyOperation(elementAt(problem.ops, i), program, defined, operation));
    program.operations.push_back(std::move(operation));
  }
  for (uint32_t i = 0; i < problem.output_count; ++i) {
    if (!defined.count(problem.outputs[i]))
      return unsupported("output ", i, " is not computed");
    program.outputs.push_back(problem.outputs[i]);
  }
  for (const Operation &op : program.operations) {
    std::string_view name = op.entry->name;
    bool random = name.starts_with("random_") || name == "bernoulli" || name == "multinomial" ||
                  (name == "dropout" && op.inputs.size() > 2);
    if (random && !op.attributes.count("seed"))
      program.deterministic = false;
    if (name == "dvt_reorder") {
      if (program.operations.size() != 1 || program.inputs.size() != 1 ||
          program.outputs.size() != 1)
        return unsupported("dvt_reorder beside other ops");
      program.inputLayout = textAttribute(op, "src_layout");
      program.outputLayout = textAttribute(op, "dst_layout");
    }
  }
  return {};
}

} // namespace dovetail::reference
