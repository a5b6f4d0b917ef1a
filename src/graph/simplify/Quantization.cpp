// SPDX-License-Identifier: Apache-2.0
//
// Quantised values move as integers: dequantisation goes behind what only moves elements (and
// behind max pooling, which commutes with a rising function), quantisation in front of it. Where
// the two then meet with the same scale and zero point they cancel. Weights written as a product of
// cast integers and scales are dequantised ones. All of it is exact: no result changes by a bit.
#include <cfloat>
#include <cmath>

#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// Operand 0 has one scale and one zero point for all elements.
bool isPerTensor(Operation *op) {
  RankedTensorType scale = typeOf(op->getOperand(1));
  if (!scale || scale.getRank() > 1 || !scale.hasStaticShape() || scale.getNumElements() != 1 ||
      intAttribute(op, "block_size", 0) != 0)
    return false;
  if (op->getNumOperands() < 3 || isAbsent(op->getOperand(2)))
    return true;
  RankedTensorType zero = typeOf(op->getOperand(2));
  return zero && zero.hasStaticShape() && zero.getNumElements() == 1;
}

bool isSmallInteger(Type element) { return element.isInteger(8) || element.isInteger(16); }

/// The only element of operand `index`, 0 where it is absent, nothing where it is not constant.
std::optional<double> singleNumber(Operation *op, unsigned index) {
  if (op->getNumOperands() <= index || isAbsent(op->getOperand(index)))
    return 0.0;
  return uniformNumber(op->getOperand(index));
}

/// quantize(dequantize(x)) with equal parameters. (x - z) * s / s rounds to x - z again as long as
/// the product is an ordinary number.
LogicalResult cancelPair(Operation *op, PatternRewriter &rewriter) {
  Operation *inner = definedBy(op->getOperand(0), "dequantize_linear");
  if (!inner || !isPerTensor(op) || !isPerTensor(inner) ||
      inner->getOperand(0).getType() != op->getResult(0).getType() ||
      !isSmallInteger(typeOf(op->getResult(0)).getElementType()) ||
      !typeOf(inner->getResult(0)).getElementType().isF32() ||
      !typeOf(op->getOperand(1)).getElementType().isF32())
    return failure();
  if (int64_t precision = intAttribute(op, "precision", 0); precision != 0 && precision != DVT_F32)
    return failure();
  std::optional<double> scale = singleNumber(op, 1), zero = singleNumber(op, 2);
  if (!scale || !zero || scale != singleNumber(inner, 1) || zero != singleNumber(inner, 2) ||
      !(*scale >= double(FLT_MIN) && *scale * 131072 <= double(FLT_MAX)))
    return failure();
  rewriter.replaceOp(op, inner->getOperand(0));
  return success();
}

/// Operands and attributes of `op` for the result of `like`, with `value` in front.
Value again(Operation *op, Value value, Type element, RankedTensorType extents,
            PatternRewriter &rewriter) {
  SmallVector<Value> operands(op->getOperands());
  operands.front() = value;
  RankedTensorType type = tensorType(element, extentsOf(extents));
  return createValue(rewriter, op->getLoc(), op->getName().stripDialect(), operands, type,
                     op->getAttrs());
}

/// quantize(move(x)) = move(quantize(x)), for moves that keep all elements.
LogicalResult quantizeBeforeMove(Operation *op, PatternRewriter &rewriter) {
  Operation *move = op->getOperand(0).getDefiningOp();
  if (!move || !(isOp(move, "reshape") || isOp(move, "transpose")) || !move->hasOneUse() ||
      !isPerTensor(op))
    return failure();
  Type element = typeOf(op->getResult(0)).getElementType();
  Value quantized = again(op, move->getOperand(0), element, typeOf(move->getOperand(0)), rewriter);
  rewriter.replaceOp(op, again(move, quantized, element, typeOf(op->getResult(0)), rewriter));
  return success();
}

