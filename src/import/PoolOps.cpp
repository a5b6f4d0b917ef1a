// SPDX-License-Identifier: Apache-2.0
//
// Pools and their kin through the op-set versions: RoiAlign had no half-pixel offset before 16.
#include "import/WindowAttributes.h"

namespace dovetail::importer {
namespace {

Status pool(NodeImport &node) {
  mlir::Value image = node.operand(0);
  if (!image || node.emitter.rank(image) < 3)
    return Status::success();
  if (!completeWindow(node, node.emitter.rank(image) - 2))
    return Status::success();
  return resolvePadding(node, node.emitter.shape(image));
}

Status maxUnpool(NodeImport &node) {
  mlir::Value image = node.operand(0);
  if (!image || node.emitter.rank(image) < 3)
    return Status::success();
  size_t spatial = node.emitter.rank(image) - 2;
  if (!node.has("strides"))
    node.set("strides", std::vector<int64_t>(spatial, 1));
  if (!node.has("pads"))
    node.set("pads", std::vector<int64_t>(2 * spatial, 0));
  return Status::success();
}

/// Version 10 has no half-pixel offset.
Status roiAlign(NodeImport &node) {
  if (node.version < 16)
    node.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return Status::success();
}

Status col2Im(NodeImport &node) {
  mlir::Value blockShape = node.operand(2);
  if (!blockShape || node.emitter.rank(blockShape) != 1 ||
      !node.emitter.shape(blockShape)[0].isStatic())
    return Status::success();
  size_t spatial = size_t(node.emitter.shape(blockShape)[0].value());
  for (auto [name, count, value] :
       {std::tuple("dilations", 1u, 1), {"strides", 1u, 1}, {"pads", 2u, 0}})
    if (!node.has(name))
      node.set(name, std::vector<int64_t>(count * spatial, value));
  return Status::success();
}

} // namespace

std::vector<NamedRule> poolRules() {
  return {{"AveragePool", pool},    {"MaxPool", pool},      {"LpPool", pool},
          {"MaxUnpool", maxUnpool}, {"RoiAlign", roiAlign}, {"Col2Im", col2Im}};
}

} // namespace dovetail::importer
