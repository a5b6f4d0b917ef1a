// SPDX-License-Identifier: Apache-2.0
//
// Views: those that change nothing go, squeeze, unsqueeze and flatten become reshapes, and reshapes
// of reshapes one. A reshape has a constant shape wherever extents tell it.
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

LogicalResult removeIdentity(Operation *op, PatternRewriter &rewriter) {
  return replaceWith(op, op->getOperand(0), rewriter);
}

/// Outside of training a dropout passes its operand on.
LogicalResult removeDropout(Operation *op, PatternRewriter &rewriter) {
  if (op->getNumResults() > 1 && !op->getResult(1).use_empty())
    return failure();
  if (op->getNumOperands() > 2 && !isAbsent(op->getOperand(2)) &&
      uniformNumber(op->getOperand(2)) != 0.0)
    return failure();
  if (op->getResult(0).getType() != op->getOperand(0).getType())
    return failure();
  rewriter.replaceAllUsesWith(op->getResult(0), op->getOperand(0));
  rewriter.eraseOp(op);
  return success();
}

LogicalResult removeCast(Operation *op, PatternRewriter &rewriter) {
  return replaceWith(op, op->getOperand(0), rewriter);
}

LogicalResult toReshape(Operation *op, PatternRewriter &rewriter) {
  Value input = op->getOperand(0);
  RankedTensorType type = typeOf(op->getResult(0));
  if (input.getType() == type)
    return replaceWith(op, input, rewriter);
  Value view = createReshape(rewriter, op->getLoc(), input, type);
  if (!view)
    return failure();
  rewriter.replaceOp(op, view);
  return success();
}

LogicalResult simplifyReshape(Operation *op, PatternRewriter &rewriter) {
  Value input = op->getOperand(0), shape = op->getOperand(1);
  RankedTensorType type = typeOf(op->getResult(0));
  if (input.getType() == type)
    return replaceWith(op, input, rewriter);
  Operation *inner = definedBy(input, "reshape");
  if (inner) {
    Value source = inner->getOperand(0);
    if (Value view = source.getType() == type
                         ? source
                         : createReshape(rewriter, op->getLoc(), source, type)) {
      rewriter.replaceOp(op, view);
      return success();
    }
  }
  // One form: a constant shape, with -1 only where an extent is symbolic.
  Shape to = extentsOf(type);
  std::optional<std::vector<int64_t>> numbers = constantIntegers(shape);
  bool isPlain = numbers && intAttribute(op, "allowzero", 0) == 0;
  for (size_t d = 0; isPlain && d < to.size(); ++d)
    isPlain = !to[d].isStatic() || (*numbers)[d] == to[d].value();
  if (isPlain)
    return failure();
  Value plain = createReshape(rewriter, op->getLoc(), input, type);
  if (!plain)
    return failure();
  rewriter.replaceOp(op, plain);
  return success();
}

} // namespace

void addViewRewrites(RewritePatternSet &set) {
  addRewrite(set, "identity", removeIdentity);
  addRewrite(set, "dropout", removeDropout);
  addRewrite(set, "cast", removeCast);
  addRewrite(set, "cast_like", removeCast);
  for (const char *name : {"squeeze", "unsqueeze", "flatten"})
    addRewrite(set, name, toReshape);
  addRewrite(set, "reshape", simplifyReshape);
}

} // namespace dovetail::graph
