// SPDX-License-Identifier: Apache-2.0
//
// From element-wise ONNX ops to primitives. The composite ones follow the function bodies of the
// ONNX standard.
#include "codegen/schedule/Expression.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace dovetail::codegen {
namespace {

using Kind = ExpressionKind;

struct NamedKind {
  const char *name;
  Kind kind;
};

// One operand, f32 to f32.
constexpr NamedKind kFloatUnary[] = {
    {"sqrt", Kind::Sqrt},       {"reciprocal", Kind::Reciprocal},
    {"exp", Kind::Exp},         {"log", Kind::Log},
    {"sin", Kind::Sin},         {"cos", Kind::Cos},
    {"tan", Kind::Tan},         {"asin", Kind::Asin},
    {"acos", Kind::Acos},       {"atan", Kind::Atan},
    {"sinh", Kind::Sinh},       {"cosh", Kind::Cosh},
    {"asinh", Kind::Asinh},     {"acosh", Kind::Acosh},
    {"atanh", Kind::Atanh},     {"tanh", Kind::Tanh},
    {"erf", Kind::Erf},         {"sigmoid", Kind::Sigmoid},
    {"floor", Kind::Floor},     {"ceil", Kind::Ceil},
    {"round", Kind::RoundEven},
};
// One operand, numbers.
constexpr NamedKind kNumberUnary[] = {{"abs", Kind::Abs}, {"neg", Kind::Neg}, {"sign", Kind::Sign}};
// Two operands, numbers.
constexpr NamedKind kArithmetic[] = {
    {"add", Kind::Add}, {"sub", Kind::Sub}, {"mul", Kind::Mul}, {"div", Kind::Div}};
constexpr NamedKind kComparison[] = {{"less", Kind::Less},
                                     {"less_or_equal", Kind::LessEqual},
                                     {"greater", Kind::Greater},
                                     {"greater_or_equal", Kind::GreaterEqual},
                                     {"equal", Kind::Equal}};
constexpr NamedKind kLogical[] = {{"and", Kind::And}, {"or", Kind::Or}, {"xor", Kind::Xor}};
constexpr NamedKind kBitwise[] = {
    {"bitwise_and", Kind::And}, {"bitwise_or", Kind::Or}, {"bitwise_xor", Kind::Xor}};

constexpr const char *kOthers[] = {"identity",
                                   "dropout",
                                   "relu",
                                   "leaky_relu",
                                   "elu",
                                   "selu",
                                   "celu",
                                   "thresholded_relu",
                                   "hard_sigmoid",
                                   "hard_swish",
                                   "softplus",
                                   "softsign",
                                   "mish",
                                   "gelu",
                                   "swish",
                                   "swi_glu",
                                   "shrink",
                                   "is_nan",
                                   "is_inf",
                                   "not",
                                   "bitwise_not",
                                   "cast",
                                   "cast_like",
                                   "pow",
                                   "mod",
                                   "min",
                                   "max",
                                   "sum",
                                   "mean",
                                   "p_relu",
                                   "where",
                                   "clip",
                                   "bit_shift",
                                   "batch_normalization",
                                   "quantize_linear",
                                   "dequantize_linear"};
/// Ops whose result jumps where an operand changes a little.
constexpr const char *kJumping[] = {"floor",  "ceil",          "round",     "sign",
                                    "less",   "less_or_equal", "greater",   "greater_or_equal",
                                    "equal",  "mod",           "is_inf",    "thresholded_relu",
                                    "shrink", "cast",          "cast_like", "quantize_linear"};

bool jumps(std::string_view name) {
  return std::find(std::begin(kJumping), std::end(kJumping), name) != std::end(kJumping);
}

template <size_t N> const Kind *find(const NamedKind (&table)[N], std::string_view name) {
  for (const NamedKind &line : table)
    if (name == line.name)
      return &line.kind;
  return nullptr;
}

bool isInteger(dvt_type type) { return !isFloatType(type) && type != DVT_BOOL; }

bool isElementType(dvt_type type) {
  switch (type) {
  case DVT_F32:
  case DVT_F16:
  case DVT_BF16:
  case DVT_U8:
  case DVT_I8:
  case DVT_U16:
  case DVT_I16:
  case DVT_I32:
  case DVT_U32:
  case DVT_I64:
  case DVT_BOOL:
    return true;
  default:
    return false;
  }
}

/// Adds the nodes of one op.
class OpExpression {
public:
  OpExpression(Expression &expression, const ProblemReader &problem, const dvt_op &op)
      : x(expression), problem(problem), op(op), name(op.name) {}

