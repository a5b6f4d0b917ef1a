// SPDX-License-Identifier: Apache-2.0
//
// The map of all shape rules and the checks common to all ops.
#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {

ShapeRule findShapeRule(std::string_view op) {
  static const ShapeRules rules = [] {
    ShapeRules all;
    addPointwiseRules(all);
    addReductionRules(all);
    addContractionRules(all);
    addWindowRules(all);
    addNormalizationRules(all);
    addAttentionRules(all);
    addViewRules(all);
    addMovementRules(all);
    addIndexingRules(all);
    addResizeRules(all);
    addGeneratorRules(all);
    addQuantizationRules(all);
    addSequenceModelRules(all);
    return all;
  }();
  auto found = rules.find(op);
  return found == rules.end() ? nullptr : found->second;
}

Status inferShapes(InferContext &context) {
  ShapeRule rule = findShapeRule(context.info.name);
  if (!rule)
    return context.fail("there is no shape rule for this op");
  // The least number of operands is a number of leading ones, all of them required except for
  // resize.
  for (int i = 0; i < context.info.leastInputs; ++i)
    if (!context.has(i))
      return context.fail("operand {} is absent but required", i);
  for (size_t i = 0; i < context.operandCount(); ++i)
    if (context.has(i) && context.type(i) == DVT_UNDEFINED)
      return context.fail("operand {} has no known type", i);
  if (Status status = rule(context); !status)
    return status;
  for (ValueFacts &result : context.takeResults()) {
    for (const Extent &extent : result.shape)
      if (std::optional<int64_t> value = extent.staticValue(); value && *value < 0)
        return context.fail("a result would have the extents {}", shapeText(result.shape));
    if (elementCount(result.shape).isOverflow())
      return context.fail("a result would have more elements than 64 bits can count");
  }
  return Status::success();
}

} // namespace dovetail::graph
