// SPDX-License-Identifier: Apache-2.0
//
// Ops that keep elements and their order, through the op-set versions: axes became operands in 13.
// Identity and dropout at inference do nothing and leave no op behind.
#include "import/NodeImport.h"

namespace dovetail::importer {
namespace {

Status axesToOperand(NodeImport &node) {
  if (node.version < 13)
    node.intsToOperand("axes", 1);
  return Status::success();
}

Status identity(NodeImport &node) {
  if (!node.operand(0))
    return node.fail("needs an operand");
  node.replacement = Values{node.operand(0)};
  return Status::success();
}

/// The mask of dropout that drops nothing: true, in the first versions a one of the data's type.
Expected<mlir::Value> fullMask(NodeImport &node) {
  Expected<mlir::Value> shape = node.emitter.emit("Shape", {node.operand(0)});
  if (!shape)
    return shape;
  dvt_type type = node.version < 10 ? node.emitter.type(node.operand(0)) : DVT_BOOL;
  return node.emitter.emit("Expand", {node.emitter.scalar(type, 1), *shape});
}

Status dropout(NodeImport &node) {
  if (!node.operand(0))
    return node.fail("needs an operand");
  if (node.operand(2)) {
    std::optional<std::vector<int64_t>> training = node.emitter.knownInts(node.operand(2));
    if (!training || training->size() != 1 || training->front() != 0)
      return node.fail(
          "is in training mode or may be when running; export the model for inference");
  }
  node.replacement = Values{node.operand(0)};
  if (node.wants(1)) {
    Expected<mlir::Value> mask = fullMask(node);
    if (!mask)
      return mask.takeError();
    node.replacement->push_back(*mask);
  }
  return Status::success();
}

} // namespace

std::vector<NamedRule> viewRules() {
  return {{"Squeeze", axesToOperand},
          {"Unsqueeze", axesToOperand},
          {"Identity", identity},
          {"Dropout", dropout}};
}

} // namespace dovetail::importer
