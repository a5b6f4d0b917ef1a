// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops written as a graph of few primitives, without MLIR: schedules ask whether ops
// can be expressed and what they cost, emission turns nodes into instructions. An ONNX op becomes
// one or several nodes; its operands are leaves or results of ops added before. Broadcasting is no
// concern here: a node is one element.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/ProblemReader.h"
#include "support/Expected.h"

namespace dovetail::codegen {

enum class ExpressionKind {
  Leaf,     ///< the problem value `value`, given from outside
  Constant, ///< `number` (or `integer` for integer types)
  // Floats and integers
  Add,
  Sub,
  Mul,
  Div,
  Min,
  Max,
  Neg,
  Abs,
  Sign,
  Modulo,      ///< sign of the divisor (integers: ONNX fmod=0)
  FloatModulo, ///< sign of the dividend (ONNX fmod=1)
  // Floats
  Relu,
  ClampLow,
  ClampHigh, ///< the larger, the smaller of the two; NaN where `a` is. ClampLow, ClampHigh on
             ///< integers too
  Sqrt,
  Reciprocal,
  ReciprocalSqrt,
  Exp,
  ExpMinus1,
  Log,
  Log1Plus,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Asinh,
  Acosh,
  Atanh,
  Tanh,
  Erf,
  Sigmoid,
  Pow,
  Floor,
  Ceil,
  RoundEven,
  Truncate,
  Gelu, ///< Gelu is the exact one
  IsNan,
  IsInfinite, ///< IsInfinite: `integer` bit 0 counts -inf, bit 1 +inf
  // Comparisons give bool
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  // bool, and integers bit by bit
  And,
  Or,
  Xor,
  Not,
  ShiftLeft,
  ShiftRight,
  Select, ///< a ? b : c
  Cast,   ///< to `type`
  // Over the reduced axes of a space, see schedule/Rows.h; never in purely element-wise ops
  ReduceSum,
  ReduceProduct,
  ReduceMin,
  ReduceMax, ///< `integer` 1: may lose NaN, which is faster
  ReduceArgMin,
  ReduceArgMax, ///< i64, the first index where several tie; the last where `integer` is 1
  ReduceCount,  ///< how many elements are reduced, a number of `type`
};

using NodeId = uint32_t;
constexpr NodeId kNoNode = UINT32_MAX;

struct ExpressionNode {
  ExpressionKind kind;
  dvt_type type;
  NodeId a = kNoNode, b = kNoNode, c = kNoNode;
  double number = 0;
  int64_t integer = 0;
  uint32_t value = DVT_NO_VALUE; ///< Leaf: the problem value
};

class Expression {
public:
  std::vector<ExpressionNode> nodes; ///< operands before uses
  std::map<uint32_t, NodeId> nodeOf; ///< of problem values known so far

  NodeId leaf(const ProblemReader &problem, uint32_t value);
  NodeId constant(dvt_type type, double number);
  NodeId unary(ExpressionKind kind, NodeId a);
  NodeId binary(ExpressionKind kind, NodeId a, NodeId b);
  NodeId select(NodeId condition, NodeId a, NodeId b);
  NodeId cast(dvt_type type, NodeId a);
  /// Adds the nodes of `op`; operands unknown so far become leaves, uniform literals constants.
  /// BadInput with a reason naming the op and what is supported where it cannot be expressed.
  Status add(const ProblemReader &problem, const dvt_op &op);
  /// Rough cost of all nodes in vector instructions.
  double cost() const;

private:
  NodeId append(ExpressionNode node);
};

/// Whether `name` is an element-wise op at all (of any type).
bool isPointwiseOp(std::string_view name);
/// Why `op` cannot be emitted by emitPointwiseOp, or nothing when it can.
std::optional<std::string> pointwiseRefusal(const ProblemReader &problem, const dvt_op &op);

} // namespace dovetail::codegen