  Status add() {
    if (!isPointwiseOp(name))
      return refuse("is not element-wise");
    if (op.input_count == 0 || op.output_count == 0 || !ProblemReader::output(op, 0))
      return refuse("has no operand or no result");
    for (uint32_t i = 1; i < op.output_count; ++i)
      if (ProblemReader::output(op, i))
        return refuse("has several results");
    for (uint32_t i = 0; i < op.input_count; ++i) {
      auto value = ProblemReader::input(op, i);
      if (value && !isElementType(problem.value(*value).type))
        return refuse(fmt::format(
            "has an operand of {}; f32, f16, bf16, bool and integers but u64 are supported",
            valueText(problem.value(*value))));
      operands.push_back(value ? operand(*value) : kNoNode);
    }
    if (jumps(name))
      for (NodeId &operand : operands)
        operand = operand == kNoNode ? kNoNode : x.rounded(operand);
    if (operands[0] == kNoNode)
      return refuse("has no first operand");
    type = x.nodes[operands[0]].type;
    resultType = problem.value(*ProblemReader::output(op, 0)).type;
    if (!isElementType(resultType))
      return refuse(fmt::format("gives {}", elementTypeName(resultType)));
    NodeId result = build();
    if (!reason.empty())
      return refuse(reason);
    if (isFloatType(resultType) && isFloatType(x.nodes[result].type) && mixesFloats())
      result = x.cast(resultType, result);
    if (x.nodes[result].type != resultType)
      return refuse(fmt::format("gives {} where the problem says {}",
                                elementTypeName(x.nodes[result].type),
                                elementTypeName(resultType)));
    x.nodeOf[*ProblemReader::output(op, 0)] = result;
    return Status::success();
  }

private:
  Status refuse(std::string_view why) { return badInput("{} {}", name, why); }
  NodeId give(std::string why) {
    reason = std::move(why);
    return operands[0];
  }

  NodeId operand(uint32_t value) {
    auto known = x.nodeOf.find(value);
    return known != x.nodeOf.end() ? known->second : x.leaf(problem, value);
  }

  bool has(size_t position) const {
    return position < operands.size() && operands[position] != kNoNode;
  }
  bool needs(size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (!has(i)) {
        reason = fmt::format("lacks operand {}", i);
        return false;
      }
    return true;
  }
  bool floats() {
    for (NodeId operand : operands)
      if (operand != kNoNode && !isFloatType(x.nodes[operand].type)) {
        reason = fmt::format("is supported on f32, f16 and bf16, not {}",
                             elementTypeName(x.nodes[operand].type));
        return false;
      }
    return true;
  }
  bool sameTypes(size_t from = 0) {
    for (size_t i = from; i < operands.size(); ++i)
      if (operands[i] != kNoNode && x.nodes[operands[i]].type != x.nodes[operands[from]].type) {
        reason = "has operands of different types";
        return false;
      }
    return true;
  }
  /// Ops whose operands may be floats of several types.
  bool mixesFloats() const { return name == "dequantize_linear" || name == "pow"; }
  double real(const char *attribute, double otherwise) const {
    return ProblemReader::real(op, attribute, otherwise);
  }

  NodeId c(double number) { return x.constant(type, number); }
  NodeId add(NodeId a, NodeId b) { return x.binary(Kind::Add, a, b); }
  NodeId sub(NodeId a, NodeId b) { return x.binary(Kind::Sub, a, b); }
  NodeId mul(NodeId a, NodeId b) { return x.binary(Kind::Mul, a, b); }
  NodeId div(NodeId a, NodeId b) { return x.binary(Kind::Div, a, b); }
  NodeId less(NodeId a, NodeId b) { return x.binary(Kind::Less, a, b); }

