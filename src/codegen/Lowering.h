// SPDX-License-Identifier: Apache-2.0
//
// From a module of llvm.func with scf, arith, math and vector bodies to optimised machine code in
// an object file held in memory.
#pragma once

#include <memory>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include "codegen/schedule/Machine.h"
#include "support/Expected.h"

namespace dovetail::codegen {

/// Loads the dialects that kernels are emitted in.
void loadKernelDialects(mlir::MLIRContext &context);

/// Rewrites `module` in place and gives it as LLVM IR, not yet for any target.
Expected<std::unique_ptr<llvm::Module>> translateKernels(mlir::ModuleOp module,
                                                         llvm::LLVMContext &context);

struct LoweringTexts {
  std::string optimised, assembly; ///< filled on demand
};

/// Optimises LLVM IR for this processor's kind and gives the bytes of a relocatable ELF object.
Expected<llvm::SmallVector<char, 0>> objectOf(llvm::Module &module, const Isa &isa,
                                              LoweringTexts *texts);

/// Both: rewrites `module` in place and gives the bytes of a relocatable ELF object.
Expected<llvm::SmallVector<char, 0>> lowerToObject(mlir::ModuleOp module, const Isa &isa,
                                                   LoweringTexts *texts);

} // namespace dovetail::codegen
