// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/gpu/ThreadCall.h"

namespace dovetail::codegen {

using namespace mlir;

Value callThreadFunction(OpBuilder &builder, ModuleOp module, llvm::StringRef name, Type result,
                         ValueRange operands) {
  Location location = builder.getUnknownLoc();
  Type returned = result ? result : LLVM::LLVMVoidType::get(builder.getContext());
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!function) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    function = LLVM::LLVMFuncOp::create(
        builder, location, name,
        LLVM::LLVMFunctionType::get(returned, SmallVector<Type>(operands.getTypes())));
  }
  auto call = LLVM::CallOp::create(builder, location, function, operands);
  return result ? call.getResult() : Value();
}

} // namespace dovetail::codegen
