// SPDX-License-Identifier: Apache-2.0
//
// Scaled-dot-product attention: softmax(scale * Q K^T + mask) V on operands of rank 4, written out
// as products, a transpose and a softmax. The scale may stand at Q, at K, at their product, or be
// shared between them. K comes in transposed; the composite takes it as it lies and the transpose
// moves into the body. Heads of K and V that are repeated for groups of queries are taken as they
// are before that, since the op shares them itself; the body repeats them.
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
  // A constant that makes the value larger is more than a scale.
  if (product.factors.size() != 1 || product.factors[0].getType() != value.getType())
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

/// For how many heads of queries each of keys and values serves; nothing where they do not fit.
std::optional<int64_t> groupSize(Value query, Value key, Value value) {
  Shape q = extentsOf(typeOf(query)), k = extentsOf(typeOf(key)), v = extentsOf(typeOf(value));
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || q[3] != k[3] || k[2] != v[2])
    return std::nullopt;
  if (q[1] == k[1])
    return 1;
  std::optional<int64_t> queries = q[1].staticValue(), keys = k[1].staticValue();
  if (!queries || !keys || *keys < 1 || *queries % *keys)
    return std::nullopt;
  return *queries / *keys;
}

/// [b,h,l,d] of a value [b,h*g,l,d] that shows each head g times in a row; null where it is none.
Value beforeRepeat(PatternRewriter &builder, Value value) {
  Operation *view = definedBy(value, "reshape");
  Operation *expand = view ? definedBy(view->getOperand(0), "expand") : nullptr;
  RankedTensorType from = expand ? typeOf(expand->getOperand(0)) : RankedTensorType();
  if (!from || from.getRank() != 5 || typeOf(expand->getResult(0)).getRank() != 5)
    return {};
  Shape one = extentsOf(from), many = extentsOf(typeOf(expand->getResult(0))),
        joined = extentsOf(typeOf(value));
  for (size_t d : {0, 1, 3, 4})
    if (one[d] != many[d])
      return {};
  if (one[2] != Extent(1) || joined != Shape{many[0], many[1] * many[2], many[3], many[4]})
    return {};
  return createReshape(builder, value.getLoc(), expand->getOperand(0),
                       tensorType(from.getElementType(), {one[0], one[1], one[3], one[4]}));
}

/// [b,h,l,d] as [b,h*groups,l,d].
Value repeatHeads(PatternRewriter &builder, Location loc, Value value, int64_t groups) {
  Shape from = extentsOf(typeOf(value));
  Type element = typeOf(value).getElementType();
  auto shaped = [&](Shape shape) { return tensorType(element, shape); };
  Value one = createReshape(builder, loc, value, shaped({from[0], from[1], 1, from[2], from[3]}));
  auto numbers = RankedTensorType::get({5}, builder.getI64Type());
  SmallVector<int64_t> shape{1, 1, groups, 1, 1};
  Value wanted = ConstantOp::create(builder, loc, numbers,
                                    DenseElementsAttr::get(numbers, ArrayRef<int64_t>(shape)));
  Value many = createValue(builder, loc, "expand", {one, wanted},
                           shaped({from[0], from[1], groups, from[2], from[3]}));
  return createReshape(builder, loc, many, shaped({from[0], from[1] * groups, from[2], from[3]}));
}

void buildBody(PatternRewriter &builder, Location loc, Block &body, double scale, int64_t groups,
               Type scoresType, Type resultType) {
  Value query = body.getArgument(0), key = body.getArgument(1), value = body.getArgument(2);
  Type element = typeOf(query).getElementType();
  if (groups > 1) {
    key = repeatHeads(builder, loc, key, groups);
    value = repeatHeads(builder, loc, value, groups);
  }
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

  PatternRewriter builder(op->getContext());
  builder.setInsertionPoint(op);
  const SmallVector<int64_t> turn{0, 1, 3, 2};
  Operation *turned = definedBy(scores->transposedKey, "transpose");
  // Two transposes in a row become one, or none, in simplification.
  Value key = turned && permOf(turned) == turn
                  ? turned->getOperand(0)
                  : createTranspose(builder, op->getLoc(), scores->transposedKey, turn);
  Value fewKeys = beforeRepeat(builder, key), fewValues = beforeRepeat(builder, value);
  std::optional<int64_t> groups;
  if (fewKeys && fewValues && (groups = groupSize(scores->query, fewKeys, fewValues))) {
    key = fewKeys;
    value = fewValues;
  } else if (!(groups = groupSize(scores->query, key, value)) || *groups != 1) {
    return nullptr; // what was made here has no users, and goes in simplification
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
  PatternRewriter inner(op->getContext()); // the body has no parent yet
  inner.setInsertionPointToEnd(&body);
  buildBody(inner, op->getLoc(), body, scores->scale, *groups, scoresType,
            op->getResult(0).getType());
  Operation *composite = builder.create(state);
  op->getResult(0).replaceAllUsesWith(composite->getResult(0));
  op->erase();
  return composite;
}

} // namespace dovetail::graph
