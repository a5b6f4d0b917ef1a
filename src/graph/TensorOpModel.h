// SPDX-License-Identifier: Apache-2.0
//
// What MLIR asks of a registered op, answered for all tensor ops from their lines of the table: one
// verifier, one printer, one parser. They have no properties: all attributes stand in the attribute
// dictionary.
#pragma once

#include "mlir/IR/OperationSupport.h"

#include "graph/OpRegistry.h"

namespace dovetail::graph {

/// Registers all ops of the table with the context of `dialect`.
void registerTensorOps(mlir::Dialect *dialect);

} // namespace dovetail::graph
