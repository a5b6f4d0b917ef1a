// SPDX-License-Identifier: Apache-2.0
//
// The graph dialect `dvt` in C++. Tensor ops are told apart by their name or, quicker, by their
// line of the table (infoOf); the few ops with a structure of their own have classes generated from
// GraphOps.td. Ops are built generically: OperationState, name "dvt.<name>", operands in ONNX
// order, attributes by ONNX name.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "graph/OpRegistry.h"

#include "graph/GraphDialect.h.inc"

#define GET_OP_CLASSES
#include "graph/GraphOps.h.inc"

namespace dovetail::graph {

/// The table's line of a dvt tensor op; nullptr for any other op.
const OpInfo *infoOf(mlir::Operation *op);
/// Whether `op` is the dvt op `name` ("mat_mul"), table ops and structural ones alike.
bool isOp(mlir::Operation *op, llvm::StringRef name);
/// The op that defines `value` if it is the dvt op `name`; else nullptr.
mlir::Operation *definedBy(mlir::Value value, llvm::StringRef name);
/// Whether an operand stands for an absent one.
bool isAbsent(mlir::Value value);

/// Builds a tensor op. Attributes that the table gives a default and `attributes` does not name are
/// filled in.
mlir::Operation *createOp(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                          mlir::ValueRange operands, mlir::TypeRange results,
                          llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
/// The attribute the table's default stands for; null where there is none.
mlir::Attribute defaultAttribute(mlir::MLIRContext *context, const OpAttribute &attribute);

/// Attributes by name in the encodings of the dialect; `fallback` where absent.
int64_t intAttribute(mlir::Operation *op, llvm::StringRef name, int64_t fallback);
double floatAttribute(mlir::Operation *op, llvm::StringRef name, double fallback);
llvm::StringRef stringAttribute(mlir::Operation *op, llvm::StringRef name,
                                llvm::StringRef fallback);
/// Empty where absent.
llvm::ArrayRef<int64_t> intsAttribute(mlir::Operation *op, llvm::StringRef name);

/// ONNX name of a node: the NameLoc of the op, empty where it has none.
llvm::StringRef nodeName(mlir::Operation *op);
/// Argument and result attribute of @main that holds the ONNX value name.
inline constexpr llvm::StringLiteral kNameAttribute = "dvt.name";

} // namespace dovetail::graph
