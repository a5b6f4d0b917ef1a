// SPDX-License-Identifier: Apache-2.0
//
// Scaled-dot-product attention: softmax(scale * Q K^T + mask) V on operands of rank 4, written out
// as products, a transpose and a softmax. The scale may stand at Q, at K, at their product, or be
// shared between them. K comes in transposed; the composite takes it as it lies and the transpose
// moves into the body.
#include "graph/recognize/Pattern.h"
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

struct Scores {
  Value query, transposedKey, mask;
  double scale = 1;
};

/// One value times a number, seen through products with constants.
Value withoutScale(Value value, double &scale) {
  Product product = productOf(value);
  if (product.factors.size() != 1)
    return value;
  scale *= product.number;
  return product.factors[0];
}

std::optional<Scores> readProduct(Value value, Scores scores) {
  Operation *product = definedBy(withoutScale(value, scores.scale), "mat_mul");
  if (!product || !product->hasOneUse())
    return std::nullopt;
  scores.query = withoutScale(product->getOperand(0), scores.scale);
  scores.transposedKey = withoutScale(product->getOperand(1), scores.scale);
  return scores;
}

/// What goes into the softmax.
std::optional<Scores> scoresOf(Value value) {
  if (std::optional<Scores> scores = readProduct(value, {}))
    return scores;
  Operation *add = definedBy(value, "add");
  if (!add || !add->hasOneUse())
    return std::nullopt;
  for (unsigned i : {0u, 1u}) {
    if (add->getOperand(i).getType() != value.getType())
      continue;
    if (std::optional<Scores> scores = readProduct(add->getOperand(i), {})) {
      scores->mask = add->getOperand(1 - i);
      return scores;
    }
  }
  return std::nullopt;
}

bool isRank4(Value value) { return typeOf(value) && typeOf(value).getRank() == 4; }

/// The mask must be broadcast in all but its last dimension only.
bool isMask(Value mask, const Extent &keys, Type element) {
  RankedTensorType type = typeOf(mask);
  return type && type.getElementType() == element && type.getRank() >= 2 && type.getRank() <= 4 &&
         extentsOf(type).back() == keys;
}

/// Batch and heads of query, key and value agree, so that nothing is broadcast between them.
bool haveSameHeads(Value query, Value key, Value value) {
  Shape q = extentsOf(typeOf(query)), k = extentsOf(typeOf(key)), v = extentsOf(typeOf(value));
  return q[0] == k[0] && q[0] == v[0] && q[1] == k[1] && q[1] == v[1] && q[3] == k[3] &&
         k[2] == v[2];
}

void buildBody(OpBuilder &builder, Location loc, Block &body, double scale, Type scoresType,
               Type resultType) {
  Value query = body.getArgument(0), key = body.getArgument(1), value = body.getArgument(2);
  Type element = typeOf(query).getElementType();
  if (scale != 1) {
    Value factor = createUniform(builder, loc, element, {}, scale);
    query = createValue(builder, loc, "mul", {query, factor}, query.getType());
  }
  Value transposed = createTranspose(builder, loc, key, {0, 1, 3, 2});
  Value scores = createValue(builder, loc, "mat_mul", {query, transposed}, scoresType);
  if (body.getNumArguments() > 3)
    scores = createValue(builder, loc, "add", {scores, body.getArgument(3)}, scoresType);
  NamedAttribute axis = builder.getNamedAttr("axis", builder.getI64IntegerAttr(-1));
  Value weights = createValue(builder, loc, "softmax", scores, scoresType, axis);
  Value result = createValue(builder, loc, "mat_mul", {weights, value}, resultType);
  YieldOp::create(builder, loc, ValueRange(result));
}

/// The scale as query elements see it in the named op: a float, exact in the element type of real
/// models.
bool isUsableScale(double scale) { return scale > 0 && double(float(scale)) > 0; }

} // namespace

Operation *recognizeAttention(Operation *op) {
  if (!isOp(op, "mat_mul") || !isRank4(op->getResult(0)))
    return nullptr;
  Operation *softmax = definedBy(op->getOperand(0), "softmax");
  if (!softmax || !softmax->hasOneUse() || !softmax->getOperand(0).hasOneUse())
    return nullptr;
  int64_t axis = intAttribute(softmax, "axis", -1);
  if (axis != -1 && axis != 3)
    return nullptr;
  std::optional<Scores> scores = scoresOf(softmax->getOperand(0));
  Value value = op->getOperand(1);
  if (!scores || !isUsableScale(scores->scale) || !isRank4(scores->query) ||
      !isRank4(scores->transposedKey) || !isRank4(value))
    return nullptr;
  auto scoresType = cast<RankedTensorType>(softmax->getResult(0).getType());
  Type element = scoresType.getElementType();
  if (!isa<FloatType>(element) ||
      (scores->mask && !isMask(scores->mask, extentsOf(scoresType).back(), element)))
    return nullptr;

  OpBuilder builder(op);
  // Two transposes in a row become one, or none, in simplification.
  Value key = createTranspose(builder, op->getLoc(), scores->transposedKey, {0, 1, 3, 2});
  if (!haveSameHeads(scores->query, key, value)) {
    key.getDefiningOp()->erase();
    return nullptr;
  }
  SmallVector<Value> operands{scores->query, key, value};
  if (scores->mask)
    operands.push_back(scores->mask);
  OperationState state(op->getLoc(), CompositeOp::getOperationName(), operands,
                       op->getResultTypes());
  state.addAttribute("name", builder.getStringAttr("attention"));
  state.addAttribute(
      "attributes",
      attributesOf(builder, "attention",
                   builder.getNamedAttr("scale", builder.getF32FloatAttr(float(scores->scale)))));
  Block &body = state.addRegion()->emplaceBlock();
  for (Value operand : operands)
    body.addArgument(operand.getType(), operand.getLoc());
  OpBuilder inner(op->getContext()); // the body has no parent yet
  inner.setInsertionPointToEnd(&body);
  buildBody(inner, op->getLoc(), body, scores->scale, scoresType, op->getResult(0).getType());
  Operation *composite = builder.create(state);
  op->getResult(0).replaceAllUsesWith(composite->getResult(0));
  op->erase();
  return composite;
}

} // namespace dovetail::graph