  NodeId build() {
    NodeId a = operands[0];
    if (const Kind *kind = find(kFloatUnary, name))
      return floats() ? x.unary(*kind, a) : a;
    if (const Kind *kind = find(kNumberUnary, name))
      return type == DVT_BOOL ? give("is not defined on bool") : x.unary(*kind, a);
    if (const Kind *kind = find(kArithmetic, name)) {
      if (!needs(2) || !sameTypes())
        return a;
      return type == DVT_BOOL ? give("is not defined on bool") : x.binary(*kind, a, operands[1]);
    }
    if (const Kind *kind = find(kComparison, name))
      return needs(2) && sameTypes() ? x.binary(*kind, a, operands[1]) : a;
    if (const Kind *kind = find(kLogical, name)) {
      if (!needs(2) || !sameTypes())
        return a;
      return type == DVT_BOOL ? x.binary(*kind, a, operands[1]) : give("is defined on bool");
    }
    if (const Kind *kind = find(kBitwise, name)) {
      if (!needs(2) || !sameTypes())
        return a;
      return isInteger(type) ? x.binary(*kind, a, operands[1]) : give("is defined on integers");
    }
    if (name == "identity" || name == "dropout")
      return a;
    if (name == "min" || name == "max" || name == "sum" || name == "mean")
      return variadic();
    if (name == "cast")
      return cast(dvt_type(ProblemReader::integer(op, "to", 0)));
    if (name == "cast_like")
      return needs(2) ? cast(x.nodes[operands[1]].type) : a;
    if (name == "where")
      return where();
    if (name == "clip")
      return clip();
    if (name == "pow")
      return pow();
    if (name == "mod")
      return mod();
    if (name == "not")
      return type == DVT_BOOL ? x.unary(Kind::Not, a) : give("is defined on bool");
    if (name == "bitwise_not")
      return isInteger(type) ? x.unary(Kind::Not, a) : give("is defined on integers");
    if (name == "bit_shift") {
      if (!needs(2) || !sameTypes() || !isInteger(type))
        return give("needs two integers of one type");
      return x.binary(ProblemReader::text(op, "direction", "") == "LEFT" ? Kind::ShiftLeft
                                                                         : Kind::ShiftRight,
                      a, operands[1]);
    }
    if (name == "quantize_linear")
      return quantize();
    if (name == "dequantize_linear")
      return dequantize();
    if (name == "relu" && isInteger(type))
      return x.binary(Kind::Max, a, c(0));
    return floats() ? floatFunction(a) : a;
  }

  NodeId variadic() {
    if (!needs(operands.size()) || !sameTypes())
      return operands[0];
    if (type == DVT_BOOL)
      return give("is not defined on bool");
    Kind kind = name == "min" ? Kind::Min : name == "max" ? Kind::Max : Kind::Add;
    NodeId result = operands[0];
    for (size_t i = 1; i < operands.size(); ++i)
      result = x.binary(kind, result, operands[i]);
    if (name != "mean")
      return result;
    return isFloatType(type) ? mul(result, c(1.0 / double(operands.size())))
                             : give("is supported on f32, f16 and bf16");
  }

  NodeId cast(dvt_type to) {
    if (!isElementType(to))
      return give(fmt::format("to {} is not supported", elementTypeName(to)));
    return x.cast(to, operands[0]);
  }

  NodeId where() {
    if (!needs(3) || !sameTypes(1))
      return operands[0];
    return type == DVT_BOOL ? x.select(operands[0], operands[1], operands[2])
                            : give("needs a bool condition");
  }

