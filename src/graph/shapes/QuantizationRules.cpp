// SPDX-License-Identifier: Apache-2.0
//
// Quantise and dequantise: extents stay, the type follows zero point, scale or output_dtype. Scales
// that nothing can be divided by are errors.
#include <cmath>

#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

Status checkedType(InferContext &c, dvt_type type) {
  if (!typeName(type))
    return c.fail("gives ONNX element type {}, which is not supported", int(type));
  c.result(0, type, c.shape(0));
  return Status::success();
}

} // namespace

Status checkScales(InferContext &c, size_t operand) {
  if (std::optional<std::vector<double>> scales = c.numbers(operand))
    for (size_t i = 0; i < scales->size(); ++i)
      if (!((*scales)[i] > 0) || std::isinf((*scales)[i]))
        return c.fail("has the scale {} at index {}; finite scales above zero are supported",
                      (*scales)[i], i);
  return Status::success();
}

namespace {

/// One scale for all, or one for each index along the axis.
Status checkCounts(InferContext &c) {
  // Zero points have the extents of the scales; of one scalar and one vector of it, too.
  if (c.has(2) && c.shape(2) != c.shape(1) && c.integer("block_size", 0) == 0)
    for (size_t i : {1, 2})
      if (Status status = c.needEqual(elementCount(c.shape(i)),
                                      c.rank(1) == c.rank(2) ? elementCount(c.shape(3 - i)) : 1,
                                      "numbers of scales and zero points");
          !status)
        return status;
  if (c.rank(1) != 1 || c.shape(1)[0] == Extent(1) || c.integer("block_size", 0) != 0)
    return Status::success();
  // Vectors have one axis only, whatever the default of 1 says.
  int64_t stated = c.integer("axis", 1);
  Expected<int64_t> axis = c.axis(c.rank(0) == 1 && stated == 1 ? 0 : stated, c.rank(0));
  if (!axis)
    return axis.takeError();
  return c.needEqual(c.shape(1)[0], c.shape(0)[static_cast<size_t>(*axis)],
                     "number of scales and extent along the axis");
}

/// Scales in blocks have the operand's extents but along one axis, where there is one for each
/// block; zero points have the extents of the scales.
Status checkBlocks(InferContext &c) {
  int64_t block = c.integer("block_size", 0);
  if (block == 0)
    return Status::success();
  const Shape &x = c.shape(0), &scale = c.shape(1);
  int64_t axis = c.integer("axis", 1), rank = int64_t(x.size());
  if (block < 0 || axis < -rank || axis >= rank)
    return c.fail("has block_size {} along axis {} of an operand of rank {}", block, axis, rank);
  auto along = size_t(axis < 0 ? axis + rank : axis);
  bool fits = scale.size() == x.size();
  Shape wanted = x;
  if (x[along].isStatic())
    wanted[along] = Extent((x[along].value() + block - 1) / block);
  for (size_t i = 0; fits && i < x.size(); ++i)
    fits = !scale[i].isStatic() || !wanted[i].isStatic() || scale[i] == wanted[i] ||
           (i == along && !x[along].isStatic());
  if (!fits)
    return c.fail("has scales of {} for {} in blocks of {} along axis {}; {} are needed",
                  shapeText(scale), shapeText(x), block, axis, shapeText(wanted));
  if (c.has(2) && c.shape(2) != scale)
    return c.fail("has scales of {} and zero points of {}, which must have the same extents",
                  shapeText(scale), shapeText(c.shape(2)));
  return Status::success();
}

Status quantize(InferContext &c) {
  if (Status status = checkScales(c, 1); !status)
    return status;
  if (Status status = checkCounts(c); !status)
    return status;
  if (Status status = checkBlocks(c); !status)
    return status;
  dvt_type output = c.elementType("output_dtype", DVT_UNDEFINED);
  if (c.integer("output_dtype", 0) != 0 && typeName(output))
    if (c.has(2) && c.type(2) != output)
      return c.fail("gives {} and has a zero point of {}; both must be of one type",
                    typeName(output), typeName(c.type(2)));
  bool stated = c.integer("output_dtype", 0) != 0;
  return checkedType(c, c.has(2) ? c.type(2)
                        : stated ? c.elementType("output_dtype", DVT_UNDEFINED)
                                 : DVT_U8);
}

Status dequantize(InferContext &c) {
  if (Status status = checkCounts(c); !status)
    return status;
  if (Status status = checkBlocks(c); !status)
    return status;
  bool stated = c.integer("output_dtype", 0) != 0;
  return checkedType(c, stated ? c.elementType("output_dtype", DVT_UNDEFINED) : c.type(1));
}

Status dynamicQuantize(InferContext &c) {
  c.result(0, DVT_U8, c.shape(0));
  c.result(1, DVT_F32, {});
  c.result(2, DVT_U8, {});
  return Status::success();
}

} // namespace

void addQuantizationRules(ShapeRules &rules) {
  rules["quantize_linear"] = quantize;
  rules["dequantize_linear"] = dequantize;
  rules["dynamic_quantize_linear"] = dynamicQuantize;
}

} // namespace dovetail::graph
