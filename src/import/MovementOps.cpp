// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements, and selections, through the op-set versions: what was a list of integers
// in an attribute (starts, pads, split, k) became an operand.
#include <algorithm>

#include "import/Chain.h"
#include "import/NodeImport.h"

namespace dovetail::importer {
namespace {

Status slice(NodeImport &node) {
  if (node.version < 10) {
    node.intsToOperand("starts", 1);
    node.intsToOperand("ends", 2);
    node.intsToOperand("axes", 3);
  }
  return Status::success();
}

/// Without sizes the axis is cut into as many equal parts as there are outputs; 18 wants that
/// number stated.
Status split(NodeImport &node) {
  if (node.version < 13 && node.has("split"))
    node.intsToOperand("split", 1);
  if (!node.operand(1) && !node.has("num_outputs"))
    node.set("num_outputs", int64_t(node.wanted.size()));
  if (int64_t stated = node.integer("num_outputs", int64_t(node.wanted.size()));
      stated != int64_t(node.wanted.size()))
    return node.fail("has num_outputs {} but {} outputs", stated, node.wanted.size());
  return Status::success();
}

Status pad(NodeImport &node) {
  if (node.version >= 11)
    return Status::success();
  if (!node.operand(0))
    return node.fail("needs an operand");
  node.intsToOperand("pads", 1);
  node.setOperand(2,
                  node.emitter.scalar(node.emitter.type(node.operand(0)), node.real("value", 0)));
  node.erase("value");
  return Status::success();
}

Status transpose(NodeImport &node) {
  if (!node.operand(0) || node.has("perm"))
    return Status::success();
  std::vector<int64_t> reversed;
  for (int64_t i = int64_t(node.emitter.rank(node.operand(0))) - 1; i >= 0; --i)
    reversed.push_back(i);
  node.set("perm", reversed);
  return Status::success();
}

Status topK(NodeImport &node) {
  if (node.version < 10) {
    node.setOperand(1, node.emitter.ints({node.integer("k", 0)}));
    node.erase("k");
  }
  return Status::success();
}

Status scatter(NodeImport &node) {
  node.op = "ScatterElements";
  return Status::success();
}

Status gridSample(NodeImport &node) {
  if (node.version < 20) {
    std::string mode = node.text("mode", "bilinear");
    node.set("mode", mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
  }
  return Status::success();
}

/// Version 17 has the axis as an attribute, by default 1; since 20 it is an operand, by default the
/// last but one.
Status dft(NodeImport &node) {
  if (node.version < 20) {
    node.setOperand(2, node.emitter.intScalar(node.integer("axis", 1)));
    node.erase("axis");
  }
  return Status::success();
}

/// Known extents of the data other than 1 decide those of the result, so that no kernel looks at
/// what the shape has there. Where only the run tells, what it has is held against them.
Status expand(NodeImport &node) {
  OpEmitter &emitter = node.emitter;
  mlir::Value data = node.operand(0), wanted = node.operand(1);
  if (!data || !wanted || emitter.rank(wanted) != 1 || emitter.type(wanted) != DVT_I64 ||
      emitter.knownInts(wanted))
    return Status::success();
  const graph::Shape shape = emitter.shape(data);
  std::optional<int64_t> length = emitter.shape(wanted)[0].staticValue();
  if (!length)
    return Status::success(); // the shape rule has a message for it
  const std::optional<graph::Elements> elements = emitter.facts(wanted).elements;
  int64_t rank = int64_t(shape.size()), common = std::min(rank, *length);
  std::vector<int64_t> known; // extents of the last dimensions; 1 where nothing is to be checked
  for (int64_t i = 0; i < common; ++i) {
    const Extent &extent = shape[size_t(rank - common + i)];
    bool isOpen = !elements || !(*elements)[size_t(*length - common + i)];
    known.push_back(isOpen ? extent.staticValue().value_or(1) : 1);
  }
  if (std::all_of(known.begin(), known.end(), [](int64_t extent) { return extent == 1; }))
    return Status::success();
  Chain chain(emitter);
  mlir::Value last = common == *length
                         ? wanted
                         : chain("Slice", {wanted, emitter.ints({*length - common}),
                                           emitter.ints({*length}), emitter.ints({0})});
  mlir::Value extents = emitter.ints(known), one = emitter.ints({1});
  mlir::Value same = chain("Equal", {last, extents}), isOne = chain("Equal", {last, one});
  mlir::Value fits = chain("Or", {same, isOne});
  mlir::Value any = chain("Or", {fits, chain("Equal", {extents, one})});
  mlir::Value all = chain("ReduceMin", {chain("Cast", {any}, {{"to", int64_t(DVT_I64)}})},
                          {{"keepdims", int64_t(0)}});
  mlir::Value holds = chain("Cast", {all}, {{"to", int64_t(DVT_BOOL)}});
  if (chain.error)
    return *chain.error;
  node.setOperand(0, guarded(emitter, data, holds,
                             node.fail("the extents that the run gives do not broadcast with {}",
                                       graph::shapeText(shape))
                                 .message));
  return Status::success();
}

} // namespace

std::vector<NamedRule> movementRules() {
  return {{"Slice", slice},           {"Split", split},   {"Pad", pad},
          {"Transpose", transpose},   {"TopK", topK},     {"Scatter", scatter},
          {"GridSample", gridSample}, {"Expand", expand}, {"DFT", dft}};
}

} // namespace dovetail::importer
