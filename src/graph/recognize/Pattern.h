// SPDX-License-Identifier: Apache-2.0
//
// Pieces to recognise patterns with: products taken apart whatever their order, constants compared
// within the rounding of their type, and the wrapping of matched ops into a composite that keeps
// them as its body.
#pragma once

#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"

namespace dovetail::graph {

/// A product of values and one number, as a tree of mul ops and divisions by constants multiplies
/// out.
struct Product {
  llvm::SmallVector<mlir::Value, 4> factors;
  double number = 1;
};
/// Takes apart what defines `root`. Inner results with other uses, and those that `kept` names, are
/// factors.
Product productOf(mlir::Value root, mlir::Value kept = {});

/// Whether two numbers agree within the rounding of `type`.
bool isClose(double a, double b, mlir::Type type);
/// Whether all elements of a constant are close to `number`.
bool isNumber(mlir::Value value, double number);
/// The other operand where one of the two of `op` is uniformly close to `number`; null otherwise.
mlir::Value besideNumber(mlir::Operation *op, double number);
/// The other operand of a binary op, null where `value` is none of them.
mlir::Value beside(mlir::Operation *op, mlir::Value value);
/// The one op that uses `value`, and uses it once; nullptr otherwise.
mlir::Operation *onlyUser(mlir::Value value);

/// Axes of a reduction, counted from the front, sorted; nothing where they are not known.
std::optional<llvm::SmallVector<int64_t>> reducedAxes(mlir::Operation *reduction);

/// `attributes` and the table's defaults of the op `name`.
mlir::DictionaryAttr attributesOf(mlir::Builder &builder, llvm::StringRef name,
                                  llvm::ArrayRef<mlir::NamedAttribute> attributes);

/// Wraps everything between `operands` and the one result of `root` into a composite and gives it.
/// Null, changing nothing, where an inner result is used outside or something else than the
/// operands and constants goes in.
mlir::Operation *wrap(mlir::Operation *root, llvm::StringRef name,
                      llvm::ArrayRef<mlir::Value> operands,
                      llvm::ArrayRef<mlir::NamedAttribute> attributes = {});

/// Tries to recognise a pattern around `op` and gives the composite, or null. Erases what the
/// composite replaces.
using Recognizer = mlir::Operation *(*)(mlir::Operation *op);

mlir::Operation *recognizeActivation(mlir::Operation *op);
mlir::Operation *recognizeNormalization(mlir::Operation *op);
mlir::Operation *recognizeSoftmax(mlir::Operation *op);
mlir::Operation *recognizeAttention(mlir::Operation *op);

} // namespace dovetail::graph
