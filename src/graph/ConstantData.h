// SPDX-License-Identifier: Apache-2.0
//
// The elements of constants as plain bytes, row-major, as the door has them: bools one byte each,
// 4-bit types two to a byte. Large constants lie where they were mapped and are never copied.
#pragma once

#include <memory>
#include <vector>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"

namespace dovetail::graph {

struct ConstantBytes {
  const void *data = nullptr;
  uint64_t size = 0;
  /// One element that stands for all. Only what rawConstantBytes gives may be so.
  bool uniform = false;
  /// Holds `data` where it had to be made; null where the attribute holds it.
  std::shared_ptr<const void> owned;
};

/// All elements of a constant. Valid as long as the context and `owned` live.
ConstantBytes constantBytes(ConstantOp constant);
ConstantBytes constantBytes(mlir::ElementsAttr value);
/// The same, but a splat stays one element.
ConstantBytes rawConstantBytes(mlir::ElementsAttr value);

/// The constant that `value` is; null where it is none.
ConstantOp constantOf(mlir::Value value);
/// The number all elements of a constant are equal to; nothing where they differ or it is no
/// constant. Looks at no more than a few thousand elements: larger constants are taken to differ.
std::optional<double> uniformNumber(mlir::Value value);
/// Elements of a constant of any number type; nothing where it is none.
std::optional<std::vector<double>> constantNumbers(mlir::Value value);
std::optional<std::vector<int64_t>> constantIntegers(mlir::Value value);

/// A constant's value from bytes in the form above. Small ones are stored in the attribute, large
/// ones in a blob that takes the vector over.
mlir::ElementsAttr elementsAttribute(mlir::RankedTensorType type, std::vector<uint8_t> bytes,
                                     llvm::StringRef name);
mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::RankedTensorType type, std::vector<uint8_t> bytes);
/// i64[n]
mlir::Value createIntegers(mlir::OpBuilder &builder, mlir::Location loc,
                           llvm::ArrayRef<int64_t> values);
/// A tensor of `shape` with all elements `number`, rounded to the element type.
mlir::Value createUniform(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element,
                          llvm::ArrayRef<int64_t> shape, double number);

} // namespace dovetail::graph
