// SPDX-License-Identifier: Apache-2.0
//
// Attention with a cache of earlier keys and values becomes concatenations and attention without
// one, so that the cache is a value like others: what grows it can be told, and kernels need not
// know of it. A rotary embedding becomes the slices, products and sums that it means; what depends
// on the positions alone is computed once for all layers.
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// Extents of an operand of rank 3 or 4 as [batch, heads, length, size]; nothing where they cannot
/// be told.
std::optional<Shape> headsShape(Value value, int64_t heads) {
  Shape shape = extentsOf(typeOf(value));
  if (shape.size() == 4)
    return shape;
  std::optional<Extent> size =
      heads > 0 && shape.size() == 3 ? Extent::exactDiv(shape[2], heads) : std::nullopt;
  return size ? std::optional(Shape{shape[0], heads, shape[1], *size}) : std::nullopt;
}

Value asHeads(PatternRewriter &rewriter, Value value, const Shape &shape) {
  if (typeOf(value).getRank() == 4)
    return value;
  Value apart = createReshape(
      rewriter, value.getLoc(), value,
      tensorType(typeOf(value).getElementType(), {shape[0], shape[2], shape[1], shape[3]}));
  return createTranspose(rewriter, value.getLoc(), apart, {0, 2, 1, 3});
}

/// Whether `past` and what comes behind it differ in length only.
bool goesBefore(Value past, const Shape &shape) {
  Shape own = extentsOf(typeOf(past));
  return own.size() == 4 && own[0] == shape[0] && own[1] == shape[1] && own[3] == shape[3];
}

Value joined(PatternRewriter &rewriter, Location loc, Value first, Value second, int64_t axis) {
  Shape shape = extentsOf(typeOf(first));
  shape[axis] = shape[axis] + extentsOf(typeOf(second))[axis];
  return createValue(rewriter, loc, "concat", {first, second},
                     tensorType(typeOf(first).getElementType(), shape),
                     rewriter.getNamedAttr("axis", rewriter.getI64IntegerAttr(axis)));
}

bool isUsed(Operation *op, unsigned result) {
  return result < op->getNumResults() && !op->getResult(result).use_empty();
}

bool isGiven(Operation *op, unsigned operand) {
  return operand < op->getNumOperands() && !isAbsent(op->getOperand(operand));
}

/// What a causal mask lets through behind a cache: a query sees the keys up to its own, before
/// which are all those of the cache. bool[queries, keys]
Value seenBehind(PatternRewriter &rewriter, Location loc, Value past, Value keys,
                 const Extent &queries) {
  Type integer = rewriter.getI64Type();
  auto scalar = RankedTensorType::get({}, integer);
  auto length = [&](Value value) {
    NamedAttribute from[] = {rewriter.getNamedAttr("start", rewriter.getI64IntegerAttr(2)),
                             rewriter.getNamedAttr("end", rewriter.getI64IntegerAttr(3))};
    Value one =
        createValue(rewriter, loc, "shape", value, RankedTensorType::get({1}, integer), from);
    return createReshape(rewriter, loc, one, scalar);
  };
  Value before = length(past), total = length(keys);
  Value zero = createUniform(rewriter, loc, integer, {}, 0),
        one = createUniform(rewriter, loc, integer, {}, 1);
  Value end = createValue(rewriter, loc, "sub", {total, before}, scalar);
  Extent all = extentsOf(typeOf(keys))[2];
  Value key = createValue(rewriter, loc, "range", {zero, total, one}, tensorType(integer, {all}));
  Value query =
      createValue(rewriter, loc, "range", {zero, end, one}, tensorType(integer, {queries}));
  query = createReshape(rewriter, loc, query, tensorType(integer, {queries, 1}));
  Value last = createValue(rewriter, loc, "add", {query, before}, query.getType());
  return createValue(rewriter, loc, "less_or_equal", {key, last},
                     tensorType(rewriter.getI1Type(), {queries, all}));
}

LogicalResult takeCacheOut(Operation *op, PatternRewriter &rewriter) {
  bool hasPast = isGiven(op, 4) && isGiven(op, 5);
  if (!hasPast && !isUsed(op, 1) && !isUsed(op, 2))
    return failure();
  // Lengths of keys mean something else with a cache, and so do windows.
  if (isGiven(op, 6) || isGiven(op, 4) != isGiven(op, 5) || isUsed(op, 3) ||
      (hasPast && (intAttribute(op, "left_window_size", -1) >= 0 ||
                   intAttribute(op, "right_window_size", -1) >= 0)))
    return failure();
  // So does the diagonal of a causal mask, which without other masks can be written out.
  bool isCausal = hasPast && intAttribute(op, "is_causal", 0);
  if (isCausal && isGiven(op, 3))
    return failure();
  int64_t heads = intAttribute(op, "kv_num_heads", 0);
  std::optional<Shape> keyShape = headsShape(op->getOperand(1), heads),
                       valueShape = headsShape(op->getOperand(2), heads);
  if (!keyShape || !valueShape ||
      (hasPast &&
       (!goesBefore(op->getOperand(4), *keyShape) || !goesBefore(op->getOperand(5), *valueShape))))
    return failure();
  Value key = asHeads(rewriter, op->getOperand(1), *keyShape),
        value = asHeads(rewriter, op->getOperand(2), *valueShape);
  if (hasPast) {
    key = joined(rewriter, op->getLoc(), op->getOperand(4), key, 2);
    value = joined(rewriter, op->getLoc(), op->getOperand(5), value, 2);
  }
  SmallVector<Value> operands{op->getOperand(0), key, value};
  NamedAttrList attributes(op->getAttrs());
  if (isGiven(op, 3)) {
    operands.push_back(op->getOperand(3));
  } else if (isCausal) {
    Shape query = extentsOf(typeOf(op->getOperand(0)));
    operands.push_back(
        seenBehind(rewriter, op->getLoc(), op->getOperand(4), key, query[query.size() - 2]));
    attributes.set("is_causal", rewriter.getI64IntegerAttr(0));
  }
  Operation *plain = createOp(rewriter, op->getLoc(), "attention", operands,
                              op->getResult(0).getType(), attributes.getAttrs());
  for (auto [result, now] :
       {std::pair(0u, Value(plain->getResult(0))), std::pair(1u, key), std::pair(2u, value)})
    if (result < op->getNumResults())
      rewriter.replaceAllUsesWith(op->getResult(result), now);
  rewriter.eraseOp(op);
  return success();
}

