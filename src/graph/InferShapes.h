// SPDX-License-Identifier: Apache-2.0
//
// Shape inference over a module: sets the type of every value by the shape rules and gives what is
// known of small integer tensors to passes that want it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include "graph/shapes/InferContext.h"
#include "support/Expected.h"

namespace dovetail::graph {

using GraphFacts = llvm::DenseMap<mlir::Value, ValueFacts>;

/// Sets all types of @main. Extents that depend on data keep the symbols they have; new ones are
/// added to the module's ranges. Gives the facts of every value; their bytes point into the
/// module's constants.
Expected<GraphFacts> inferShapes(mlir::ModuleOp module);

/// Replaces symbols by numbers in all types and infers shapes again. BadInput for a name that is no
/// symbol of the module and for a number outside the symbol's range.
Status setDims(mlir::ModuleOp module, const SymbolValues &values);

} // namespace dovetail::graph
