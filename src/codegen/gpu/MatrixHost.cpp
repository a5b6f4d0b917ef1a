// SPDX-License-Identifier: Apache-2.0
//
// What a warp's matrix instruction computes, for a processor whose threads take turns: each lane
// writes its elements to where they stand in the matrices, waits, and sums up its own results.
// Places are those that the vendors document, and are said here on their own, so that a kernel that
// loads an operand wrongly is found out: for NVIDIA in "PTX ISA", sections "Matrix Fragments for
// mma.m16n8k16" and "mma.m16n8k8"; for AMD by its Matrix Instruction Calculator, for
// v_mfma_f32_16x16x16_f16 (and _bf16) and v_mfma_f32_16x16x4_f32. The order and rounding of the
// sums within an instruction are the processor's.
#include "codegen/gpu/MatrixBinding.h"

#include <cstddef>

#include "llvm/IR/Module.h"

#include "support/DeviceKernel.h"

namespace dovetail::codegen {

using namespace llvm;

namespace {

int64_t elementsOfMatrices(const MatrixUnit &unit) {
  return unit.rows * unit.depth + unit.depth * unit.columns;
}

struct Place {
  llvm::Value *row, *column;
};

class HostMatrix {
public:
  HostMatrix(Module &module, const MatrixUnit &unit)
      : module(module), unit(unit), builder(module.getContext()) {}

  Function *make() {
    auto *pointer = PointerType::get(module.getContext(), 0);
    auto words = [&](int64_t count) {
      return FixedVectorType::get(builder.getInt32Ty(), unsigned(count));
    };
    auto *sums = FixedVectorType::get(builder.getFloatTy(), unsigned(unit.sums));
    auto *type = FunctionType::get(
        sums, {words(unit.leftWords), words(unit.rightWords), sums, pointer, pointer}, false);
    Function *function =
        Function::Create(type, GlobalValue::InternalLinkage, unit.function() + "_host", module);
    function->addFnAttr(Attribute::NoInline);
    builder.SetInsertPoint(BasicBlock::Create(module.getContext(), "", function));
    hostThread = function->getArg(3);
    llvm::Value *thread = threadField(offsetof(HostThread, thread), builder.getInt32Ty());
    lane = builder.CreateURem(thread, number(unit.lanes));
    llvm::Value *own = builder.CreateMul(builder.CreateUDiv(thread, number(unit.lanes)),
                                         number(elementsOfMatrices(unit)));
    left = builder.CreateGEP(builder.getFloatTy(), function->getArg(4), own);
    right =
        builder.CreateConstGEP1_64(builder.getFloatTy(), left, uint64_t(unit.rows * unit.depth));
    write(function->getArg(0), unit.leftWords, left, unit.depth,
          [&](int64_t i) { return leftPlace(i); });
    write(function->getArg(1), unit.rightWords, right, unit.columns,
          [&](int64_t i) { return rightPlace(i); });
    waitForOthers();
    llvm::Value *result = function->getArg(2);
    for (int64_t i = 0; i < unit.sums; ++i)
      result = builder.CreateInsertElement(
          result, sum(resultPlace(i), builder.CreateExtractElement(result, i)), i);
    waitForOthers(); // before the matrices are written again
    builder.CreateRet(result);
    return function;
  }

private:
  bool isNvidia() const { return unit.vendor == MatrixUnit::Vendor::Nvidia; }
  llvm::Value *number(int64_t value) { return builder.getInt32(unsigned(value)); }
  llvm::Value *plus(llvm::Value *value, int64_t more) {
    return builder.CreateAdd(value, number(more));
  }
  /// %laneid / divisor * factor, and %laneid % divisor * factor.
  llvm::Value *laneOver(int64_t divisor, int64_t factor = 1) {
    return builder.CreateMul(builder.CreateUDiv(lane, number(divisor)), number(factor));
  }
  llvm::Value *laneModulo(int64_t divisor, int64_t factor = 1) {
    return builder.CreateMul(builder.CreateURem(lane, number(divisor)), number(factor));
  }

