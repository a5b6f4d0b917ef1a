// SPDX-License-Identifier: Apache-2.0
//
// The instructions themselves. NVPTX's intrinsics take and give each register on its own, AMDGPU's
// vectors.
#include "codegen/gpu/MatrixBinding.h"

#include <algorithm>

#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace dovetail::codegen {

using namespace llvm;

const MatrixUnit *findMatrixUnit(StringRef function) {
  auto found = std::find_if(MatrixUnit::all().begin(), MatrixUnit::all().end(),
                            [&](const MatrixUnit &unit) { return function == unit.function(); });
  return found == MatrixUnit::all().end() ? nullptr : &*found;
}

static llvm::Value *emitMma(IRBuilder<> &builder, const MatrixUnit &unit, llvm::Value *left,
                            llvm::Value *right, llvm::Value *sums) {
  Intrinsic::ID id = unit.type == DVT_F16    ? Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32
                     : unit.type == DVT_BF16 ? Intrinsic::nvvm_mma_m16n8k16_row_col_bf16
                                             : Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
  llvm::Type *word = unit.type == DVT_F16 ? FixedVectorType::get(builder.getHalfTy(), 2)
                                          : static_cast<llvm::Type *>(builder.getInt32Ty());
  SmallVector<llvm::Value *> registers;
  auto add = [&](llvm::Value *vector, int64_t count, llvm::Type *type) {
    for (int64_t i = 0; i < count; ++i)
      registers.push_back(builder.CreateBitCast(builder.CreateExtractElement(vector, i), type));
  };
  add(left, unit.leftWords, word);
  add(right, unit.rightWords, word);
  add(sums, unit.sums, builder.getFloatTy());
  llvm::Value *results = builder.CreateIntrinsic(id, registers);
  llvm::Value *vector = PoisonValue::get(sums->getType());
  for (int64_t i = 0; i < unit.sums; ++i)
    vector =
        builder.CreateInsertElement(vector, builder.CreateExtractValue(results, unsigned(i)), i);
  return vector;
}

static llvm::Value *emitMfma(IRBuilder<> &builder, const MatrixUnit &unit, llvm::Value *left,
                             llvm::Value *right, llvm::Value *sums) {
  Intrinsic::ID id = unit.type == DVT_F16    ? Intrinsic::amdgcn_mfma_f32_16x16x16f16
                     : unit.type == DVT_BF16 ? Intrinsic::amdgcn_mfma_f32_16x16x16bf16_1k
                                             : Intrinsic::amdgcn_mfma_f32_16x16x4f32;
  auto operand = [&](llvm::Value *words) -> llvm::Value * {
    if (unit.type == DVT_F32)
      return builder.CreateBitCast(builder.CreateExtractElement(words, uint64_t(0)),
                                   builder.getFloatTy());
    llvm::Type *half = unit.type == DVT_F16 ? builder.getHalfTy()
                                            : static_cast<llvm::Type *>(builder.getInt16Ty());
    return builder.CreateBitCast(words, FixedVectorType::get(half, 4));
  };
  // No broadcast of blocks and no permutation of lanes.
  llvm::Value *none = builder.getInt32(0);
  return builder.CreateIntrinsic(id, {operand(left), operand(right), sums, none, none, none});
}

llvm::Value *emitMatrixInstruction(IRBuilder<> &builder, const MatrixUnit &unit, llvm::Value *left,
                                   llvm::Value *right, llvm::Value *sums) {
  return unit.vendor == MatrixUnit::Vendor::Nvidia ? emitMma(builder, unit, left, right, sums)
                                                   : emitMfma(builder, unit, left, right, sums);
}

} // namespace dovetail::codegen
