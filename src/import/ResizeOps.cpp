// SPDX-License-Identifier: Apache-2.0
//
// Upsample and Resize through the op-set versions. Upsample, and Resize in version 10, map output x
// to input x / scale and take the nearest element below when they enlarge; Resize 10 takes the one
// above when it makes smaller. Operands that are there but empty are as good as absent.
#include "import/NodeImport.h"

#include <algorithm>

namespace dovetail::importer {
namespace {

Expected<mlir::Value> plainResize(NodeImport &node, mlir::Value data, mlir::Value scales,
                                  const std::string &mode, const char *nearest) {
  return node.emitter.emit("Resize", {data, {}, scales},
                           {{"mode", mode},
                            {"coordinate_transformation_mode", std::string("asymmetric")},
                            {"nearest_mode", std::string(nearest)}});
}

/// `scales` is operand 1.
Status oldResize(NodeImport &node, bool mayShrink) {
  mlir::Value data = node.operand(0), scales = node.operand(1);
  if (!data || !scales)
    return node.fail("needs data and scales");
  std::string mode = node.text("mode", "nearest");
  if (mode == "bilinear") // before version 7
    mode = "linear";
  if (mode != "nearest" && mode != "linear")
    return node.fail("has mode '{}'; defined are nearest and linear", mode);
  std::vector<double> grow, shrink;
  if (mode == "nearest" && mayShrink) {
    std::optional<std::vector<double>> factors = node.emitter.knownNumbers(scales);
    if (!factors)
      return node.fail("has scales that are not constant, which version 10 leaves open for mode "
                       "nearest; convert the "
                       "model to a newer op set");
    for (double factor : *factors) {
      grow.push_back(std::max(factor, 1.0));
      shrink.push_back(std::min(factor, 1.0));
    }
  }
  auto changes = [](const std::vector<double> &factors) {
    return std::any_of(factors.begin(), factors.end(), [](double factor) { return factor != 1; });
  };
  mlir::Value result = data;
  if (changes(shrink)) {
    Expected<mlir::Value> smaller =
        plainResize(node, result, node.emitter.floats(shrink), mode, "ceil");
    if (!smaller)
      return smaller.takeError();
    result = *smaller;
    scales = node.emitter.floats(grow);
  }
  if (!changes(shrink) || changes(grow)) {
    Expected<mlir::Value> larger = plainResize(node, result, scales, mode, "floor");
    if (!larger)
      return larger.takeError();
    result = *larger;
  }
  node.replacement = Values{result};
  return Status::success();
}

Status upsample(NodeImport &node) {
  if (node.version < 9) {
    auto found = node.attributes.plain.find("scales");
    auto *scales = found == node.attributes.plain.end()
                       ? nullptr
                       : std::get_if<std::vector<double>>(&found->second);
    node.setOperand(1, node.emitter.floats(scales ? *scales : std::vector<double>()));
  }
  return oldResize(node, /*mayShrink=*/false);
}

Status resize(NodeImport &node) {
  if (node.version < 11)
    return oldResize(node, /*mayShrink=*/true);
  // Of versions 11 and 12: (x + 0.5) / scale, half an element behind half_pixel.
  if (node.version < 13 &&
      node.text("coordinate_transformation_mode", "half_pixel") == "tf_half_pixel_for_nn") {
    const std::string mode = node.text("mode", "nearest"),
                      nearest = node.text("nearest_mode", "round_prefer_floor");
    if (mode != "nearest" || (nearest != "floor" && nearest != "round_prefer_floor"))
      return node.fail("has tf_half_pixel_for_nn with mode '{}' and nearest_mode '{}'; supported "
                       "are nearest and floor or round_prefer_floor",
                       mode, nearest);
    node.set("nearest_mode", std::string(nearest == "floor" ? "round_prefer_ceil" : "ceil"));
    node.set("coordinate_transformation_mode", std::string("half_pixel"));
  }
  if (node.text("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize" &&
      node.operand(1))
    node.setOperand(1, {});
  for (size_t i : {1, 2, 3})
    if (mlir::Value operand = node.operand(i);
        operand && elementCount(node.emitter.shape(operand)) == Extent(0))
      node.setOperand(i, {});
  if (!node.operand(2) == !node.operand(3))
    return node.fail("has {} scales and sizes; exactly one of them must be given",
                     node.operand(2) ? "both" : "no");
  return Status::success();
}

} // namespace

std::vector<NamedRule> resizeRules() { return {{"Upsample", upsample}, {"Resize", resize}}; }

} // namespace dovetail::importer
