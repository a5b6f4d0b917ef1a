// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the calls that stand for instructions of matrix units
// (schedule/contraction/MatrixUnit.h): the instructions, or code for this processor that computes
// the same.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"

#include "codegen/schedule/contraction/MatrixUnit.h"

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace dovetail::codegen {

/// The unit whose function has this name, or null.
const MatrixUnit *findMatrixUnit(llvm::StringRef function);

/// The instruction's intrinsic on the operands of a call of unit.function(); gives what it returns.
llvm::Value *emitMatrixInstruction(llvm::IRBuilder<> &builder, const MatrixUnit &unit,
                                   llvm::Value *left, llvm::Value *right, llvm::Value *sums);

/// Bytes of a block's shared memory that the host's form of a unit takes.
uint64_t hostMatrixBytes(const MatrixUnit &unit, uint32_t blockThreads);

/// The function for the host: (left words, right words, sums, HostThread *, shared) -> sums, where
/// `shared` are hostMatrixBytes() of the block. All threads of the block call it together; it waits
/// for them twice.
llvm::Function *hostMatrixFunction(llvm::Module &module, const MatrixUnit &unit);

/// kRoundToTf32Function on the host.
llvm::Value *emitRoundToTf32(llvm::IRBuilder<> &builder, llvm::Value *number);

} // namespace dovetail::codegen
