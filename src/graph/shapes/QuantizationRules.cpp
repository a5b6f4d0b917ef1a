// SPDX-License-Identifier: Apache-2.0
//
// Quantise and dequantise: extents stay, the type follows zero point, scale or output_dtype.
#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

Status checkedType(InferContext &c, dvt_type type) {
  if (!typeName(type))
    return c.fail("gives ONNX element type {}, which is not supported", int(type));
  c.result(0, type, c.shape(0));
  return Status::success();
}

Status quantize(InferContext &c) {
  bool stated = c.integer("output_dtype", 0) != 0;
  return checkedType(c, c.has(2) ? c.type(2)
                        : stated ? c.elementType("output_dtype", DVT_UNDEFINED)
                                 : DVT_U8);
}

Status dequantize(InferContext &c) {
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