  NodeId clip() {
    if (!sameTypes())
      return operands[0];
    if (type == DVT_BOOL)
      return give("is not defined on bool");
    NodeId result = operands[0];
    if (op.version < 11) { // bounds were attributes
      if (ProblemReader::attribute(op, "min"))
        result = x.binary(Kind::ClampLow, result, c(real("min", 0)));
      return ProblemReader::attribute(op, "max")
                 ? x.binary(Kind::ClampHigh, result, c(real("max", 0)))
                 : result;
    }
    if (has(1))
      result = x.binary(Kind::ClampLow, result, operands[1]);
    return has(2) ? x.binary(Kind::ClampHigh, result, operands[2]) : result;
  }

  bool hasOneScale() {
    if (!needs(2) || !isFloatType(x.nodes[operands[1]].type)) {
      reason = "needs a scale of f32, f16 or bf16";
      return false;
    }
    return true;
  }

  /// The quotient is rounded to the precision that ONNX prescribes before it is rounded to an
  /// integer, since both decide on which side of a tie it falls.
  NodeId quantize() {
    NodeId a = operands[0];
    if (!hasOneScale() || !isFloatType(type))
      return reason.empty() ? give("is supported on f32, f16 and bf16") : a;
    if (resultType != DVT_U8 && resultType != DVT_I8 && resultType != DVT_U16 &&
        resultType != DVT_I16)
      return give(fmt::format("to {} is not supported", elementTypeName(resultType)));
    auto precision = dvt_type(ProblemReader::integer(op, "precision", 0));
    precision = precision == DVT_UNDEFINED ? x.nodes[operands[1]].type : precision;
    if (!isFloatType(precision))
      return give(fmt::format("in {} is not supported", elementTypeName(precision)));
    NodeId quotient = div(x.cast(precision, a), x.cast(precision, operands[1]));
    x.nodes[quotient].integer = precision == DVT_F32;
    quotient = x.rounded(quotient);
    NodeId shifted = x.unary(Kind::RoundEven, quotient);
    x.nodes[shifted].type = DVT_F32;
    if (has(2) && !isZero(operands[2]))
      shifted = add(shifted, x.cast(DVT_F32, operands[2]));
    NodeId result = x.unary(Kind::Saturate, shifted);
    x.nodes[result].type = resultType;
    return result;
  }

  NodeId dequantize() {
    NodeId a = operands[0];
    if (!hasOneScale() || !isInteger(type) || type == DVT_I64 || type == DVT_U32)
      return reason.empty() ? give("is supported on integers of 8 to 32 bits") : a;
    NodeId shifted = x.cast(DVT_I32, a);
    if (has(2) && !isZero(operands[2]))
      shifted = sub(shifted, x.cast(DVT_I32, operands[2]));
    NodeId result = mul(x.cast(DVT_F32, shifted), operands[1]);
    x.nodes[result].type = resultType;
    return result;
  }

  bool isZero(NodeId id) const {
    return x.nodes[id].kind == Kind::Constant && x.nodes[id].integer == 0;
  }

  NodeId pow() {
    NodeId a = operands[0];
    if (!needs(2) || !isFloatType(type))
      return give("is supported with a base of f32, f16 or bf16");
    const ExpressionNode &exponent = x.nodes[operands[1]];
    if (exponent.kind != Kind::Constant)
      return x.binary(Kind::Pow, a, x.cast(DVT_F32, operands[1]));
    double number = isFloatType(exponent.type) ? exponent.number : double(exponent.integer);
    if (number == 0.5)
      return x.unary(Kind::Sqrt, a);
    if (number == -0.5)
      return x.unary(Kind::ReciprocalSqrt, a);
    if (number == std::trunc(number) && std::abs(number) >= 1 && std::abs(number) <= 4) {
      NodeId square = mul(a, a);
      int power = int(std::abs(number));
      NodeId result = power == 1   ? a
                      : power == 2 ? square
                      : power == 3 ? mul(square, a)
                                   : mul(square, square);
      return number < 0 ? x.unary(Kind::Reciprocal, result) : result;
    }
    return x.binary(Kind::Pow, a, c(number));
  }