struct Rotation {
  PatternRewriter &rewriter;
  Location loc;

  Value binary(StringRef name, Value a, Value b) {
    return createValue(rewriter, loc, name, {a, b}, a.getType());
  }
  Value slice(Value value, int64_t from, int64_t to) {
    Shape shape = extentsOf(typeOf(value));
    int64_t axis = int64_t(shape.size()) - 1;
    shape.back() = to - from;
    auto number = [&](int64_t n) { return createIntegers(rewriter, loc, {n}); };
    return createValue(rewriter, loc, "slice",
                       {value, number(from), number(to), number(axis), number(1)},
                       tensorType(typeOf(value).getElementType(), shape));
  }
  /// Parts side by side along the last axis.
  Value join(ValueRange parts) {
    Shape shape = extentsOf(typeOf(parts.front()));
    shape.back() = Extent(0);
    for (Value part : parts)
      shape.back() = shape.back() + extentsOf(typeOf(part)).back();
    return createValue(rewriter, loc, "concat", parts,
                       tensorType(typeOf(parts.front()).getElementType(), shape),
                       rewriter.getNamedAttr("axis", rewriter.getI64IntegerAttr(-1)));
  }
};

/// Rows of a cache for the positions, between batch and halves a dimension of 1 for the heads.
Value rowsOf(PatternRewriter &rewriter, Location loc, Value cache, Value positions, bool headsLast,
             const Shape &token, const Extent &half) {
  Type element = typeOf(cache).getElementType();
  if (positions)
    cache = createValue(rewriter, loc, "gather", {cache, positions},
                        tensorType(element, {token[0], token[1], half}),
                        rewriter.getNamedAttr("axis", rewriter.getI64IntegerAttr(0)));
  Shape shape = headsLast ? Shape{token[0], token[1], 1, half} : Shape{token[0], 1, token[1], half};
  return createReshape(rewriter, loc, cache, tensorType(element, shape));
}

LogicalResult lowerRotary(Operation *op, PatternRewriter &rewriter) {
  Value x = op->getOperand(0);
  Shape shape = extentsOf(typeOf(x));
  bool packed = shape.size() == 3;
  int64_t heads = packed ? intAttribute(op, "num_heads", 0) : 1;
  std::optional<Extent> width =
      packed && heads > 0 ? Extent::exactDiv(shape[2], heads) : std::optional(shape.back());
  std::optional<int64_t> size = width ? width->staticValue() : std::nullopt;
  if (!size || heads < 1 || intAttribute(op, "interleaved", 0))
    return failure();
  int64_t rotated = intAttribute(op, "rotary_embedding_dim", 0);
  rotated = rotated ? rotated : *size;
  int64_t half = rotated / 2;
  Value positions = isGiven(op, 3) ? op->getOperand(3) : Value();
  Shape token{shape[0], packed ? shape[1] : shape[2]};
  Shape cache = positions ? Shape{extentsOf(typeOf(op->getOperand(1)))[0], half}
                          : Shape{token[0], token[1], half};
  if (rotated < 2 || rotated > *size || rotated % 2 ||
      extentsOf(typeOf(op->getOperand(1))) != cache ||
      extentsOf(typeOf(op->getOperand(2))) != cache ||
      (positions && extentsOf(typeOf(positions)) != token))
    return failure();
  Type element = typeOf(x).getElementType();
  // Whole heads side by side in the caches, so that both halves meet the same products.
  Value rows[2];
  for (unsigned i : {0u, 1u})
    rows[i] = rowsOf(rewriter, op->getLoc(), op->getOperand(1 + i), positions, packed, token, half);
  Value heads4 = packed ? createReshape(rewriter, op->getLoc(), x,
                                        tensorType(element, {shape[0], shape[1], heads, *size}))
                        : x;
  Rotation r{rewriter, op->getLoc()};
  Value turned = rotated == *size ? heads4 : r.slice(heads4, 0, rotated);
  Value low = r.slice(turned, 0, half), high = r.slice(turned, half, rotated);
  Value minus = createValue(rewriter, op->getLoc(), "neg", high, high.getType());
  Value result = r.binary("add", r.binary("mul", turned, r.join({rows[0], rows[0]})),
                          r.binary("mul", r.join({minus, low}), r.join({rows[1], rows[1]})));
  if (rotated != *size)
    result = r.join({result, r.slice(heads4, rotated, *size)});
  if (packed)
    result = createReshape(rewriter, op->getLoc(), result, typeOf(x));
  rewriter.replaceOp(op, result);
  return success();
}

} // namespace

void addAttentionRewrites(RewritePatternSet &set) {
  addRewrite(set, "attention", takeCacheOut);
  addRewrite(set, "rotary_embedding", lowerRotary);
}

} // namespace dovetail::graph