/// move(dequantize(x)) = dequantize(move(x)).
LogicalResult dequantizeAfterMove(Operation *op, PatternRewriter &rewriter) {
  Operation *inner = definedBy(op->getOperand(0), "dequantize_linear");
  if (!inner || op->getNumResults() != 1 || !isPerTensor(inner) ||
      typeOf(op->getOperand(0)).getElementType() != typeOf(op->getResult(0)).getElementType())
    return failure();
  Type element = typeOf(inner->getOperand(0)).getElementType();
  if (!isSmallInteger(element))
    return failure();
  if (isOp(op, "max_pool")) {
    // Rising only with a scale above zero.
    std::optional<double> scale = singleNumber(inner, 1);
    if (!scale || !(*scale > 0) || !element.isInteger(8))
      return failure();
  }
  Value moved = again(op, inner->getOperand(0), element, typeOf(op->getResult(0)), rewriter);
  rewriter.replaceOp(op, again(inner, moved, typeOf(op->getResult(0)).getElementType(),
                               typeOf(op->getResult(0)), rewriter));
  return success();
}

/// transpose(dequantize(w)) with a scale for each index along an axis, which moves along.
LogicalResult dequantizeAfterTranspose(Operation *op, PatternRewriter &rewriter) {
  if (succeeded(dequantizeAfterMove(op, rewriter)))
    return success();
  Operation *inner = definedBy(op->getOperand(0), "dequantize_linear");
  if (!inner || typeOf(inner->getOperand(1)).getRank() != 1 ||
      intAttribute(inner, "block_size", 0) != 0 || !constantOf(inner->getOperand(0)))
    return failure();
  int64_t rank = typeOf(op->getResult(0)).getRank(), axis = intAttribute(inner, "axis", 1);
  axis += axis < 0 ? rank : 0;
  SmallVector<int64_t> perm = permOf(op);
  auto place = llvm::find(perm, axis);
  if (rank < 2 || place == perm.end())
    return failure();
  Value moved = again(op, inner->getOperand(0), typeOf(inner->getOperand(0)).getElementType(),
                      typeOf(op->getResult(0)), rewriter);
  Value result = again(inner, moved, typeOf(op->getResult(0)).getElementType(),
                       typeOf(op->getResult(0)), rewriter);
  result.getDefiningOp()->setAttr("axis", rewriter.getI64IntegerAttr(place - perm.begin()));
  rewriter.replaceOp(op, result);
  return success();
}

/// concat of values dequantised alike.
LogicalResult dequantizeAfterConcat(Operation *op, PatternRewriter &rewriter) {
  SmallVector<Value> parts;
  Operation *first = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *inner = definedBy(operand, "dequantize_linear");
    if (!inner || !isPerTensor(inner))
      return failure();
    Type element = typeOf(inner->getOperand(0)).getElementType();
    first = first ? first : inner;
    std::optional<double> scale = singleNumber(inner, 1), zero = singleNumber(inner, 2);
    if (!scale || !zero || scale != singleNumber(first, 1) || zero != singleNumber(first, 2) ||
        !isSmallInteger(element) || element != typeOf(first->getOperand(0)).getElementType() ||
        typeOf(operand).getElementType() != typeOf(op->getResult(0)).getElementType())
      return failure();
    parts.push_back(inner->getOperand(0));
  }
  if (!first)
    return failure();
  RankedTensorType type = typeOf(op->getResult(0));
  Value whole = createValue(
      rewriter, op->getLoc(), "concat", parts,
      tensorType(typeOf(first->getOperand(0)).getElementType(), extentsOf(type)), op->getAttrs());
  rewriter.replaceOp(op, again(first, whole, type.getElementType(), type, rewriter));
  return success();
}

/// The dimension along which a constant of f32 differs, when it is broadcast to `type`: -1 where it
/// is one number. Nothing where it differs along more.
std::optional<int64_t> wideDimension(Value scale, RankedTensorType type) {
  if (!constantOf(scale) || !typeOf(scale).getElementType().isF32())
    return std::nullopt;
  ArrayRef<int64_t> shape = typeOf(scale).getShape();
  int64_t offset = type.getRank() - int64_t(shape.size()), wide = -1;
  if (offset < 0)
    return std::nullopt;
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (extent == 1)
      continue;
    if (wide >= 0 || extent != type.getDimSize(offset + int64_t(d)))
      return std::nullopt;
    wide = offset + int64_t(d);
  }
  return wide;
}

/// Whether `value` is read as weights, or as a table that rows are gathered from.
bool areWeights(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    unsigned place = use.getOperandNumber();
    return (place == 1 && (isOp(user, "mat_mul") || isOp(user, "gemm") || isOp(user, "conv"))) ||
           (place == 0 && isOp(user, "gather"));
  });
}

