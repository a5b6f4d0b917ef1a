// SPDX-License-Identifier: Apache-2.0
//
// The formulas are those of the ops' definitions: SAME padding makes ceil(extent / stride) windows.
#include "import/WindowAttributes.h"

namespace dovetail::importer {
namespace {

bool allPositive(const std::vector<int64_t> &values) {
  constexpr int64_t kMost = int64_t(1) << 31;
  for (int64_t value : values)
    if (value < 1 || value > kMost)
      return false;
  return true;
}

} // namespace

bool completeWindow(NodeImport &node, size_t spatial) {
  for (std::string_view name : {"strides", "dilations"})
    if (!node.has(name) || node.ints(name)->empty())
      node.set(name, std::vector<int64_t>(spatial, 1));
  if (std::optional<std::vector<int64_t>> pads = node.ints("pads"); !pads || pads->empty())
    node.set("pads", std::vector<int64_t>(2 * spatial, 0));
  for (std::string_view name : {"kernel_shape", "strides", "dilations"}) {
    std::optional<std::vector<int64_t>> values = node.ints(name);
    if (!values || values->size() != spatial || !allPositive(*values))
      return false;
  }
  return true;
}

int64_t windowReach(const NodeImport &node, size_t d) {
  return (*node.ints("kernel_shape"))[d] * (*node.ints("dilations"))[d] -
         (*node.ints("dilations"))[d] + 1;
}

std::vector<int64_t> splitPadding(const std::vector<int64_t> &totals, bool upper) {
  std::vector<int64_t> pads(2 * totals.size());
  for (size_t d = 0; d < totals.size(); ++d) {
    int64_t small = totals[d] / 2;
    pads[d] = upper ? small : totals[d] - small;
    pads[d + totals.size()] = totals[d] - pads[d];
  }
  return pads;
}

Status resolvePadding(NodeImport &node, const graph::Shape &image) {
  std::string mode = node.text("auto_pad", "NOTSET");
  size_t spatial = image.size() - 2;
  if (mode.empty() || mode == "NOTSET") {
    node.erase("auto_pad");
    return Status::success();
  }
  if (mode == "VALID") {
    node.set("pads", std::vector<int64_t>(2 * spatial, 0));
    node.erase("auto_pad");
    return Status::success();
  }
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return node.fail("has auto_pad '{}'; defined are NOTSET, SAME_UPPER, SAME_LOWER and VALID",
                     mode);
  std::vector<int64_t> totals;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t stride = (*node.ints("strides"))[d];
    Extent total = Extent::max(0, (Extent::ceilDiv(image[d + 2], stride) - 1) * stride +
                                      windowReach(node, d) - image[d + 2]);
    if (!total.isStatic()) {
      node.erase("pads");
      return Status::success();
    }
    totals.push_back(total.value());
  }
  node.set("pads", splitPadding(totals, mode == "SAME_UPPER"));
  node.erase("auto_pad");
  return Status::success();
}

} // namespace dovetail::importer
