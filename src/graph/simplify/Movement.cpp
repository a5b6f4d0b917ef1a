// SPDX-License-Identifier: Apache-2.0
//
// Movement of elements: what moves nothing goes, moves after moves become one, and what only moves
// extents of 1 becomes a view.
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

LogicalResult simplifyTranspose(Operation *op, PatternRewriter &rewriter) {
  Value input = op->getOperand(0);
  SmallVector<int64_t> perm = permOf(op);
  Shape from = extentsOf(typeOf(input));
  if (llvm::is_sorted(perm))
    return replaceWith(op, input, rewriter);
  if (Operation *inner = definedBy(input, "transpose")) {
    SmallVector<int64_t> first = permOf(inner), both;
    for (int64_t d : perm)
      both.push_back(first[d]);
    Value source = inner->getOperand(0);
    rewriter.replaceOp(
        op, llvm::is_sorted(both) ? source : createTranspose(rewriter, op->getLoc(), source, both));
    return success();
  }
  // Extents other than 1 stay in their order: a view.
  int64_t last = -1;
  for (int64_t d : perm) {
    if (from[d] == Extent(1))
      continue;
    if (d < last)
      return failure();
    last = d;
  }
  Value view = createReshape(rewriter, op->getLoc(), input, typeOf(op->getResult(0)));
  if (!view)
    return failure();
  rewriter.replaceOp(op, view);
  return success();
}

/// Ops that give their first operand back where the extents stay: expand, tile, center_crop_pad and
/// depth_to_space of blocks of 1. Pads may cancel each other and slices run backwards, so those
/// have checks of their own.
LogicalResult removeWhereSame(Operation *op, PatternRewriter &rewriter) {
  return replaceWith(op, op->getOperand(0), rewriter);
}

LogicalResult removePad(Operation *op, PatternRewriter &rewriter) {
  std::optional<std::vector<int64_t>> pads = constantIntegers(op->getOperand(1));
  if (!pads || llvm::any_of(*pads, [](int64_t pad) { return pad != 0; }))
    return failure();
  return replaceWith(op, op->getOperand(0), rewriter);
}

LogicalResult removeSlice(Operation *op, PatternRewriter &rewriter) {
  if (op->getNumOperands() > 4 && !isAbsent(op->getOperand(4))) {
    std::optional<std::vector<int64_t>> steps = constantIntegers(op->getOperand(4));
    if (!steps || llvm::any_of(*steps, [](int64_t step) { return step < 0; }))
      return failure();
  }
  // Forward steps that keep every extent take every element.
  return replaceWith(op, op->getOperand(0), rewriter);
}

LogicalResult simplifyConcat(Operation *op, PatternRewriter &rewriter) {
  if (op->getNumOperands() == 1)
    return replaceWith(op, op->getOperand(0), rewriter);
  int64_t rank = typeOf(op->getResult(0)).getRank(), axis = intAttribute(op, "axis", 0);
  axis += axis < 0 ? rank : 0;
  // Empty operands bring nothing, and a concat along the same axis brings its own operands.
  SmallVector<Value> operands;
  bool changed = false;
  for (Value operand : op->getOperands()) {
    Operation *inner = definedBy(operand, "concat");
    if (!typeOf(operand).isDynamicDim(axis) && typeOf(operand).getDimSize(axis) == 0 &&
        op->getNumOperands() > 1) {
      changed = true;
      continue;
    }
    int64_t innerAxis = inner ? intAttribute(inner, "axis", 0) : 0;
    if (inner && (innerAxis < 0 ? innerAxis + rank : innerAxis) == axis && inner->hasOneUse()) {
      changed = true;
      llvm::append_range(operands, inner->getOperands());
      continue;
    }
    operands.push_back(operand);
  }
  // All parts of one split in their order are what was split.
  if (Operation *split = operands.empty() ? nullptr : definedBy(operands.front(), "split")) {
    int64_t splitAxis = intAttribute(split, "axis", 0);
    if ((splitAxis < 0 ? splitAxis + rank : splitAxis) == axis &&
        llvm::equal(operands, split->getResults()))
      return replaceWith(op, split->getOperand(0), rewriter);
  }
  if (!changed || operands.empty())
    return failure();
  rewriter.replaceOp(op, createValue(rewriter, op->getLoc(), "concat", operands,
                                     op->getResult(0).getType(), op->getAttrs()));
  return success();
}