/// Weights written as cast(w) * scale are dequantised ones.
LogicalResult recogniseDequantization(Operation *op, PatternRewriter &rewriter) {
  RankedTensorType type = typeOf(op->getResult(0));
  if (!type.hasStaticShape() || type.getRank() < 2 || !type.getElementType().isF32() ||
      !areWeights(op->getResult(0)))
    return failure();
  for (unsigned side : {0, 1}) {
    Operation *cast = definedBy(op->getOperand(side), "cast");
    Value scale = op->getOperand(1 - side);
    if (!cast || !constantOf(cast->getOperand(0)) ||
        !typeOf(cast->getOperand(0)).getElementType().isInteger(8) ||
        typeOf(cast->getOperand(0)).getShape() != type.getShape())
      continue;
    std::optional<int64_t> axis = wideDimension(scale, type);
    if (!axis)
      continue;
    SmallVector<int64_t> count;
    if (*axis >= 0)
      count.push_back(type.getDimSize(*axis));
    Value flat = createReshape(rewriter, op->getLoc(), scale,
                               RankedTensorType::get(count, typeOf(scale).getElementType()));
    if (!flat)
      return failure();
    rewriter.replaceOp(
        op,
        createValue(rewriter, op->getLoc(), "dequantize_linear", {cast->getOperand(0), flat}, type,
                    rewriter.getNamedAttr(
                        "axis", rewriter.getI64IntegerAttr(std::max<int64_t>(*axis, 0)))));
    return success();
  }
  return failure();
}

/// Rows of a table with a scale for each: rows and scales are gathered, then multiplied.
LogicalResult gatherBeforeScaling(Operation *op, PatternRewriter &rewriter) {
  if (succeeded(dequantizeAfterMove(op, rewriter)))
    return success();
  Operation *inner = definedBy(op->getOperand(0), "dequantize_linear");
  if (!inner || intAttribute(inner, "axis", 1) != 0 || intAttribute(op, "axis", 0) != 0 ||
      intAttribute(inner, "block_size", 0) != 0 || typeOf(inner->getOperand(1)).getRank() != 1 ||
      (inner->getNumOperands() > 2 && !isAbsent(inner->getOperand(2)) &&
       uniformNumber(inner->getOperand(2)) != 0.0))
    return failure();
  RankedTensorType type = typeOf(op->getResult(0)), table = typeOf(inner->getOperand(0)),
                   scales = typeOf(inner->getOperand(1));
  if (!table.hasStaticShape() || !type.getElementType().isF32() || !scales.hasStaticShape() ||
      !scales.getElementType().isF32() || !isSmallInteger(table.getElementType()))
    return failure();
  SmallVector<int64_t> column(table.getRank(), 1);
  column[0] = table.getDimSize(0);
  Value tall = createReshape(rewriter, op->getLoc(), inner->getOperand(1),
                             RankedTensorType::get(column, scales.getElementType()));
  if (!tall)
    return failure();
  Shape picked = extentsOf(type);
  for (size_t d = picked.size() - size_t(table.getRank()) + 1; d < picked.size(); ++d)
    picked[d] = Extent(1);
  Value rows = again(op, inner->getOperand(0), table.getElementType(), type, rewriter);
  Value factors = again(op, tall, scales.getElementType(),
                        tensorType(scales.getElementType(), picked), rewriter);
  Value real = createValue(rewriter, op->getLoc(), "cast", rows, type,
                           rewriter.getNamedAttr("to", rewriter.getI64IntegerAttr(DVT_F32)));
  rewriter.replaceOp(op, createValue(rewriter, op->getLoc(), "mul", {real, factors}, type));
  return success();
}

} // namespace

void addQuantizationRewrites(RewritePatternSet &set) {
  addRewrite(set, "quantize_linear", cancelPair, 2);
  addRewrite(set, "quantize_linear", quantizeBeforeMove);
  addRewrite(set, "mul", recogniseDequantization, 2);
  for (const char *name : {"reshape", "slice", "max_pool"})
    addRewrite(set, name, dequantizeAfterMove);
  addRewrite(set, "gather", gatherBeforeScaling);
  addRewrite(set, "transpose", dequantizeAfterTranspose);
  addRewrite(set, "concat", dequantizeAfterConcat);
}

} // namespace dovetail::graph
