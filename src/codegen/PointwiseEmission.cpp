// SPDX-License-Identifier: Apache-2.0
//
// Turns the primitives of an Expression into instructions. Integers narrower than their register
// are cut back after every operation that can leave their range.
#include "codegen/PointwiseEmission.h"

#include <cmath>

#include "codegen/MathEmission.h"

namespace dovetail::codegen {

using namespace mlir;

namespace {

using Kind = ExpressionKind;

class PrimitiveEmission {
public:
  PrimitiveEmission(Emitter &e, const ExpressionNode &node, unsigned lanes) : e(e), node(node) {
    Type element = e.registerType(node.type);
    type = lanes ? Type(e.vectorOf(element, lanes)) : element;
  }

  Value emit(Value a, Value b, Value c) {
    bool floats = isFloatType(node.type);
    switch (node.kind) {
    case Kind::Leaf:
      e.fail("an operand of an element-wise op has no register");
      return e.constant(type, 0);
    case Kind::Constant:
      return floats ? e.constant(type, node.number) : e.integerConstant(type, node.integer);
    case Kind::Add:
      return wrap(e.add(a, b));
    case Kind::Sub:
      return wrap(e.sub(a, b));
    case Kind::Mul:
      return wrap(e.mul(a, b));
    case Kind::Div:
      if (node.integer && e.quantizesByProduct)
        return e.mul(a, reciprocal(b));
      return floats ? e.fdiv(a, b) : wrap(integerDivision(a, b));
    case Kind::Min:
      return e.minimum(a, b);
    case Kind::Max:
      return e.maximum(a, b);
    case Kind::Neg:
      return wrap(e.neg(a));
    case Kind::Abs:
      return wrap(e.abs(a));
    case Kind::Sign:
      return sign(a);
    case Kind::Modulo:
      return modulo(a, b);
    case Kind::FloatModulo:
      return floats ? emitFloatModulo(e, a, b) : integerRemainder(a, b);
    case Kind::Relu:
      return e.fastMaximum(e.constant(type, 0), a);
    case Kind::ClampLow:
      return e.fastMaximum(b, a);
    case Kind::ClampHigh:
      return e.fastMinimum(b, a);
    case Kind::Sqrt:
      return e.sqrt(a);
    case Kind::Reciprocal:
      return e.fdiv(e.constant(type, 1), a);
    case Kind::ReciprocalSqrt:
      return e.fdiv(e.constant(type, 1), e.sqrt(a));
    case Kind::Exp:
      return emitExp(e, a);
    case Kind::ExpMinus1:
      return emitExpMinus1(e, a);
    case Kind::Log:
      return emitLog(e, a);
    case Kind::Log1Plus:
      return emitLog1Plus(e, a);
    case Kind::Sin:
      return emitSin(e, a);
    case Kind::Cos:
      return emitCos(e, a);
    case Kind::Tan:
      return emitTan(e, a);
    case Kind::Asin:
      return emitAsin(e, a);
    case Kind::Acos:
      return emitAcos(e, a);
    case Kind::Atan:
      return emitAtan(e, a);
    case Kind::Sinh:
      return emitSinh(e, a);
    case Kind::Cosh:
      return emitCosh(e, a);
    case Kind::Asinh:
      return emitAsinh(e, a);
    case Kind::Acosh:
      return emitAcosh(e, a);
    case Kind::Atanh:
      return emitAtanh(e, a);
    case Kind::Tanh:
      return emitTanh(e, a);
    case Kind::Erf:
      return emitErf(e, a);
    case Kind::Sigmoid:
      return emitSigmoid(e, a);
    case Kind::Gelu:
      return emitGelu(e, a);
    case Kind::Pow:
      return emitPow(e, a, b);
    case Kind::Floor:
      return e.floor(a);
    case Kind::Ceil:
      return e.ceil(a);
    case Kind::RoundEven:
      return e.roundEven(a);
    case Kind::Truncate:
      return e.truncate(a);
    case Kind::IsNan:
      return e.ne(a, a);
    case Kind::IsInfinite:
      return isInfinite(a);
    case Kind::Less:
      return e.lt(a, b);
    case Kind::LessEqual:
      return e.le(a, b);
    case Kind::Greater:
      return e.gt(a, b);
    case Kind::GreaterEqual:
      return e.ge(a, b);
    case Kind::Equal:
      return e.eq(a, b);
    case Kind::NotEqual:
      return e.ne(a, b);
    case Kind::And:
      return e.bitAnd(a, b);
    case Kind::Or:
      return e.bitOr(a, b);
    case Kind::Xor:
      return e.bitXor(a, b);
    case Kind::Not:
      return wrap(e.bitNot(a));
    case Kind::ShiftLeft:
      return shift(a, b, true);
    case Kind::ShiftRight:
      return shift(a, b, false);
    case Kind::Select:
      return e.select(a, b, c);
    case Kind::Cast:
      if (node.type == DVT_F16 || node.type == DVT_BF16)
        return e.rounded(node.type, e.convert(a, e.f32Type()));
      return wrap(e.convert(a, e.registerType(node.type)));
    case Kind::Saturate:
      return saturate(a);
    default:
      e.fail("a reduction where an element-wise op is expected");
      return e.constant(type, 0);
    }
  }

private:
  unsigned bits() const { return 8 * elementBytes(node.type); }
  bool isUnsigned() const {
    return node.type == DVT_U8 || node.type == DVT_U16 || node.type == DVT_U32;
  }

