// SPDX-License-Identifier: Apache-2.0
//
// Scalars in SPIR-V, and what arith, math and vector operations are in them.
#pragma once

#include <cstdint>

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/Builders.h"

namespace dovetail::test {

class SpirvScalars {
public:
  explicit SpirvScalars(mlir::OpBuilder &builder) : builder(builder) {}

  mlir::Location location() { return builder.getUnknownLoc(); }
  mlir::Type integer(uint64_t bits) { return builder.getIntegerType(unsigned(bits)); }
  mlir::Type i1() { return integer(1); }
  mlir::Type i32() { return integer(32); }
  mlir::Type i64() { return integer(64); }

  template <typename Op> mlir::Value make(mlir::Type type, mlir::ValueRange operands) {
    return Op::create(builder, location(), mlir::TypeRange(type), operands)->getResult(0);
  }
  mlir::Value constant(mlir::Type type, mlir::Attribute value) {
    return mlir::spirv::ConstantOp::create(builder, location(), type, value);
  }
  /// Of an integer or float type.
  mlir::Value number(mlir::Type type, uint64_t value);
  /// The sum of an integer and a number; the integer itself where that is 0.
  mlir::Value plus(mlir::Value value, int64_t number);
  /// An integer of more or fewer bits: what is new are zeros, or copies of the sign.
  mlir::Value resized(mlir::Value value, uint64_t bits);
  mlir::Value resizedSigned(mlir::Value value, uint64_t bits);
  mlir::Value sameBits(mlir::Value value, mlir::Type type);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);

private:
  mlir::OpBuilder &builder;
};

/// The lanes of what an operation of arith, math or vector gives from those of its operands; none
/// where it has no counterpart here.
llvm::SmallVector<mlir::Value>
translateArithmetic(SpirvScalars &s, mlir::Operation &operation,
                    llvm::ArrayRef<llvm::SmallVector<mlir::Value>> operands);

} // namespace dovetail::test
