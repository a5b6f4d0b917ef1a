// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic that does nothing or has a cheaper form with the same rounding: adding 0, multiplying
// by 1, dividing by a power of two, squares and square roots by pow, and gemm's alpha and beta,
// which go into its constants.
#include "graph/simplify/Rewrite.h"

#include <cmath>

#include "graph/simplify/Floats.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

bool isFloat(Value value) {
  RankedTensorType type = typeOf(value);
  return type && isa<FloatType>(type.getElementType());
}

/// Removes the operand `index` of a binary op where it is uniformly `neutral`.
LogicalResult dropNeutral(Operation *op, PatternRewriter &rewriter, unsigned index,
                          double neutral) {
  if (uniformNumber(op->getOperand(index)) != neutral)
    return failure();
  return replaceWith(op, op->getOperand(1 - index), rewriter);
}

LogicalResult simplifyAdd(Operation *op, PatternRewriter &rewriter) {
  return success(succeeded(dropNeutral(op, rewriter, 1, 0)) ||
                 succeeded(dropNeutral(op, rewriter, 0, 0)));
}

LogicalResult simplifySub(Operation *op, PatternRewriter &rewriter) {
  return dropNeutral(op, rewriter, 1, 0);
}

LogicalResult simplifyMul(Operation *op, PatternRewriter &rewriter) {
  return success(succeeded(dropNeutral(op, rewriter, 1, 1)) ||
                 succeeded(dropNeutral(op, rewriter, 0, 1)));
}

LogicalResult simplifyDiv(Operation *op, PatternRewriter &rewriter) {
  if (succeeded(dropNeutral(op, rewriter, 1, 1)))
    return success();
  std::optional<double> divisor = uniformNumber(op->getOperand(1));
  int exponent = 0;
  // Only the reciprocal of a power of two is exact; it must be no denormal in any of the types.
  if (!divisor || !isFloat(op->getOperand(0)) || std::abs(std::frexp(*divisor, &exponent)) != 0.5 ||
      std::abs(exponent) > 12)
    return failure();
  RankedTensorType type = typeOf(op->getOperand(1));
  Value factor =
      createUniform(rewriter, op->getLoc(), type.getElementType(), type.getShape(), 1 / *divisor);
  rewriter.replaceOp(op, createValue(rewriter, op->getLoc(), "mul", {op->getOperand(0), factor},
                                     op->getResult(0).getType()));
  return success();
}

LogicalResult simplifyPow(Operation *op, PatternRewriter &rewriter) {
  Value base = op->getOperand(0);
  std::optional<double> exponent = uniformNumber(op->getOperand(1));
  if (!exponent || base.getType() != op->getResult(0).getType())
    return failure();
  Value result;
  if (*exponent == 1)
    result = base;
  else if (*exponent == 2)
    result = createValue(rewriter, op->getLoc(), "mul", {base, base}, base.getType());
  else if (*exponent == 0.5 && isFloat(base))
    result = createValue(rewriter, op->getLoc(), "sqrt", base, base.getType());
  else if (*exponent == -1 && isFloat(base))
    result = createValue(rewriter, op->getLoc(), "reciprocal", base, base.getType());
  if (!result)
    return failure();
  rewriter.replaceOp(op, result);
  return success();
}

/// min, max, sum and mean of one operand.
LogicalResult simplifySingle(Operation *op, PatternRewriter &rewriter) {
  if (op->getNumOperands() != 1)
    return failure();
  return replaceWith(op, op->getOperand(0), rewriter);
}

/// f(f(x)) = x
LogicalResult cancelInverse(Operation *op, PatternRewriter &rewriter) {
  Operation *inner = definedBy(op->getOperand(0), op->getName().stripDialect());
  return inner ? replaceWith(op, inner->getOperand(0), rewriter) : failure();
}

/// f(f(x)) = f(x)
LogicalResult cancelRepeated(Operation *op, PatternRewriter &rewriter) {
  Operation *inner = definedBy(op->getOperand(0), op->getName().stripDialect());
  return inner ? replaceWith(op, op->getOperand(0), rewriter) : failure();
}

