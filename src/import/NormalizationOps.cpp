// SPDX-License-Identifier: Apache-2.0
//
// Softmax and the normalisations through the op-set versions. Before 13 softmax, log-softmax and
// hardmax took the tensor as a matrix, all dimensions from `axis` on being its columns. Group
// normalisation before 21 scaled groups, since then channels. Batch normalisation told training
// from inference by its outputs before 14.
#include "import/NodeImport.h"

namespace dovetail::importer {
namespace {

Status softmax(NodeImport &node) {
  if (node.version >= 13)
    return Status::success();
  mlir::Value data = node.operand(0);
  if (!data)
    return node.fail("needs an operand");
  int64_t rank = int64_t(node.emitter.rank(data)), axis = node.integer("axis", 1);
  if (axis < 0)
    axis += rank;
  if (axis < 0 || axis > rank)
    return node.fail("has axis {} for a tensor of {} dimensions", node.integer("axis", 1), rank);
  if (axis == rank - 1) {
    node.set("axis", int64_t(-1));
    return Status::success();
  }
  Expected<mlir::Value> matrix = node.emitter.emit("Flatten", {data}, {{"axis", axis}});
  if (!matrix)
    return matrix.takeError();
  Expected<mlir::Value> result = node.emitter.emit(node.op, {*matrix}, {{"axis", int64_t(-1)}});
  if (!result)
    return result.takeError();
  Expected<mlir::Value> shape = node.emitter.emit("Shape", {data});
  if (!shape)
    return shape.takeError();
  Expected<mlir::Value> restored =
      node.emitter.emit("Reshape", {*result, *shape}, {{"allowzero", int64_t(1)}});
  if (!restored)
    return restored.takeError();
  node.replacement = Values{*restored};
  return Status::success();
}

Status batchNormalization(NodeImport &node) {
  if (node.version < 14) {
    if (node.version < 9 && node.integer("spatial", 1) != 1)
      return node.fail("has spatial=0, statistics for each element, which is not supported");
    bool training = false;
    for (size_t i = 1; i < node.wanted.size(); ++i)
      training |= node.wanted[i];
    if (training)
      return node.fail(
          "is in training form (it has more than one output); export the model for inference");
    node.wanted.resize(1);
    node.erase("spatial");
    node.set("training_mode", int64_t(0));
  }
  return Status::success();
}

/// [groups] -> [channels], each element repeated for the channels of its group.
Expected<mlir::Value> perChannel(NodeImport &node, mlir::Value perGroup, mlir::Value repeats) {
  Expected<mlir::Value> column = node.emitter.emit("Unsqueeze", {perGroup, node.emitter.ints({1})});
  if (!column)
    return column;
  Expected<mlir::Value> wide = node.emitter.emit("Expand", {*column, repeats});
  if (!wide)
    return wide;
  return node.emitter.emit("Reshape", {*wide, node.emitter.ints({-1})});
}

Status groupNormalization(NodeImport &node) {
  if (node.version >= 21)
    return Status::success();
  mlir::Value data = node.operand(0);
  int64_t groups = node.integer("num_groups", 0);
  if (!data || !node.operand(1) || !node.operand(2) || node.emitter.rank(data) < 2 || groups < 1)
    return Status::success();
  const Extent channels = node.emitter.shape(data)[1];
  if (!channels.isStatic())
    return node.fail("has a symbolic number of channels, which version {} does not allow to scale",
                     node.version);
  mlir::Value repeats = node.emitter.ints({groups, channels.value() / groups});
  for (size_t i : {1, 2}) {
    Expected<mlir::Value> spread = perChannel(node, node.operand(i), repeats);
    if (!spread)
      return spread.takeError();
    node.setOperand(i, *spread);
  }
  node.set("stash_type", int64_t(node.emitter.type(data)));
  return Status::success();
}

} // namespace

std::vector<NamedRule> normalizationRules() {
  return {{"Softmax", softmax},
          {"LogSoftmax", softmax},
          {"Hardmax", softmax},
          {"BatchNormalization", batchNormalization},
          {"GroupNormalization", groupNormalization}};
}

} // namespace dovetail::importer
