// SPDX-License-Identifier: Apache-2.0
//
// Shape rules: for every tensor op of the table a function that states types and extents of its
// results, and where they are small integer tensors their elements. Families add their rules to one
// map.
#pragma once

#include <string_view>
#include <unordered_map>

#include "graph/shapes/InferContext.h"

namespace dovetail::graph {

using ShapeRule = Status (*)(InferContext &);
using ShapeRules = std::unordered_map<std::string_view, ShapeRule>;

/// nullptr for ops without one (sequences, strings).
ShapeRule findShapeRule(std::string_view op);

/// Runs the op's rule after checking that required operands are there. Afterwards every result has
/// a type.
Status inferShapes(InferContext &context);

/// An error where known scales, which values are divided by, are not finite and above zero.
Status checkScales(InferContext &context, size_t operand);

void addPointwiseRules(ShapeRules &rules);
void addReductionRules(ShapeRules &rules);
void addContractionRules(ShapeRules &rules);
void addWindowRules(ShapeRules &rules); ///< convolutions and pools
void addNormalizationRules(ShapeRules &rules);
void addAttentionRules(ShapeRules &rules);
void addViewRules(ShapeRules &rules);
void addMovementRules(ShapeRules &rules);
void addIndexingRules(ShapeRules &rules); ///< gather, scatter, selection
void addResizeRules(ShapeRules &rules);
void addGeneratorRules(ShapeRules &rules);
void addQuantizationRules(ShapeRules &rules);
void addSequenceModelRules(ShapeRules &rules); ///< recurrent ops, signal, losses

} // namespace dovetail::graph