  NodeId mod() {
    if (!needs(2) || !sameTypes() || type == DVT_BOOL)
      return give("needs two numbers of one type");
    bool dividend = ProblemReader::integer(op, "fmod", 0) != 0;
    return x.binary(dividend ? Kind::FloatModulo : Kind::Modulo, operands[0], operands[1]);
  }

  NodeId floatFunction(NodeId a) {
    double alpha = real("alpha", 0);
    if (name == "relu")
      return x.unary(Kind::Relu, a);
    if (name == "leaky_relu")
      return x.select(less(a, c(0)), mul(a, c(real("alpha", 0.01))), a);
    if (name == "p_relu")
      return needs(2) ? x.select(less(a, c(0)), mul(a, operands[1]), a) : a;
    if (name == "elu")
      return x.select(less(a, c(0)), mul(x.unary(Kind::ExpMinus1, a), c(real("alpha", 1))), a);
    if (name == "selu")
      return mul(
          x.select(less(a, c(0)),
                   mul(x.unary(Kind::ExpMinus1, a), c(real("alpha", 1.67326319217681884765625))),
                   a),
          c(real("gamma", 1.05070102214813232421875)));
    if (name == "celu") {
      alpha = real("alpha", 1);
      return x.select(less(a, c(0)), mul(x.unary(Kind::ExpMinus1, div(a, c(alpha))), c(alpha)), a);
    }
    if (name == "thresholded_relu")
      return x.select(x.binary(Kind::Greater, a, c(real("alpha", 1))), a, c(0));
    if (name == "hard_sigmoid")
      return saturate(add(mul(a, c(real("alpha", 0.2))), c(real("beta", 0.5))));
    if (name == "hard_swish")
      return mul(a, saturate(add(mul(a, c(1.0 / 6)), c(0.5))));
    if (name == "softplus")
      return softplus(a);
    if (name == "softsign")
      return div(a, add(x.unary(Kind::Abs, a), c(1)));
    if (name == "mish")
      return mul(a, x.unary(Kind::Tanh, softplus(a)));
    if (name == "gelu")
      return gelu(a);
    if (name == "swish")
      return mul(a, x.unary(Kind::Sigmoid, mul(a, c(real("alpha", 1)))));
    if (name == "swi_glu")
      return needs(2)
                 ? mul(mul(a, x.unary(Kind::Sigmoid, mul(a, c(real("alpha", 1))))), operands[1])
                 : a;
    if (name == "shrink") {
      double lambda = real("lambd", 0.5), bias = real("bias", 0);
      NodeId high = x.select(x.binary(Kind::Greater, a, c(lambda)), sub(a, c(bias)), c(0));
      return x.select(less(a, c(-lambda)), add(a, c(bias)), high);
    }
    if (name == "is_nan")
      return x.unary(Kind::IsNan, a);
    if (name == "is_inf") {
      NodeId node = x.unary(Kind::IsInfinite, a);
      x.nodes[node].integer = (ProblemReader::integer(op, "detect_negative", 1) ? 1 : 0) |
                              (ProblemReader::integer(op, "detect_positive", 1) ? 2 : 0);
      return node;
    }
    if (name == "batch_normalization") {
      if (!needs(5))
        return a;
      if (ProblemReader::integer(op, "training_mode", 0))
        return give("in training mode is not supported");
      NodeId scale = mul(x.unary(Kind::ReciprocalSqrt, add(operands[4], c(real("epsilon", 1e-5)))),
                         operands[1]);
      return add(mul(sub(a, operands[3]), scale), operands[2]);
    }
    return give("is not supported");
  }

  NodeId saturate(NodeId a) {
    return x.binary(Kind::ClampHigh, x.binary(Kind::ClampLow, a, c(0)), c(1));
  }

  /// log(1 + exp(a)) without overflow.
  NodeId softplus(NodeId a) {
    NodeId small = x.unary(Kind::Exp, x.unary(Kind::Neg, x.unary(Kind::Abs, a)));
    return add(x.unary(Kind::Relu, a), x.unary(Kind::Log1Plus, small));
  }

