// SPDX-License-Identifier: Apache-2.0
//
// Resize: extents come from the sizes operand or from scales, which are multiplied exactly and
// rounded down.
#include "graph/shapes/ShapeRules.h"

#include <cmath>

namespace dovetail::graph {
namespace {

/// floor(extent * scale). A float is a fraction over a power of two, so this is exact for symbols
/// too.
Extent scaled(const Extent &extent, float scale) {
  int exponent = 0;
  int64_t factor = int64_t(std::ldexp(std::frexp(scale, &exponent), 24));
  for (exponent -= 24; exponent < 0 && factor % 2 == 0; ++exponent)
    factor /= 2;
  if (exponent >= 0)
    return extent * (factor << std::min(exponent, 30));
  // Scales below 2^-38 leave nothing of any extent.
  return exponent < -62 ? Extent(0) : Extent::floorDiv(extent * factor, int64_t(1) << -exponent);
}

/// Sizes that keep the aspect ratio: one scale for all axes, the least or the most of the wanted
/// ones.
bool keepAspectRatio(const InferContext &c, const std::vector<int64_t> &axes, Shape &sizes,
                     bool notLarger) {
  double scale = notLarger ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Extent &from = c.shape(0)[axes[i]];
    if (!from.isStatic() || !sizes[i].isStatic() || from.value() == 0)
      return false;
    double own = double(sizes[i].value()) / double(from.value());
    scale = notLarger ? std::min(scale, own) : std::max(scale, own);
  }
  for (size_t i = 0; i < axes.size(); ++i)
    sizes[i] = int64_t(std::floor(scale * double(c.shape(0)[axes[i]].value()) + 0.5));
  return true;
}

Status resize(InferContext &c) {
  size_t rank = c.rank(0);
  std::vector<int64_t> given = c.list("axes").value_or(std::vector<int64_t>());
  if (!c.hasAttribute("axes"))
    for (size_t d = 0; d < rank; ++d)
      given.push_back(int64_t(d));
  Expected<std::vector<int64_t>> axes = c.axes(given, rank);
  if (!axes)
    return axes.takeError();
  // An empty tensor stands for an absent one, as in older op sets.
  auto present = [&](size_t i) { return c.has(i) && elementCount(c.shape(i)) != Extent(0); };
  Shape shape = c.shape(0);
  size_t from = present(3) ? 3 : 2;
  if (!present(from) || (present(2) && present(3)))
    return c.fail("needs scales or sizes, and not both");
  if (Status status = c.needEqual(elementCount(c.shape(from)), int64_t(axes->size()),
                                  "number of scales or sizes and of axes");
      !status)
    return status;
  std::optional<Elements> sizes = from == 3 ? c.elements(3) : std::nullopt;
  std::optional<std::vector<double>> scales = from == 2 ? c.numbers(2) : std::nullopt;
  std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  Shape wanted;
  for (size_t i = 0; i < axes->size(); ++i) {
    size_t d = (*axes)[i];
    std::optional<Extent> extent;
    if (sizes)
      extent = (*sizes)[i];
    else if (scales && (!((*scales)[i] > 0) || std::isinf((*scales)[i])))
      return c.fail("scale {} is {}, expected a finite one above 0", i, (*scales)[i]);
    else if (scales)
      extent = scaled(shape[d], float((*scales)[i]));
    wanted.push_back(extent ? *extent : c.fresh(0, d));
  }
  if (from == 3 && policy != "stretch" &&
      !keepAspectRatio(c, *axes, wanted, policy == "not_larger"))
    for (size_t i = 0; i < axes->size(); ++i)
      wanted[i] = c.fresh(0, (*axes)[i]);
  for (size_t i = 0; i < axes->size(); ++i)
    shape[(*axes)[i]] = wanted[i];
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

} // namespace

void addResizeRules(ShapeRules &rules) { rules["resize"] = resize; }

} // namespace dovetail::graph
