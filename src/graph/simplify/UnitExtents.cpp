// SPDX-License-Identifier: Apache-2.0
//
// Reshapes that only add or drop extents of 1 let other movement pass: transposes meet across them,
// and a gather of one index takes its slice before a transpose instead of after it, so that less is
// moved.
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

SmallVector<int64_t> wideDimensions(const Shape &shape) {
  SmallVector<int64_t> dimensions;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != Extent(1))
      dimensions.push_back(int64_t(d));
  return dimensions;
}

/// For each dimension of the reshape's result the one of its operand that it is, -1 for extents
/// of 1. Nothing where the reshape changes more.
std::optional<SmallVector<int64_t>> unitReshape(Operation *reshape) {
  Shape from = extentsOf(typeOf(reshape->getOperand(0))),
        to = extentsOf(typeOf(reshape->getResult(0)));
  SmallVector<int64_t> a = wideDimensions(from), b = wideDimensions(to);
  if (a.size() != b.size())
    return std::nullopt;
  SmallVector<int64_t> source(to.size(), -1);
  for (size_t i = 0; i < a.size(); ++i) {
    if (from[a[i]] != to[b[i]])
      return std::nullopt;
    source[b[i]] = a[i];
  }
  return source;
}

/// transpose(reshape(transpose(x))) with a reshape of extents of 1: the outer transpose goes below
/// the reshape.
LogicalResult passTranspose(Operation *op, PatternRewriter &rewriter) {
  Operation *reshape = definedBy(op->getOperand(0), "reshape");
  if (!reshape || !definedBy(reshape->getOperand(0), "transpose"))
    return failure();
  std::optional<SmallVector<int64_t>> source = unitReshape(reshape);
  if (!source)
    return failure();
  // Extents of 1 that the inner tensor has come first; they move nothing.
  int64_t rank = typeOf(reshape->getOperand(0)).getRank();
  SmallVector<int64_t> perm, wide;
  for (int64_t d : permOf(op))
    if ((*source)[d] >= 0)
      wide.push_back((*source)[d]);
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(wide, d))
      perm.push_back(d);
  llvm::append_range(perm, wide);
  RankedTensorType type = typeOf(op->getResult(0));
  Value moved = createTranspose(rewriter, op->getLoc(), reshape->getOperand(0), perm);
  Value view = createReshape(rewriter, op->getLoc(), moved, type);
  if (!view) {
    rewriter.eraseOp(moved.getDefiningOp());
    return failure();
  }
  rewriter.replaceOp(op, view);
  return success();
}

Value createGather(PatternRewriter &rewriter, Location loc, Value data, Value index, int64_t axis) {
  Shape shape = extentsOf(typeOf(data));
  shape.erase(shape.begin() + axis);
  return createValue(rewriter, loc, "gather", {data, index},
                     tensorType(typeOf(data).getElementType(), shape),
                     rewriter.getNamedAttr("axis", rewriter.getI64IntegerAttr(axis)));
}

/// gather(reshape(x)) and gather(transpose(x)) of one known index: gathered first.
LogicalResult passGather(Operation *op, PatternRewriter &rewriter) {
  Value data = op->getOperand(0), index = op->getOperand(1);
  if (typeOf(index).getRank() != 0 || !constantOf(index))
    return failure();
  int64_t axis = intAttribute(op, "axis", 0);
  axis += axis < 0 ? typeOf(data).getRank() : 0;
  if (Operation *transpose = definedBy(data, "transpose")) {
    SmallVector<int64_t> perm = permOf(transpose), rest;
    for (auto [i, d] : llvm::enumerate(perm))
      if (int64_t(i) != axis)
        rest.push_back(d > perm[axis] ? d - 1 : d);
    Value part = createGather(rewriter, op->getLoc(), transpose->getOperand(0), index, perm[axis]);
    rewriter.replaceOp(op, createTranspose(rewriter, op->getLoc(), part, rest));
    return success();
  }
  Operation *reshape = definedBy(data, "reshape");
  if (!reshape || !definedBy(reshape->getOperand(0), "transpose"))
    return failure();
  std::optional<SmallVector<int64_t>> source = unitReshape(reshape);
  if (!source || (*source)[axis] < 0)
    return failure();
  Value part = createGather(rewriter, op->getLoc(), reshape->getOperand(0), index, (*source)[axis]);
  Value view = createReshape(rewriter, op->getLoc(), part, typeOf(op->getResult(0)));
  if (!view) {
    rewriter.eraseOp(part.getDefiningOp());
    return failure();
  }
  rewriter.replaceOp(op, view);
  return success();
}

} // namespace

void addUnitExtentRewrites(RewritePatternSet &set) {
  addRewrite(set, "transpose", passTranspose);
  addRewrite(set, "gather", passGather);
}

} // namespace dovetail::graph