LogicalResult simplifyWhere(Operation *op, PatternRewriter &rewriter) {
  std::optional<double> condition = uniformNumber(op->getOperand(0));
  if (!condition)
    return failure();
  return replaceWith(op, op->getOperand(*condition != 0 ? 1 : 2), rewriter);
}

/// Without bounds there is nothing to clip.
LogicalResult simplifyClip(Operation *op, PatternRewriter &rewriter) {
  for (unsigned i = 1; i < op->getNumOperands(); ++i)
    if (!isAbsent(op->getOperand(i)))
      return failure();
  return replaceWith(op, op->getOperand(0), rewriter);
}

/// Reductions over no axis at all.
LogicalResult simplifyReduction(Operation *op, PatternRewriter &rewriter) {
  if (op->getNumOperands() < 2 || isAbsent(op->getOperand(1)) ||
      intAttribute(op, "noop_with_empty_axes", 0) == 0 ||
      typeOf(op->getOperand(1)).getNumElements() != 0)
    return failure();
  return replaceWith(op, op->getOperand(0), rewriter);
}

/// A constant scaled by `factor`; null for other values and types.
Value scaledConstant(PatternRewriter &rewriter, Value value, double factor) {
  std::optional<std::vector<float>> floats = constantFloats(value);
  if (!floats)
    return {};
  for (float &element : *floats)
    element = float(double(element) * factor);
  return createFloats(rewriter, value.getLoc(), typeOf(value), *floats);
}

/// alpha goes into B and beta into C where those are constant.
LogicalResult normalizeGemm(Operation *op, PatternRewriter &rewriter) {
  double alpha = floatAttribute(op, "alpha", 1), beta = floatAttribute(op, "beta", 1);
  bool hasC = op->getNumOperands() > 2 && !isAbsent(op->getOperand(2));
  bool changed = false;
  SmallVector<Value> operands(op->getOperands());
  if (alpha != 1) {
    if (Value scaled = scaledConstant(rewriter, op->getOperand(1), alpha)) {
      operands[1] = scaled;
      alpha = 1;
      changed = true;
    }
  }
  if (!hasC && beta != 1) {
    beta = 1;
    changed = true;
  } else if (hasC && beta == 0) {
    operands.pop_back();
    beta = 1;
    changed = true;
  } else if (hasC && beta != 1) {
    if (Value scaled = scaledConstant(rewriter, op->getOperand(2), beta)) {
      operands[2] = scaled;
      beta = 1;
      changed = true;
    }
  }
  if (!changed)
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op->setOperands(operands);
    op->setAttr("alpha", rewriter.getF32FloatAttr(float(alpha)));
    op->setAttr("beta", rewriter.getF32FloatAttr(float(beta)));
  });
  return success();
}

} // namespace

void addArithmeticRewrites(RewritePatternSet &set) {
  addRewrite(set, "add", simplifyAdd);
  addRewrite(set, "sub", simplifySub);
  addRewrite(set, "mul", simplifyMul);
  addRewrite(set, "div", simplifyDiv);
  addRewrite(set, "pow", simplifyPow);
  for (const char *name : {"min", "max", "sum", "mean"})
    addRewrite(set, name, simplifySingle);
  for (const char *name : {"not", "neg", "bitwise_not"})
    addRewrite(set, name, cancelInverse);
  for (const char *name : {"relu", "abs", "floor", "ceil", "round", "sign"})
    addRewrite(set, name, cancelRepeated);
  addRewrite(set, "where", simplifyWhere);
  addRewrite(set, "clip", simplifyClip);
  for (const OpInfo &op : allOps())
    if (op.isReduction() && op.findAttribute("noop_with_empty_axes") && op.name != "reduce_l1" &&
        op.name != "reduce_l2" && op.name != "reduce_sum_square" && op.name != "reduce_log_sum" &&
        op.name != "reduce_log_sum_exp")
      addRewrite(set, op.name, simplifyReduction);
  addRewrite(set, "gemm", normalizeGemm);
}

} // namespace dovetail::graph
