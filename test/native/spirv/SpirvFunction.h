// SPDX-License-Identifier: Apache-2.0
//
// The body of one shader.
#pragma once

#include <cstdint>

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "llvm/ADT/StringMap.h"

#include "support/DeviceKernel.h"

namespace dovetail::test {

/// Where literals begin in SpirvKernel::data, by the names of their globals.
using LiteralOffsets = llvm::StringMap<uint64_t>;

/// Memory that the threads of a block share: the globals that a function uses, one after the other,
/// as an array of words as wide as the narrowest access.
struct SharedPlan {
  llvm::StringMap<uint64_t> offsets; ///< by the names of globals
  uint64_t bytes = 0, unitBytes = 8;

  static SharedPlan of(mlir::LLVM::LLVMFuncOp function);
};

/// Whether a pointer leads into shared memory.
bool isShared(mlir::Value pointer);

/// Fills `to`, which only returns, with what `from` does. Unavailable where an operation has no
/// counterpart.
Status translateBody(mlir::LLVM::LLVMFuncOp from, mlir::spirv::FuncOp to,
                     const DeviceLaunch &launch, const SharedPlan &shared,
                     const LiteralOffsets &literals);

} // namespace dovetail::test
