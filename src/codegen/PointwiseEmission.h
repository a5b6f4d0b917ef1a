// SPDX-License-Identifier: Apache-2.0
//
// Emits element-wise ops on registers: given the vectors (or scalars) of the operands at some place
// of the iteration space, it gives those of the results. Every family uses it for its prologue and
// epilogue, so a fused op means the same everywhere. Which ops and types it takes is said, with a
// reason for the others, by pointwiseRefusal() in schedule/Expression.h.
#pragma once

#include "llvm/ADT/DenseMap.h"

#include "codegen/Emitter.h"
#include "codegen/schedule/Expression.h"

namespace dovetail::codegen {

/// Registers of problem values: all vectors of one number of lanes, or all scalars, in register
/// types.
using ValueMap = llvm::DenseMap<uint32_t, Value>;

/// Adds the results of `op` to `values`. Operands that are literals with all elements equal need
/// not be there; every other operand must. `lanes` is 0 for scalars.
void emitPointwiseOp(Emitter &emitter, const dvt_op &op, unsigned lanes, ValueMap &values);

/// The ops given by index, in order.
void emitPointwiseOps(Emitter &emitter, llvm::ArrayRef<uint32_t> ops, unsigned lanes,
                      ValueMap &values);

/// One primitive on register values; see ExpressionKind.
Value emitPrimitive(Emitter &emitter, const ExpressionNode &node, Value a, Value b, Value c,
                    unsigned lanes);

} // namespace dovetail::codegen