  NodeId gelu(NodeId a) {
    if (ProblemReader::text(op, "approximate", "none") != "tanh")
      return x.unary(Kind::Gelu, a);
    NodeId cube = mul(mul(a, a), a);
    NodeId inner = mul(add(a, mul(cube, c(0.044715))), c(0.7978845608028653559));
    return mul(mul(a, c(0.5)), add(x.unary(Kind::Tanh, inner), c(1)));
  }

  Expression &x;
  const ProblemReader &problem;
  const dvt_op &op;
  std::string_view name;
  std::vector<NodeId> operands;
  dvt_type type = DVT_F32, resultType = DVT_F32;
  std::string reason;
};

} // namespace

NodeId Expression::append(ExpressionNode node) {
  nodes.push_back(node);
  return nodes.size() - 1;
}

NodeId Expression::leaf(const ProblemReader &problem, uint32_t value) {
  dvt_type type = problem.value(value).type;
  NodeId id;
  if (auto number = problem.uniformLiteral(value)) {
    id = constant(type, *number);
    if (type == DVT_I64) // not all of which are doubles
      std::memcpy(&nodes[id].integer, problem.value(value).literal, sizeof(int64_t));
  } else {
    ExpressionNode node{ExpressionKind::Leaf, type};
    node.value = value;
    id = append(node);
  }
  nodeOf[value] = id;
  return id;
}

NodeId Expression::constant(dvt_type type, double number) {
  ExpressionNode node{ExpressionKind::Constant, type};
  node.number = number;
  node.integer = isFloatType(type) || std::abs(number) >= 0x1p63 ? 0 : int64_t(number);
  return append(node);
}

NodeId Expression::unary(ExpressionKind kind, NodeId a) {
  bool predicate = kind == ExpressionKind::IsNan || kind == ExpressionKind::IsInfinite;
  ExpressionNode node{kind, predicate ? DVT_BOOL : nodes[a].type};
  node.a = a;
  return append(node);
}

NodeId Expression::binary(ExpressionKind kind, NodeId a, NodeId b) {
  bool comparison = kind >= ExpressionKind::Less && kind <= ExpressionKind::NotEqual;
  ExpressionNode node{kind, comparison ? DVT_BOOL : nodes[a].type};
  node.a = a;
  node.b = b;
  return append(node);
}

NodeId Expression::select(NodeId condition, NodeId a, NodeId b) {
  ExpressionNode node{ExpressionKind::Select, nodes[a].type};
  node.a = condition;
  node.b = a;
  node.c = b;
  return append(node);
}

NodeId Expression::cast(dvt_type type, NodeId a) {
  if (nodes[a].type == type)
    return a;
  ExpressionNode node{ExpressionKind::Cast, type};
  node.a = a;
  return append(node);
}

NodeId Expression::rounded(NodeId a) {
  const ExpressionNode &node = nodes[a];
  if ((node.type != DVT_F16 && node.type != DVT_BF16) || node.kind == ExpressionKind::Leaf ||
      node.kind == ExpressionKind::Cast)
    return a;
  ExpressionNode cast{ExpressionKind::Cast, node.type};
  cast.a = a;
  return append(cast);
}

Status Expression::add(const ProblemReader &problem, const dvt_op &op) {
  return OpExpression(*this, problem, op).add();
}

double Expression::cost() const {
  double sum = 0;
  for (const ExpressionNode &node : nodes) {
    switch (node.kind) {
    case Kind::Leaf:
    case Kind::Constant:
      break;
    case Kind::Exp:
    case Kind::ExpMinus1:
    case Kind::Sigmoid:
      sum += 14;
      break;
    case Kind::Tanh:
    case Kind::Erf:
    case Kind::Gelu:
    case Kind::Log:
    case Kind::Log1Plus:
    case Kind::Atan:
      sum += 24;
      break;
    case Kind::Sin:
    case Kind::Cos:
    case Kind::Tan:
    case Kind::Asin:
    case Kind::Acos:
    case Kind::Sinh:
    case Kind::Cosh:
    case Kind::Asinh:
    case Kind::Acosh:
    case Kind::Atanh:
      sum += 40;
      break;
    case Kind::Pow:
      sum += 100;
      break;
    case Kind::Div:
    case Kind::Sqrt:
    case Kind::Reciprocal:
    case Kind::ReciprocalSqrt:
    case Kind::Modulo:
    case Kind::FloatModulo:
      sum += 10;
      break;
    default:
      sum += 1;
    }
  }
  return sum;
}

