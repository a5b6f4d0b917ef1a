// SPDX-License-Identifier: Apache-2.0
//
// Activations written out: hard-sigmoid, hard-swish, swish, mish and both forms of GELU. All but
// the first are products of x and something of x, so they are matched as products, in whatever
// order their factors stand.
#include <cmath>

#include "graph/recognize/Pattern.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// x of clip(x + 3, 0, 6).
Value shiftedClipOf(Value value) {
  Operation *clip = definedBy(value, "clip");
  if (!clip || clip->getNumOperands() != 3 || !isNumber(clip->getOperand(1), 0) ||
      !isNumber(clip->getOperand(2), 6))
    return {};
  Operation *add = definedBy(clip->getOperand(0), "add");
  return add ? besideNumber(add, 3) : Value();
}

/// x of erf(x / sqrt(2)) + 1.
Value shiftedErfOf(Value value) {
  Operation *add = definedBy(value, "add");
  Value inner = add ? besideNumber(add, 1) : Value();
  Operation *erf = inner ? definedBy(inner, "erf") : nullptr;
  if (!erf)
    return {};
  Product argument = productOf(erf->getOperand(0));
  if (argument.factors.size() != 1 || !isClose(argument.number, std::sqrt(0.5), elementOf(value)))
    return {};
  return argument.factors[0];
}

/// Whether `value` is factor * x^3, for any way to write the power.
bool isCube(Value value, Value x, double factor) {
  Product product = productOf(value, x);
  if (!isClose(product.number, factor, elementOf(value)))
    return false;
  int power = 0;
  for (Value part : product.factors) {
    Operation *pow = definedBy(part, "pow");
    if (part == x)
      power += 1;
    else if (pow && pow->getOperand(0) == x && isNumber(pow->getOperand(1), 3))
      power += 3;
    else if (pow && pow->getOperand(0) == x && isNumber(pow->getOperand(1), 2))
      power += 2;
    else
      return false;
  }
  return power == 3;
}

/// Whether `value` is factor * x^2 + 1.
bool isSquarePlusOne(Value value, Value x, double factor) {
  Operation *add = definedBy(value, "add");
  Value square = add ? besideNumber(add, 1) : Value();
  if (!square)
    return false;
  Product product = productOf(square, x);
  bool twice =
      product.factors.size() == 2 && llvm::all_equal(product.factors) && product.factors[0] == x;
  Operation *pow = product.factors.size() == 1 ? definedBy(product.factors[0], "pow") : nullptr;
  return isClose(product.number, factor, elementOf(value)) &&
         (twice || (pow && pow->getOperand(0) == x && isNumber(pow->getOperand(1), 2)));
}

/// Whether `value` is tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) + 1.
bool isShiftedTanh(Value value, Value x) {
  Operation *add = definedBy(value, "add");
  Value inner = add ? besideNumber(add, 1) : Value();
  Operation *tanh = inner ? definedBy(inner, "tanh") : nullptr;
  if (!tanh)
    return false;
  constexpr double cubic = 0.044715;
  Product argument = productOf(tanh->getOperand(0), x);
  if (!isClose(argument.number, std::sqrt(2 / M_PI), elementOf(value)))
    return false;
  if (argument.factors.size() == 1) {
    Operation *sum = definedBy(argument.factors[0], "add");
    Value cube = sum ? beside(sum, x) : Value();
    return cube && isCube(cube, x, cubic);
  }
  if (argument.factors.size() != 2)
    return false;
  for (unsigned i : {0u, 1u})
    if (argument.factors[i] == x && isSquarePlusOne(argument.factors[1 - i], x, cubic))
      return true;
  return false;
}

bool isHardSigmoid(Operation *op) {
  Type type = elementOf(op->getResult(0));
  return isClose(floatAttribute(op, "alpha", 0.2), 1.0 / 6, type) &&
         isClose(floatAttribute(op, "beta", 0.5), 0.5, type);
}

/// A product of x and f(x): which activation it is.
Operation *recognizeProduct(Operation *op, Value x, Value f, double number) {
  Builder builder(op->getContext());
  Type type = elementOf(x);
  if (x.getType() != op->getResult(0).getType())
    return nullptr;
  if (isClose(number, 1.0 / 6, type) && shiftedClipOf(f) == x)
    return wrap(op, "hard_swish", x);
  if (isClose(number, 0.5, type) && shiftedErfOf(f) == x)
    return wrap(op, "gelu", x, builder.getNamedAttr("approximate", builder.getStringAttr("none")));
  if (isClose(number, 0.5, type) && isShiftedTanh(f, x))
    return wrap(op, "gelu", x, builder.getNamedAttr("approximate", builder.getStringAttr("tanh")));
  if (number != 1)
    return nullptr;
  if (Operation *sigmoid = definedBy(f, "sigmoid"); sigmoid && sigmoid->getOperand(0) == x)
    return wrap(op, "swish", x);
  if (Operation *gate = definedBy(f, "hard_sigmoid");
      gate && gate->getOperand(0) == x && isHardSigmoid(gate))
    return wrap(op, "hard_swish", x);
  if (Operation *tanh = definedBy(f, "tanh"))
    if (Operation *softplus = definedBy(tanh->getOperand(0), "softplus");
        softplus && softplus->getOperand(0) == x)
      return wrap(op, "mish", x);
  return nullptr;
}

} // namespace

Operation *recognizeActivation(Operation *op) {
  if ((!isOp(op, "mul") && !isOp(op, "div")) || !isa<FloatType>(elementOf(op->getResult(0))))
    return nullptr;
  Product product = productOf(op->getResult(0));
  if (product.factors.size() == 2)
    for (unsigned i : {0u, 1u})
      if (Operation *composite =
              recognizeProduct(op, product.factors[i], product.factors[1 - i], product.number))
        return composite;
  // A part of a longer product may be one: clip(x + 3, 0, 6) / 6 gates another value.
  if (product.factors.size() != 1 || !isClose(product.number, 1.0 / 6, elementOf(op->getResult(0))))
    return nullptr;
  Value x = shiftedClipOf(product.factors[0]);
  if (!x || x.getType() != op->getResult(0).getType())
    return nullptr;
  Builder builder(op->getContext());
  return wrap(op, "hard_sigmoid", x,
              {builder.getNamedAttr("alpha", builder.getF32FloatAttr(1.0f / 6)),
               builder.getNamedAttr("beta", builder.getF32FloatAttr(0.5f))});
}

} // namespace dovetail::graph
