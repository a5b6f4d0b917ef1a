// SPDX-License-Identifier: Apache-2.0
//
// Calls of the functions without a body that stand for what a thread asks its device.
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace dovetail::codegen {

/// Calls the function `name` of the module, which is declared at its first use. Null where it has
/// no `result`.
mlir::Value callThreadFunction(mlir::OpBuilder &builder, mlir::ModuleOp module,
                               llvm::StringRef name, mlir::Type result,
                               mlir::ValueRange operands = {});

} // namespace dovetail::codegen