  /// Of the left matrix, rows by depth: where a lane's element number `i` stands.
  Place leftPlace(int64_t i) {
    if (!isNvidia()) // A[i][k]: lane i + 16 * (k / n), element k % n, n being 4 or 1 elements
      return {laneModulo(16), plus(laneOver(16, elements(unit.leftWords)), i)};
    if (unit.type == DVT_F32) // a0 .. a3
      return {plus(laneOver(4), i == 1 || i == 3 ? 8 : 0), plus(laneModulo(4), i < 2 ? 0 : 4)};
    // a0 .. a7
    bool upper = i < 2 || (4 <= i && i < 6);
    return {plus(laneOver(4), upper ? 0 : 8), plus(laneModulo(4, 2), (i & 1) + (i < 4 ? 0 : 8))};
  }
  /// Of the right matrix, depth by columns.
  Place rightPlace(int64_t i) {
    if (!isNvidia()) // B[k][j]: lane j + 16 * (k / n), element k % n
      return {plus(laneOver(16, elements(unit.rightWords)), i), laneModulo(16)};
    if (unit.type == DVT_F32) // b0, b1
      return {plus(laneModulo(4), i == 0 ? 0 : 4), laneOver(4)};
    // b0 .. b3
    return {plus(laneModulo(4, 2), (i & 1) + (i < 2 ? 0 : 8)), laneOver(4)};
  }
  Place resultPlace(int64_t i) {
    if (!isNvidia()) // D[i][j]: lane j + 16 * (i / 4), element i % 4
      return {plus(laneOver(16, 4), i), laneModulo(16)};
    // c0 .. c3
    return {plus(laneOver(4), i < 2 ? 0 : 8), plus(laneModulo(4, 2), i & 1)};
  }

  int64_t elements(int64_t words) const { return words * unit.elementsPerWord(); }

  llvm::Value *at(llvm::Value *matrix, const Place &place, int64_t columns) {
    llvm::Value *offset =
        builder.CreateAdd(builder.CreateMul(place.row, number(columns)), place.column);
    return builder.CreateGEP(builder.getFloatTy(), matrix, offset);
  }

  /// Element number `i` of a lane's words, the lower half of a word before the upper one.
  llvm::Value *element(llvm::Value *words, int64_t i) {
    llvm::Value *word = builder.CreateExtractElement(words, i / unit.elementsPerWord());
    if (unit.type == DVT_F32)
      return builder.CreateBitCast(word, builder.getFloatTy());
    llvm::Value *bits = i % 2 ? builder.CreateLShr(word, 16) : word;
    if (unit.type == DVT_BF16)
      return builder.CreateBitCast(builder.CreateShl(bits, 16), builder.getFloatTy());
    llvm::Value *half =
        builder.CreateBitCast(builder.CreateTrunc(bits, builder.getInt16Ty()), builder.getHalfTy());
    return builder.CreateFPExt(half, builder.getFloatTy());
  }

  void write(llvm::Value *words, int64_t count, llvm::Value *matrix, int64_t columns,
             function_ref<Place(int64_t)> placeOf) {
    for (int64_t i = 0; i < elements(count); ++i)
      builder.CreateStore(element(words, i), at(matrix, placeOf(i), columns));
  }

  llvm::Value *sum(const Place &place, llvm::Value *before) {
    for (int64_t k = 0; k < unit.depth; ++k) {
      llvm::Value *a = builder.CreateLoad(builder.getFloatTy(),
                                          at(left, {place.row, number(k)}, unit.depth)),
                  *b = builder.CreateLoad(builder.getFloatTy(),
                                          at(right, {number(k), place.column}, unit.columns));
      before = builder.CreateFMA(a, b, before);
    }
    return before;
  }

  llvm::Value *threadField(size_t offset, llvm::Type *type) {
    return builder.CreateLoad(
        type, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), hostThread, offset));
  }
  void waitForOthers() {
    auto *pointer = PointerType::get(module.getContext(), 0);
    llvm::Value *barrier = threadField(offsetof(HostThread, barrier), pointer);
    builder.CreateCall(FunctionType::get(builder.getVoidTy(), {pointer}, false), barrier,
                       {threadField(offsetof(HostThread, context), pointer)});
  }

  Module &module;
  const MatrixUnit &unit;
  IRBuilder<> builder;
  llvm::Value *hostThread = nullptr, *lane = nullptr, *left = nullptr, *right = nullptr;
};

} // namespace

uint64_t hostMatrixBytes(const MatrixUnit &unit, uint32_t blockThreads) {
  return uint64_t(blockThreads) / uint64_t(unit.lanes) * 4 * uint64_t(elementsOfMatrices(unit));
}

Function *hostMatrixFunction(Module &module, const MatrixUnit &unit) {
  if (Function *made = module.getFunction(unit.function() + "_host"))
    return made;
  return HostMatrix(module, unit).make();
}

llvm::Value *emitRoundToTf32(IRBuilder<> &builder, llvm::Value *number) {
  llvm::Value *bits = builder.CreateBitCast(number, builder.getInt32Ty());
  // Ten bits of fraction are left of 23; half of the last one is added to the magnitude.
  llvm::Value *rounded = builder.CreateAnd(builder.CreateAdd(bits, builder.getInt32(0x1000)),
                                           builder.getInt32(0xffffe000));
  return builder.CreateSelect(builder.CreateFCmpUNO(number, number), bits, rounded);
}

} // namespace dovetail::codegen
