// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops written as a graph of few primitives, without MLIR: schedules ask whether ops
// can be expressed and what they cost, emission turns nodes into instructions. An ONNX op becomes
// one or several nodes; its operands are leaves or results of ops added before. Broadcasting is no
// concern here: a node is one element. Nodes of f16 and bf16 hold f32 numbers, which are rounded
// when they are stored, where the problem casts, and before ops that jump between neighbours.
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
  Div, ///< `integer` 1: by the scale of a quantisation in f32
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
  Select,   ///< a ? b : c
  Cast,     ///< to `type`; rounds to 16-bit floats although registers hold more
  Saturate, ///< a float to the nearest integer of `type`, ties to even; NaN gives 0
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
  /// A node of a 16-bit float as memory would hold it.
  NodeId rounded(NodeId a);
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
/// The dimensions of an element-wise op's result along which those of operand `position` lie: the
/// last ones, or the axis of scales and the like. BadInput where the operand lies otherwise.
Expected<std::vector<uint32_t>> operandDimensions(const ProblemReader &problem, const dvt_op &op,
                                                  uint32_t position);
/// Dimensions of a space of `rank` dimensions along which the operands of some element-wise ops
/// lie, given for each value that they read from outside. BadInput where a value would lie in two
/// ways.
Expected<std::map<uint32_t, std::vector<uint32_t>>>
leafDimensions(const ProblemReader &problem, const std::vector<uint32_t> &ops, uint32_t rank);
/// Whether some of the ops must see operands as memory would hold them.
bool needRoundedOperands(const ProblemReader &problem, const std::vector<uint32_t> &ops);
/// Why `op` cannot be emitted by emitPointwiseOp, or nothing when it can.
std::optional<std::string> pointwiseRefusal(const ProblemReader &problem, const dvt_op &op);

} // namespace dovetail::codegen
