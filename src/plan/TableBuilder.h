// SPDX-License-Identifier: Apache-2.0
//
// From the graph dialect to the plan's tables. The only file of this room that sees MLIR.
#pragma once

#include "plan/OpTable.h"
#include "support/Expected.h"

namespace mlir {
class ModuleOp;
}

namespace dovetail::plan {

/// Reads @main of a module whose shapes are inferred. Constants stay where they are: `owner` keeps
/// their memory (the module and its mappings) alive. BadInput for ops that have no kernel form here
/// (sequences), by node.
Expected<OpTable> buildOpTable(mlir::ModuleOp module, std::shared_ptr<const void> owner,
                               SymbolRanges ranges);

} // namespace dovetail::plan
