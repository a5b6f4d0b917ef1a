// SPDX-License-Identifier: Apache-2.0
//
// What is known of every tensor op without looking at a graph: its ONNX name, the op-set version
// that last changed it, its kind, how many operands and results it takes and which attributes. The
// one table is Ops.inc. Free of MLIR, so that plan, providers' tests and tools may read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::graph {

enum class OpKind : uint8_t {
  Pointwise,     ///< each result element from one element of every (broadcast) operand
  Reduction,     ///< over some axes, one or no element left of each
  Cumulative,    ///< running sum or product along an axis
  Contraction,   ///< sums of products: convolution, matrix product, einsum
  Normalization, ///< same shape as the first operand, with statistics along some axes
  Pool,          ///< windows or whole images reduced
  Attention,
  View,      ///< the same elements in the same order
  Movement,  ///< the operands' elements in another order, some repeated, left out or blended
  Generator, ///< from extents and scalars alone
  Selection, ///< which elements are taken depends on their values
  Quantization,
  Recurrent,
  Signal,
  Random,
  Loss,
  Sequence,
  Text
};

enum class AttributeType : uint8_t { Int, Float, String, Ints, Floats, Strings, Tensor };

struct OpAttribute {
  std::string_view name;
  AttributeType type;
  bool required = false;
  bool hasDefault = false;
  std::string_view defaultText; ///< as in Ops.inc: "0.5", "NOTSET", "0,2,3"
};

struct OpInfo {
  std::string_view name;     ///< snake case, the dialect's and the door's name: "mat_mul"
  std::string_view onnxName; ///< "MatMul"
  uint32_t version;          ///< op-set version at which the definition last changed
  OpKind kind;
  bool broadcasts;                                        ///< operands are broadcast to one shape
  bool dataDependent;                                     ///< extents of results depend on data
  bool hasFunctionBody;                                   ///< ONNX defines it by other ops
  int leastInputs, mostInputs, leastOutputs, mostOutputs; ///< most: -1 is any number
  uint32_t shapeOperands; ///< bit i: values of operand i decide extents, never elements
  std::vector<OpAttribute> attributes; ///< sorted by name

  bool isPointwise() const { return kind == OpKind::Pointwise; }
  bool isReduction() const { return kind == OpKind::Reduction; }
  bool isView() const { return kind == OpKind::View; }
  bool isDataMovement() const { return kind == OpKind::Movement; }
  bool isRandom() const { return kind == OpKind::Random; }
  bool isShapeOperand(unsigned index) const { return index < 32 && (shapeOperands >> index & 1); }
  const OpAttribute *findAttribute(std::string_view attribute) const;
};

/// By snake-case name, without a dialect prefix; nullptr when there is no such op.
const OpInfo *findOp(std::string_view name);
/// By ONNX name.
const OpInfo *findOnnxOp(std::string_view onnxName);
/// All, in the order of the table.
const std::vector<OpInfo> &allOps();

} // namespace dovetail::graph