  Value wrap(Value value) {
    Type element = e.registerType(node.type);
    if (isFloatType(node.type) || node.type == DVT_BOOL ||
        bits() == element.getIntOrFloatBitWidth())
      return value;
    if (isUnsigned())
      return e.bitAnd(value, e.integerConstant(type, (int64_t(1) << bits()) - 1));
    return e.convert(e.convert(value, e.builder.getIntegerType(bits())), element);
  }

  /// Of a scale. Where that of a tiny one would overflow, the largest that does not saturates as
  /// well.
  Value reciprocal(Value scale) {
    Value least = e.constant(scale.getType(), 0x1p-126), zero = e.constant(scale.getType(), 0);
    Value tiny = e.bitAnd(e.lt(scale, least), e.gt(scale, zero));
    return e.fdiv(e.constant(scale.getType(), 1), e.select(tiny, least, scale));
  }

  /// The divisor, with what the processor would trap on replaced by 1.
  Value safeDivisor(Value b) {
    Value trap = e.bitOr(e.eq(b, e.integerConstant(type, 0)), e.eq(b, e.integerConstant(type, -1)));
    return e.select(trap, e.integerConstant(type, 1), b);
  }

  /// Toward zero; a / 0 is a.
  Value integerDivision(Value a, Value b) {
    Value quotient = e.sdiv(a, safeDivisor(b));
    return e.select(e.eq(b, e.integerConstant(type, -1)), e.neg(a), quotient);
  }

  /// Sign of the dividend; a % 0 is 0.
  Value integerRemainder(Value a, Value b) { return e.srem(a, safeDivisor(b)); }

  Value modulo(Value a, Value b) {
    Value zero = e.constant(type, 0);
    bool floats = isFloatType(node.type);
    Value r = floats ? emitFloatModulo(e, a, b) : integerRemainder(a, b);
    Value differ = e.ne(e.lt(r, zero), e.lt(b, zero));
    return e.select(e.bitAnd(e.ne(r, zero), differ), e.add(r, b), r);
  }

  Value saturate(Value a) {
    int64_t low = isUnsigned() ? 0 : -(int64_t(1) << (bits() - 1));
    Value number = e.select(e.eq(a, a), e.roundEven(a), e.constant(a.getType(), 0));
    number = e.fastMaximum(number, e.constant(a.getType(), double(low)));
    int64_t high = low + (int64_t(1) << bits()) - 1;
    number = e.fastMinimum(number, e.constant(a.getType(), double(high)));
    return e.convert(number, e.registerType(node.type));
  }

  Value sign(Value a) {
    Value zero = e.constant(type, 0), one = e.constant(type, 1), minusOne = e.constant(type, -1);
    // `a` itself is zero or NaN where neither comparison holds.
    return e.select(e.gt(a, zero), one, e.select(e.lt(a, zero), minusOne, a));
  }

  Value isInfinite(Value a) {
    auto like = [&](double number) { return e.constant(a.getType(), number); };
    switch (node.integer & 3) {
    case 1:
      return e.eq(a, like(-INFINITY));
    case 2:
      return e.eq(a, like(INFINITY));
    case 3:
      return e.eq(e.abs(a), like(INFINITY));
    default:
      return e.integerConstant(type, 0);
    }
  }

  /// Shifts by the width and more give 0 (ONNX defines shifts on unsigned types).
  Value shift(Value a, Value b, bool left) {
    Value width = e.integerConstant(type, bits());
    Value inside = e.bitAnd(e.lt(b, width), e.ge(b, e.integerConstant(type, 0)));
    Value amount = e.select(inside, b, e.integerConstant(type, 0));
    Value shifted = left ? wrap(e.shiftLeft(a, amount)) : e.shiftRight(a, amount);
    return e.select(inside, shifted, e.integerConstant(type, 0));
  }