bool isPointwiseOp(std::string_view name) {
  return find(kFloatUnary, name) || find(kNumberUnary, name) || find(kArithmetic, name) ||
         find(kComparison, name) || find(kLogical, name) || find(kBitwise, name) ||
         std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

Expected<std::vector<uint32_t>> operandDimensions(const ProblemReader &problem, const dvt_op &op,
                                                  uint32_t position) {
  uint32_t rank = problem.value(*ProblemReader::output(op, 0)).rank;
  const dvt_value &value = problem.value(*ProblemReader::input(op, position));
  if (value.rank > rank)
    return badInput("{} has an operand of more dimensions than its result", op.name);
  std::vector<uint32_t> dimensions(value.rank);
  for (uint32_t i = 0; i < value.rank; ++i)
    dimensions[i] = rank - value.rank + i;
  if (position == 0 || value.rank == 0)
    return dimensions;
  std::string_view name = op.name;
  int64_t axis = 1;
  if (name == "quantize_linear" || name == "dequantize_linear") {
    if (value.rank == 1 && isOne(value.extents[0]))
      return dimensions;
    if (value.rank != 1 || ProblemReader::integer(op, "block_size", 0))
      return badInput("{} has scales in blocks", name);
    axis = ProblemReader::integer(op, "axis", 1);
    axis = axis < 0 ? axis + rank : rank == 1 && axis == 1 ? 0 : axis;
  } else if (name != "batch_normalization" || value.rank != 1) {
    return dimensions;
  }
  if (axis < 0 || axis >= int64_t(rank))
    return badInput("{} has axis {} for rank {}", name, axis, rank);
  return std::vector<uint32_t>{uint32_t(axis)};
}

Expected<std::map<uint32_t, std::vector<uint32_t>>>
leafDimensions(const ProblemReader &problem, const std::vector<uint32_t> &ops, uint32_t rank) {
  std::map<uint32_t, std::vector<uint32_t>> known;
  auto place = [&](uint32_t value, const std::vector<uint32_t> &dimensions) -> Status {
    auto [at, first] = known.try_emplace(value, dimensions);
    if (!first && at->second != dimensions && !problem.uniformLiteral(value))
      return badInput("{} is used in two alignments", valueText(problem.value(value)));
    return Status::success();
  };
  for (uint32_t index : ops) {
    const dvt_op &op = problem.op(index);
    uint32_t result = *ProblemReader::output(op, 0), own = problem.value(result).rank;
    if (own > rank)
      return badInput("{} has more dimensions than the output", valueText(problem.value(result)));
    for (uint32_t i = 0; i < op.input_count; ++i)
      if (auto value = ProblemReader::input(op, i)) {
        auto dimensions = operandDimensions(problem, op, i);
        if (!dimensions)
          return dimensions.takeError();
        for (uint32_t &dimension : *dimensions)
          dimension += rank - own;
        if (Status status = place(*value, *dimensions); !status)
          return status.takeError();
      }
    std::vector<uint32_t> last(own);
    for (uint32_t i = 0; i < own; ++i)
      last[i] = rank - own + i;
    if (Status status = place(result, last); !status)
      return status.takeError();
  }
  return known;
}

bool needRoundedOperands(const ProblemReader &problem, const std::vector<uint32_t> &ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [&](uint32_t op) { return jumps(problem.op(op).name); });
}

std::optional<std::string> pointwiseRefusal(const ProblemReader &problem, const dvt_op &op) {
  Expression expression;
  if (Status status = expression.add(problem, op); !status)
    return status.error().message;
  return std::nullopt;
}

} // namespace dovetail::codegen
