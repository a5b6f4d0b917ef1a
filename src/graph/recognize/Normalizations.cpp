// SPDX-License-Identifier: Apache-2.0
//
// Layer and RMS normalization and softmax in their split forms, as exporters of older op sets write
// them.
#include "graph/TensorType.h"
#include "graph/recognize/Pattern.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// The reduction that defines `value`, if it keeps dimensions.
Operation *keptReduction(Value value, StringRef name) {
  Operation *op = definedBy(value, name);
  return op && intAttribute(op, "keepdims", 1) != 0 ? op : nullptr;
}

/// x of x * x or pow(x, 2).
Value squareOf(Value value) {
  if (Operation *mul = definedBy(value, "mul"); mul && mul->getOperand(0) == mul->getOperand(1))
    return mul->getOperand(0);
  Operation *pow = definedBy(value, "pow");
  return pow && isNumber(pow->getOperand(1), 2) ? pow->getOperand(0) : Value();
}

/// The first of axes that are all the last ones; nothing otherwise.
std::optional<int64_t> trailingAxis(Operation *reduction) {
  std::optional<SmallVector<int64_t>> axes = reducedAxes(reduction);
  int64_t rank = cast<RankedTensorType>(reduction->getOperand(0).getType()).getRank();
  if (!axes || axes->empty())
    return std::nullopt;
  for (auto [i, axis] : llvm::enumerate(*axes))
    if (axis != rank - int64_t(axes->size()) + int64_t(i))
      return std::nullopt;
  return axes->front();
}

/// numerator / sqrt(mean(square of `squared`) + epsilon)
struct Quotient {
  Value numerator, squared;
  int64_t axis;
  double epsilon;
};

std::optional<Quotient> quotientOf(Operation *op) {
  Value numerator, root;
  if (isOp(op, "div")) {
    numerator = op->getOperand(0);
    root = op->getOperand(1);
  } else if (isOp(op, "mul")) {
    for (unsigned i : {0u, 1u})
      if (Operation *inverse = definedBy(op->getOperand(i), "reciprocal")) {
        root = inverse->getOperand(0);
        numerator = op->getOperand(1 - i);
      } else if (Operation *one = definedBy(op->getOperand(i), "div");
                 one && isNumber(one->getOperand(0), 1)) {
        root = one->getOperand(1);
        numerator = op->getOperand(1 - i);
      }
  }
  Operation *sqrt = root ? definedBy(root, "sqrt") : nullptr;
  Operation *add = sqrt ? definedBy(sqrt->getOperand(0), "add") : nullptr;
  if (!add)
    return std::nullopt;
  for (unsigned i : {0u, 1u}) {
    std::optional<double> epsilon = uniformNumber(add->getOperand(i));
    Operation *mean = keptReduction(add->getOperand(1 - i), "reduce_mean");
    Value squared = mean ? squareOf(mean->getOperand(0)) : Value();
    std::optional<int64_t> axis = squared ? trailingAxis(mean) : std::nullopt;
    if (epsilon && axis)
      return Quotient{numerator, squared, *axis, *epsilon};
  }
  return std::nullopt;
}

/// Whether `value` can be a scale or bias: constant along all but the normalized dimensions.
bool isParameter(Value value, RankedTensorType type, int64_t axis) {
  auto own = dyn_cast<RankedTensorType>(value.getType());
  return own && constantOf(value) && own.getElementType() == type.getElementType() &&
         own.getRank() <= type.getRank() - axis;
}

/// The op that follows `op` and applies a parameter by the op `name`.
Operation *appliedBy(Operation *op, StringRef name, RankedTensorType type, int64_t axis,
                     Value &parameter) {
  Operation *user = onlyUser(op->getResult(0));
  if (!user || !isOp(user, name) || user->getResult(0).getType() != type)
    return nullptr;
  Value other = beside(user, op->getResult(0));
  if (!other || !isParameter(other, type, axis))
    return nullptr;
  parameter = other;
  return user;
}

} // namespace

Operation *recognizeNormalization(Operation *op) {
  std::optional<Quotient> quotient = quotientOf(op);
  if (!quotient || quotient->numerator != quotient->squared)
    return nullptr;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value x = quotient->numerator;
  bool centred = false;
  if (Operation *sub = definedBy(x, "sub"))
    if (Operation *mean = keptReduction(sub->getOperand(1), "reduce_mean");
        mean && mean->getOperand(0) == sub->getOperand(0) && trailingAxis(mean) == quotient->axis) {
      x = sub->getOperand(0);
      centred = true;
    }
  if (x.getType() != type || !isa<FloatType>(type.getElementType()))
    return nullptr;
  Value scale, bias;
  Operation *root = op;
  if (Operation *mul = appliedBy(root, "mul", type, quotient->axis, scale))
    root = mul;
  if (centred && scale)
    if (Operation *add = appliedBy(root, "add", type, quotient->axis, bias))
      root = add;
  OpBuilder builder(op);
  SmallVector<Value> operands{x};
  // The named op always scales.
  if (!scale) {
    ArrayRef<int64_t> extents = type.getShape().drop_front(quotient->axis);
    if (llvm::any_of(extents, ShapedType::isDynamic))
      return nullptr;
    scale = createUniform(builder, op->getLoc(), type.getElementType(), extents, 1);
  }
  operands.push_back(scale);
  if (bias)
    operands.push_back(bias);
  NamedAttribute attributes[] = {
      builder.getNamedAttr("axis", builder.getI64IntegerAttr(quotient->axis)),
      builder.getNamedAttr("epsilon", builder.getF32FloatAttr(float(quotient->epsilon)))};
  return wrap(root, centred ? "layer_normalization" : "rms_normalization", operands, attributes);
}

Operation *recognizeSoftmax(Operation *op) {
  if (!isOp(op, "div"))
    return nullptr;
  Operation *exp = definedBy(op->getOperand(0), "exp");
  Operation *sum = keptReduction(op->getOperand(1), "reduce_sum");
  Operation *sub = exp ? definedBy(exp->getOperand(0), "sub") : nullptr;
  if (!sub || !sum || sum->getOperand(0) != exp->getResult(0))
    return nullptr;
  Value x = sub->getOperand(0);
  Operation *max = keptReduction(sub->getOperand(1), "reduce_max");
  if (!max || max->getOperand(0) != x || x.getType() != op->getResult(0).getType())
    return nullptr;
  std::optional<SmallVector<int64_t>> axes = reducedAxes(sum);
  if (!axes || axes->size() != 1 || reducedAxes(max) != axes)
    return nullptr;
  Builder builder(op->getContext());
  return wrap(op, "softmax", x,
              builder.getNamedAttr("axis", builder.getI64IntegerAttr(axes->front())));
}

} // namespace dovetail::graph