  Emitter &e;
  const ExpressionNode &node;
  Type type;
};

} // namespace

Value emitPrimitive(Emitter &emitter, const ExpressionNode &node, Value a, Value b, Value c,
                    unsigned lanes) {
  return PrimitiveEmission(emitter, node, lanes).emit(a, b, c);
}

/// Of a quantisation whose quotient is `quotient`: clamped, rounded, then shifted by the zero
/// point, which is given as an integer or not at all.
static Value emitQuantized(Emitter &e, dvt_type type, Value quotient, Value zero) {
  double low = type == DVT_I8 ? -128 : 0, high = low + 255;
  Value least = e.constant(quotient.getType(), low), most = e.constant(quotient.getType(), high);
  if (zero) {
    Value shift = e.convert(zero, e.f32Type());
    least = e.sub(least, shift);
    most = e.sub(most, shift);
  }
  Value clamped = e.fastMinimum(most, e.fastMaximum(least, quotient)); // of NaN it is NaN
  bool wide = e.lanes() == 16;
  mlir::Type integers = e.vectorOf(e.i32Type(), e.lanes());
  Value number;
  if (wide)
    number = e.intrinsic("llvm.x86.avx512.mask.cvtps2dq.512", integers,
                         {clamped, e.integerConstant(integers, 0),
                          e.integerConstant(e.builder.getI16Type(), -1),
                          e.integerConstant(e.i32Type(), 4)});
  else
    number = e.intrinsic("llvm.x86.avx.cvt.ps2dq.256", integers, {clamped});
  return zero ? e.add(number, zero) : number;
}

/// The pieces of a quantisation to bytes that ends in `node`; nothing where it is none.
struct QuantizationNodes {
  NodeId quotient, zero; ///< kNoNode where there is no zero point
};
static std::optional<QuantizationNodes> findQuantization(const Expression &expression,
                                                         const ExpressionNode &node) {
  auto at = [&](NodeId id) -> const ExpressionNode & { return expression.nodes[id]; };
  if (node.kind != Kind::Saturate || (node.type != DVT_I8 && node.type != DVT_U8))
    return std::nullopt;
  QuantizationNodes found{node.a, kNoNode};
  if (const ExpressionNode &sum = at(node.a); sum.kind == Kind::Add) {
    if (at(sum.b).kind != Kind::Cast)
      return std::nullopt;
    found = {sum.a, at(sum.b).a};
  }
  if (at(found.quotient).kind != Kind::RoundEven)
    return std::nullopt;
  found.quotient = at(found.quotient).a;
  if (at(found.quotient).kind != Kind::Div || !at(found.quotient).integer)
    return std::nullopt;
  return found;
}

void emitPointwiseOps(Emitter &emitter, llvm::ArrayRef<uint32_t> ops, unsigned lanes,
                      ValueMap &values) {
  Expression expression;
  for (uint32_t index : ops)
    if (Status status = expression.add(emitter.problem, emitter.problem.op(index)); !status)
      return emitter.fail(status.error().message);
  std::vector<Value> registers(expression.nodes.size());
  auto of = [&](NodeId id) { return id == kNoNode ? Value() : registers[id]; };
  for (size_t i = 0; i < registers.size(); ++i) {
    const ExpressionNode &node = expression.nodes[i];
    if (auto quantized =
            emitter.quantizesByProduct ? findQuantization(expression, node) : std::nullopt;
        quantized && lanes == emitter.lanes() && !emitter.machine.isDevice() &&
        registers[quantized->quotient]) {
      registers[i] =
          emitQuantized(emitter, node.type, registers[quantized->quotient], of(quantized->zero));
      continue;
    }
    Value known = node.kind == ExpressionKind::Leaf ? values.lookup(node.value) : Value();
    registers[i] =
        known ? known : emitPrimitive(emitter, node, of(node.a), of(node.b), of(node.c), lanes);
  }
  for (auto [value, id] : expression.nodeOf)
    values[value] = registers[id];
}

void emitPointwiseOp(Emitter &emitter, const dvt_op &op, unsigned lanes, ValueMap &values) {
  emitPointwiseOps(emitter, uint32_t(&op - emitter.problem.problem().ops), lanes, values);
}

} // namespace dovetail::codegen
