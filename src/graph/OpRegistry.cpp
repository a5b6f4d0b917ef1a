// SPDX-License-Identifier: Apache-2.0
//
// Reads the table Ops.inc once, on first use, into OpInfo values and two indices by name.
#include "graph/OpRegistry.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

namespace dovetail::graph {
namespace {

enum Flags { B = 1, D = 2, F = 4 };

struct Line {
  std::string_view name, onnxName;
  uint32_t version;
  OpKind kind;
  int flags;
  int leastInputs, mostInputs, leastOutputs, mostOutputs;
  uint32_t shapeOperands;
  std::string_view attributes;
};

constexpr Line lines[] = {
#define DVT_OP(NAME, ONNX, VERSION, KIND, FLAGS, IN0, IN1, OUT0, OUT1, SHAPE, ATTRIBUTES)          \
  {NAME, ONNX, VERSION, OpKind::KIND, FLAGS, IN0, IN1, OUT0, OUT1, SHAPE, ATTRIBUTES},
#include "graph/Ops.inc"
#undef DVT_OP
};

AttributeType typeOf(char letter) {
  constexpr std::string_view letters = "ifsIFSt";
  assert(letters.find(letter) != std::string_view::npos);
  return AttributeType(letters.find(letter));
}

std::vector<OpAttribute> readAttributes(std::string_view text) {
  std::vector<OpAttribute> attributes;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    size_t colon = word.find(':');
    OpAttribute attribute{word.substr(0, colon), typeOf(word[colon + 1]), false, false, {}};
    std::string_view rest = word.substr(colon + 2);
    attribute.required = rest == "!";
    if (rest.starts_with('=')) {
      attribute.hasDefault = true;
      attribute.defaultText = rest.substr(1);
    }
    attributes.push_back(attribute);
  }
  return attributes;
}

struct Table {
  std::vector<OpInfo> ops;
  std::unordered_map<std::string_view, const OpInfo *> byName, byOnnxName;

  Table() {
    for (const Line &line : lines)
      ops.push_back({line.name, line.onnxName, line.version, line.kind, (line.flags & B) != 0,
                     (line.flags & D) != 0, (line.flags & F) != 0, line.leastInputs,
                     line.mostInputs, line.leastOutputs, line.mostOutputs, line.shapeOperands,
                     readAttributes(line.attributes)});
    for (const OpInfo &op : ops) {
      byName[op.name] = &op;
      byOnnxName[op.onnxName] = &op;
    }
  }
};

const Table &table() {
  static const Table instance;
  return instance;
}

const OpInfo *lookUp(const std::unordered_map<std::string_view, const OpInfo *> &index,
                     std::string_view name) {
  auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

} // namespace

const OpAttribute *OpInfo::findAttribute(std::string_view attribute) const {
  for (const OpAttribute &candidate : attributes)
    if (candidate.name == attribute)
      return &candidate;
  return nullptr;
}

const OpInfo *findOp(std::string_view name) { return lookUp(table().byName, name); }
const OpInfo *findOnnxOp(std::string_view name) { return lookUp(table().byOnnxName, name); }
const std::vector<OpInfo> &allOps() { return table().ops; }

} // namespace dovetail::graph