LogicalResult simplifySplit(Operation *op, PatternRewriter &rewriter) {
  Value input = op->getOperand(0);
  if (op->getNumResults() == 1)
    return replaceWith(op, input, rewriter);
  // Split of a concat at the same places.
  Operation *concat = definedBy(input, "concat");
  if (!concat || concat->getNumOperands() != op->getNumResults())
    return failure();
  int64_t rank = typeOf(input).getRank();
  int64_t a = intAttribute(op, "axis", 0), b = intAttribute(concat, "axis", 0);
  if ((a < 0 ? a + rank : a) != (b < 0 ? b + rank : b) ||
      concat->getOperandTypes() != op->getResultTypes())
    return failure();
  rewriter.replaceOp(op, concat->getOperands());
  return success();
}

/// Gather of one known index along an axis of extent 1 is a view; so is gather of a whole axis in
/// order.
LogicalResult simplifyGather(Operation *op, PatternRewriter &rewriter) {
  RankedTensorType data = typeOf(op->getOperand(0));
  int64_t axis = intAttribute(op, "axis", 0);
  axis += axis < 0 ? data.getRank() : 0;
  if (data.isDynamicDim(axis) || typeOf(op->getOperand(1)).getRank() > 1)
    return failure();
  std::optional<std::vector<int64_t>> indices = constantIntegers(op->getOperand(1));
  if (!indices || int64_t(indices->size()) != data.getDimSize(axis))
    return failure();
  for (auto [i, index] : llvm::enumerate(*indices))
    if ((index < 0 ? index + data.getDimSize(axis) : index) != int64_t(i))
      return failure();
  if (op->getOperand(0).getType() == op->getResult(0).getType())
    return replaceWith(op, op->getOperand(0), rewriter);
  Value view = createReshape(rewriter, op->getLoc(), op->getOperand(0), typeOf(op->getResult(0)));
  if (!view)
    return failure();
  rewriter.replaceOp(op, view);
  return success();
}

/// The one op with a tensor for an attribute becomes an expand, which has none.
LogicalResult lowerConstantOfShape(Operation *op, PatternRewriter &rewriter) {
  auto value = op->getAttrOfType<DenseElementsAttr>("value");
  RankedTensorType type = typeOf(op->getResult(0));
  if (value && value.getNumElements() != 1)
    return failure();
  bool scalar = type.getRank() == 0;
  auto single = RankedTensorType::get(scalar ? ArrayRef<int64_t>() : ArrayRef<int64_t>(1),
                                      type.getElementType());
  Value one =
      value ? ConstantOp::create(rewriter, op->getLoc(), single, value.reshape(single))
            : createUniform(rewriter, op->getLoc(), type.getElementType(), single.getShape(), 0);
  if (!scalar)
    one = createValue(rewriter, op->getLoc(), "expand", {one, op->getOperand(0)}, type);
  rewriter.replaceOp(op, one);
  return success();
}

} // namespace

void addMovementRewrites(RewritePatternSet &set) {
  addRewrite(set, "transpose", simplifyTranspose);
  for (const char *name : {"expand", "tile", "center_crop_pad", "depth_to_space", "space_to_depth"})
    addRewrite(set, name, removeWhereSame);
  addRewrite(set, "pad", removePad);
  addRewrite(set, "slice", removeSlice);
  addRewrite(set, "concat", simplifyConcat);
  addRewrite(set, "split", simplifySplit);
  addRewrite(set, "gather", simplifyGather);
  addRewrite(set, "constant_of_shape", lowerConstantOfShape);
}

} // namespace dovetail::graph
