// SPDX-License-Identifier: Apache-2.0
//
// Writes ops of the graph dialect, always in their newest ONNX definition: fills in defaults,
// checks element types against that definition, infers the types of the results with the shape
// rules and keeps what is known of every value, so that extents computed in the model are known at
// once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include "graph/shapes/InferContext.h"
#include "import/ModelFile.h"
#include "import/Symbols.h"
#include "support/Expected.h"
#include "support/Problem.h"

namespace onnx {
class OpSchema;
} // namespace onnx

namespace dovetail::importer {

using Values = llvm::SmallVector<mlir::Value, 4>;

/// Attributes of an op by ONNX name.
struct OpAttributes {
  AttributeMap plain;
  std::map<std::string, std::vector<std::string>, std::less<>> strings;
  std::map<std::string, TensorData, std::less<>> tensors;

  bool has(std::string_view name) const {
    return plain.count(name) || strings.count(name) || tensors.count(name);
  }
};

class OpEmitter {
public:
  OpEmitter(mlir::OpBuilder builder, Symbols &symbols)
      : builder(builder), location(builder.getUnknownLoc()), symbols(symbols) {}

  mlir::OpBuilder builder;
  mlir::Location location; ///< of the node at hand
  std::string label;       ///< of the node at hand, for messages
  /// Set where an op was refused because its shape rule found a contradiction.
  bool shapesContradict = false;

  /// Emits the ONNX op `op`; a null operand is an absent one. Gives at least `results` results.
  Expected<Values> emit(std::string_view op, llvm::ArrayRef<mlir::Value> operands,
                        OpAttributes attributes, size_t results);
  /// The same for ops with one result.
  Expected<mlir::Value> emit(std::string_view op, llvm::ArrayRef<mlir::Value> operands,
                             AttributeMap attributes = {});

  mlir::Value constant(const TensorData &data, llvm::StringRef name);
  /// The elements of a constant made by constant(); nothing where the value is none.
  std::optional<TensorData> constantData(mlir::Value value) const;
  mlir::Value ints(llvm::ArrayRef<int64_t> values);  ///< i64[n]
  mlir::Value intScalar(int64_t value);              ///< i64[]
  mlir::Value floats(llvm::ArrayRef<double> values); ///< f32[n]
  /// A scalar of the given type, rounded to it.
  mlir::Value scalar(dvt_type type, double value);

  /// States what is known of a value that no op made (an argument).
  void declare(mlir::Value value, graph::ValueFacts facts);
  const graph::ValueFacts &facts(mlir::Value value) const;
  const graph::Shape &shape(mlir::Value value) const { return facts(value).shape; }
  size_t rank(mlir::Value value) const { return shape(value).size(); }
  dvt_type type(mlir::Value value) const { return facts(value).type; }
  /// Elements of an integer tensor where all are known numbers.
  std::optional<std::vector<int64_t>> knownInts(mlir::Value value) const;
  /// Elements of a constant float or integer tensor.
  std::optional<std::vector<double>> knownNumbers(mlir::Value value) const;

  /// "node 'name' (Conv): ..."
  template <typename... Args>
  Error fail(std::string_view op, fmt::format_string<Args...> format, Args &&...args) const {
    return badInput("node '{}' ({}): {}", label, op,
                    fmt::format(format, std::forward<Args>(args)...));
  }

private:
  Status checkTypes(const onnx::OpSchema &schema, std::string_view op,
                    llvm::ArrayRef<mlir::Value> operands) const;

  llvm::DenseMap<mlir::Value, graph::ValueFacts> known;
  /// Of bytes that `known` points to, by constant.
  llvm::DenseMap<mlir::Value, std::shared_ptr<const void>> owners;
  Symbols &symbols;
};

} // namespace dovetail::importer
