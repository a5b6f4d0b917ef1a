// SPDX-License-Identifier: Apache-2.0
//
// Tensor types of the graph: element types as the door numbers them, extents as support::Extent. A
// type with a dynamic extent has an encoding, an array with the text of every extent:
// tensor<?x3xf32, ["N", "3"]>.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "graph/shapes/InferContext.h"
#include "support/Requirement.h"

namespace dovetail::graph {

/// DVT_UNDEFINED for a type that is no element type of the graph.
dvt_type elementType(mlir::Type element);
dvt_type elementType(mlir::RankedTensorType type);
/// Null for types that the graph has no form for.
mlir::Type toElementType(mlir::MLIRContext *context, dvt_type type);

/// Extents of a type. A dynamic extent without a text in the encoding is the symbol "unknown".
Shape extentsOf(mlir::RankedTensorType type);
/// Whether every dynamic extent has a readable text.
bool hasReadableExtents(mlir::RankedTensorType type);
mlir::RankedTensorType tensorType(mlir::Type element, const Shape &shape);
mlir::RankedTensorType tensorType(mlir::MLIRContext *context, dvt_type type, const Shape &shape);

/// Ranges of the symbols of a module, kept in its attribute "dvt.ranges".
SymbolRanges symbolRanges(mlir::ModuleOp module);
void setSymbolRanges(mlir::ModuleOp module, const SymbolRanges &ranges);
/// What the extents must fulfil at run time, kept in its attribute "dvt.requirements".
/// Those of a body that the op `holder` runs stand with that op, by the number of its region.
std::vector<Requirement> requirementsOf(mlir::Operation *holder, unsigned region = 0);
void setRequirements(mlir::Operation *holder, const std::vector<Requirement> &requirements,
                     unsigned region = 0);
/// All symbols in the types of a module's values.
std::vector<std::string> symbolsOf(mlir::ModuleOp module);
/// Symbols in the types of all values that the bodies of `op` may read, which is what is defined
/// before it and around it.
std::set<std::string> symbolsOutside(mlir::Operation *op);

} // namespace dovetail::graph
