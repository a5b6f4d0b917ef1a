// SPDX-License-Identifier: Apache-2.0
//
// Convolutions. Their definition hardly changed through the op-set versions; what is done here is
// to make every attribute explicit, kernel_shape from the weights among them.
#include "import/WindowAttributes.h"

namespace dovetail::importer {
namespace {

/// The spatial extents of weights as kernel_shape, where that is not given and they are static.
void completeKernel(NodeImport &node, mlir::Value weights) {
  if (node.has("kernel_shape") && !node.ints("kernel_shape")->empty())
    return;
  node.erase("kernel_shape");
  const graph::Shape &shape = node.emitter.shape(weights);
  std::vector<int64_t> kernel;
  for (size_t d = 2; d < shape.size(); ++d) {
    if (!shape[d].isStatic())
      return;
    kernel.push_back(shape[d].value());
  }
  node.set("kernel_shape", kernel);
}

/// Convolutions of operand 0 with the weights at operand `weights`.
Status convolve(NodeImport &node, size_t weights) {
  mlir::Value image = node.operand(0), kernel = node.operand(weights);
  if (!image || !kernel || node.emitter.rank(image) < 3 ||
      node.emitter.rank(kernel) != node.emitter.rank(image))
    return Status::success();
  completeKernel(node, kernel);
  if (!completeWindow(node, node.emitter.rank(image) - 2))
    return Status::success();
  return resolvePadding(node, node.emitter.shape(image));
}

Status conv(NodeImport &node) { return convolve(node, 1); }
Status qLinearConv(NodeImport &node) { return convolve(node, 3); }

/// output_shape and auto_pad state the result's extents; the padding that gives them is worked out
/// as the op's definition says. An output larger than all windows reach is output_padding.
Status convTranspose(NodeImport &node) {
  mlir::Value image = node.operand(0), kernel = node.operand(1);
  if (!image || !kernel || node.emitter.rank(image) < 3 ||
      node.emitter.rank(kernel) != node.emitter.rank(image))
    return Status::success();
  completeKernel(node, kernel);
  const graph::Shape &extents = node.emitter.shape(image);
  size_t spatial = extents.size() - 2;
  std::vector<int64_t> extra = node.ints("output_padding").value_or(std::vector<int64_t>());
  if (extra.empty())
    extra.assign(spatial, 0);
  node.set("output_padding", extra);
  if (!completeWindow(node, spatial) || extra.size() != spatial)
    return Status::success();
  std::string mode = node.text("auto_pad", "NOTSET");
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  std::optional<std::vector<int64_t>> stated = node.ints("output_shape");
  if (stated && stated->empty())
    stated.reset();
  if (!stated && !same)
    return resolvePadding(node, extents);
  // Some exporters write batch and channels, too.
  if (stated && stated->size() == spatial + 2)
    stated->erase(stated->begin(), stated->begin() + 2);
  if (stated && stated->size() != spatial)
    return node.fail("has {} extents in output_shape for {} spatial dimensions", stated->size(),
                     spatial);
  std::vector<int64_t> totals;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t stride = (*node.ints("strides"))[d];
    Extent wanted = stated ? Extent((*stated)[d]) : extents[d + 2] * stride;
    Extent total = (extents[d + 2] - 1) * stride + extra[d] + windowReach(node, d) - wanted;
    if (!total.isStatic())
      return node.fail("has output_shape over the symbolic extent {}; give that extent a value",
                       extents[d + 2].text());
    totals.push_back(std::max<int64_t>(total.value(), 0));
    extra[d] += std::max<int64_t>(-total.value(), 0);
  }
  node.set("output_padding", extra);
  node.set("pads", splitPadding(totals, mode == "SAME_UPPER"));
  node.erase("auto_pad");
  node.erase("output_shape");
  return Status::success();
}

/// Offsets are given for every window, so there is no automatic padding.
Status deformConv(NodeImport &node) {
  mlir::Value image = node.operand(0), kernel = node.operand(1);
  if (image && kernel && node.emitter.rank(image) >= 3 &&
      node.emitter.rank(kernel) == node.emitter.rank(image)) {
    completeKernel(node, kernel);
    completeWindow(node, node.emitter.rank(image) - 2);
  }
  return Status::success();
}

} // namespace

std::vector<NamedRule> convolutionRules() {
  return {{"Conv", conv},
          {"ConvInteger", conv},
          {"QLinearConv", qLinearConv},
          {"ConvTranspose", convTranspose},
          {"DeformConv", deformConv}};
}

} // namespace dovetail::importer
