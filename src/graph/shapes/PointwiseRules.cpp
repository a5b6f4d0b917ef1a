// SPDX-License-Identifier: Apache-2.0
//
// Pointwise ops: extents broadcast, the type is the first operand's, bool, or what an attribute
// names. Arithmetic, comparison and selection of small integer tensors is followed symbolically.
#include "graph/shapes/Broadcasts.h"
#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

using Known = std::optional<Extent>;

/// Elements of operand `i` broadcast to `shape`, which has static extents.
std::optional<Elements> broadcastElements(const InferContext &c, size_t i, const Shape &shape) {
  std::optional<Elements> elements = c.elements(i);
  std::optional<int64_t> count = elementCount(shape).staticValue();
  if (!elements || !count || size_t(*count) > kMostTrackedElements)
    return std::nullopt;
  const Shape &own = c.shape(i);
  size_t offset = shape.size() - own.size();
  Elements result;
  for (int64_t flat = 0; flat < *count; ++flat) {
    int64_t rest = flat, source = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      int64_t index = rest % shape[d].value();
      rest /= shape[d].value();
      if (d < offset)
        continue;
      int64_t extent = own[d - offset].value();
      source += extent == 1 ? 0 : index * stride;
      stride *= extent;
    }
    result.push_back((*elements)[source]);
  }
  return result;
}

Known asNumber(bool value) { return Extent(int64_t(value)); }

Known divide(const InferContext &c, const Extent &a, const Extent &b) {
  if (b == Extent(0))
    return std::nullopt;
  if (b == Extent(-1))
    return Extent(0) - a;
  if (std::optional<Extent> exact = Extent::exactDiv(a, b))
    return exact;
  // ONNX division of integers truncates, so floor is right only where no sign differs.
  if (c.range(a).min >= 0 && c.range(b).min >= 1)
    return Extent::floorDiv(a, b);
  if (a.isStatic() && b.isStatic())
    return Extent(a.value() / b.value());
  return std::nullopt;
}

Known remainder(const InferContext &c, const Extent &a, const Extent &b) {
  if (c.range(b).min >= 1 && (c.integer("fmod", 0) == 0 || c.range(a).min >= 0))
    return Extent::mod(a, b);
  return std::nullopt;
}

Known less(const InferContext &c, const Extent &a, const Extent &b) {
  if (a.isStatic() && b.isStatic())
    return asNumber(a.value() < b.value());
  if (c.surelyAtMost(a + 1, b))
    return asNumber(true);
  return c.surelyAtMost(b, a) ? asNumber(false) : Known();
}

Known equal(const InferContext &c, const Extent &a, const Extent &b) {
  if (a == b)
    return asNumber(true);
  if (a.isStatic() && b.isStatic())
    return asNumber(false);
  return c.surelyAtMost(a + 1, b) || c.surelyAtMost(b + 1, a) ? asNumber(false) : Known();
}

Known negate(const Known &a) { return a ? Known(Extent(1) - *a) : Known(); }

Known conjunction(const Known &a, const Known &b) {
  if ((a && *a == Extent(0)) || (b && *b == Extent(0)))
    return asNumber(false);
  return a && b && *a == Extent(1) && *b == Extent(1) ? asNumber(true) : Known();
}

Known combine(const InferContext &c, const Known &a, const Known &b) {
  std::string_view op = c.info.name;
  if (op == "and")
    return conjunction(a, b);
  if (op == "or")
    return negate(conjunction(negate(a), negate(b)));
  if (!a || !b)
    return std::nullopt;
  if (op == "add" || op == "sum")
    return *a + *b;
  if (op == "sub")
    return *a - *b;
  if (op == "mul")
    return *a * *b;
  if (op == "div")
    return divide(c, *a, *b);
  if (op == "mod")
    return remainder(c, *a, *b);
  if (op == "min")
    return c.least(*a, *b);
  if (op == "max")
    return c.most(*a, *b);
  if (op == "equal")
    return equal(c, *a, *b);
  if (op == "less")
    return less(c, *a, *b);
  if (op == "greater")
    return less(c, *b, *a);
  if (op == "less_or_equal")
    return negate(less(c, *b, *a));
  if (op == "greater_or_equal")
    return negate(less(c, *a, *b));
  return std::nullopt;
}

Known transform(const InferContext &c, const Known &a) {
  std::string_view op = c.info.name;
  if (!a)
    return std::nullopt;
  if (op == "neg")
    return Extent(0) - *a;
  if (op == "not")
    return negate(a);
  if (op == "abs")
    return c.range(*a).min >= 0 ? a : a->isStatic() ? Known(Extent(0) - *a) : Known();
  if (op == "sign" && c.range(*a).min >= 1)
    return Extent(1);
  return std::nullopt;
}

/// Elements stay known only where the arithmetic is exact in the type: narrow and unsigned types
/// wrap.
bool isTracked(dvt_type type) { return type == DVT_I64 || type == DVT_I32 || type == DVT_BOOL; }

/// Whether a number beyond the type came out, where the op itself would wrap.
bool isBeyond(dvt_type type, const Extent &element) {
  if (element.isOverflow())
    return true;
  std::optional<int64_t> number = element.staticValue();
  return type == DVT_I32 && number && (*number < INT32_MIN || *number > INT32_MAX);
}

void followElements(InferContext &c, const Shape &shape, dvt_type resultType) {
  if (!isTracked(resultType) || !isTracked(c.type(0)))
    return;
  std::optional<Elements> result = broadcastElements(c, 0, shape);
  if (!result)
    return;
  if (c.operandCount() == 1 && c.info.mostInputs == 1)
    for (Known &element : *result)
      element = transform(c, element);
  for (size_t i = 1; i < c.operandCount(); ++i) {
    std::optional<Elements> other = broadcastElements(c, i, shape);
    if (!other)
      return;
    for (size_t e = 0; e < result->size(); ++e)
      (*result)[e] = combine(c, (*result)[e], (*other)[e]);
  }
  for (Known &element : *result)
    if (element && isBeyond(resultType, *element))
      element.reset();
  c.resultElements(0, std::move(*result));
}

Expected<Shape> broadcastAll(InferContext &c) {
  Shape shape = c.shape(0);
  for (size_t i = 1; i < c.operandCount(); ++i) {
    if (!c.has(i))
      return c.fail("operand {} is absent", i);
    Expected<Shape> joint = c.broadcast(shape, c.shape(i));
    if (!joint)
      return joint;
    shape = std::move(*joint);
  }
  return shape;
}

Status sameTypes(InferContext &c) {
  for (size_t i = 1; i < c.operandCount(); ++i)
    if (c.has(i) && c.type(i) != c.type(0))
      return c.fail("operands 0 and {} have the types {} and {}, expected one type", i,
                    typeName(c.type(0)), typeName(c.type(i)));
  return Status::success();
}

Status unary(InferContext &c) {
  c.result(0, c.type(0), c.shape(0));
  followElements(c, c.shape(0), c.type(0));
  return Status::success();
}

Status toBool(InferContext &c) {
  c.result(0, DVT_BOOL, c.shape(0));
  return Status::success();
}

/// What is known of integers that something is divided by: none is zero.
Status checkDivisors(InferContext &c) {
  if ((c.info.name != "div" && c.info.name != "mod") || !isIntegerType(c.type(1)))
    return Status::success();
  if (std::optional<std::vector<int64_t>> divisors = c.integers(1))
    for (size_t i = 0; i < divisors->size(); ++i)
      if ((*divisors)[i] == 0)
        return c.fail("divides integers by zero, at element {} of operand 1", i);
  return Status::success();
}

Status broadcasting(InferContext &c) {
  if (Status status = sameTypes(c); !status)
    return status;
  if (Status status = checkDivisors(c); !status)
    return status;
  Expected<Shape> shape = broadcastAll(c);
  if (!shape)
    return shape.takeError();
  c.result(0, c.type(0), *shape);
  followElements(c, *shape, c.type(0));
  return Status::success();
}

/// The exponent of Pow may have another type.
Status power(InferContext &c) {
  Expected<Shape> shape = broadcastAll(c);
  if (!shape)
    return shape.takeError();
  c.result(0, c.type(0), *shape);
  return Status::success();
}

Status comparison(InferContext &c) {
  if (Status status = sameTypes(c); !status)
    return status;
  Expected<Shape> shape = broadcastAll(c);
  if (!shape)
    return shape.takeError();
  c.result(0, DVT_BOOL, *shape);
  followElements(c, *shape, DVT_BOOL);
  return Status::success();
}

/// The slope is broadcast to the first operand, not the other way.
Status slope(InferContext &c) {
  if (Status status = needBroadcastTo(c, 1, c.shape(0)); !status)
    return status;
  c.result(0, c.type(0), c.shape(0));
  return Status::success();
}

Status clip(InferContext &c) {
  for (size_t i = 1; i < c.operandCount(); ++i)
    if (c.has(i) && elementCount(c.shape(i)) != Extent(1))
      return c.fail("bound {} has the extents {}, expected one element", i, shapeText(c.shape(i)));
  c.result(0, c.type(0), c.shape(0));
  return Status::success();
}

Status select(InferContext &c) {
  Expected<Shape> shape = broadcastAll(c);
  if (!shape)
    return shape.takeError();
  if (c.type(0) != DVT_BOOL || c.type(1) != c.type(2))
    return c.fail("operands have the types {}, {}, {}; expected bool and twice one type",
                  typeName(c.type(0)), typeName(c.type(1)), typeName(c.type(2)));
  c.result(0, c.type(1), *shape);
  std::optional<Elements> condition = broadcastElements(c, 0, *shape),
                          yes = broadcastElements(c, 1, *shape),
                          no = broadcastElements(c, 2, *shape);
  if (!condition || (!yes && !no) || !isTracked(c.type(1)))
    return Status::success();
  Elements result(condition->size());
  for (size_t e = 0; e < result.size(); ++e) {
    const Known &chosen = (*condition)[e];
    const Known whenTrue = yes ? (*yes)[e] : Known(), whenFalse = no ? (*no)[e] : Known();
    if (chosen && *chosen == Extent(1))
      result[e] = whenTrue;
    else if (chosen && *chosen == Extent(0))
      result[e] = whenFalse;
    else if (whenTrue && whenFalse && *whenTrue == *whenFalse)
      result[e] = whenTrue;
  }
  c.resultElements(0, std::move(result));
  return Status::success();
}

bool fits(const InferContext &c, const Extent &value, dvt_type type) {
  if (type == DVT_I64)
    return true;
  SymbolRange range = c.range(value);
  // Extents beyond 2^31 are no valid 32-bit shape arithmetic in any model: symbols end there.
  if (type == DVT_I32) // a number is known, and wraps
    return range.min >= INT32_MIN && (!value.isStatic() || range.max <= INT32_MAX);
  return range.min >= 0 && range.max <= 1;
}

Status castTo(InferContext &c, dvt_type type) {
  c.result(0, type, c.shape(0));
  std::optional<Elements> elements = isTracked(type) ? c.elements(0) : std::nullopt;
  if (!elements)
    return Status::success();
  for (Known &element : *elements) {
    if (element && type == DVT_BOOL)
      element = negate(equal(c, *element, 0));
    else if (element && !fits(c, *element, type))
      element.reset();
  }
  c.resultElements(0, std::move(*elements));
  return Status::success();
}

Status cast(InferContext &c) {
  dvt_type type = c.elementType("to", DVT_UNDEFINED);
  if (!typeName(type))
    return c.fail("casts to ONNX element type {}, which is not supported", c.integer("to", 0));
  return castTo(c, type);
}

Status castLike(InferContext &c) { return castTo(c, c.type(1)); }

Status bitCast(InferContext &c) {
  dvt_type type = c.elementType("to", DVT_UNDEFINED);
  if (!typeName(type) || typeBits(type) != typeBits(c.type(0)))
    return c.fail("reinterprets {} as ONNX element type {}, expected a type of the same width",
                  typeName(c.type(0)), c.integer("to", 0));
  c.result(0, type, c.shape(0));
  return Status::success();
}

} // namespace

void addPointwiseRules(ShapeRules &rules) {
  for (const OpInfo &op : allOps())
    if (op.isPointwise())
      rules[op.name] = op.broadcasts ? broadcasting : unary;
  for (const char *name : {"is_nan", "is_inf"})
    rules[name] = toBool;
  for (const char *name : {"equal", "greater", "greater_or_equal", "less", "less_or_equal"})
    rules[name] = comparison;
  rules["pow"] = power;
  rules["p_relu"] = slope;
  rules["clip"] = clip;
  rules["where"] = select;
  rules["cast"] = cast;
  rules["cast_like"] = castLike;
  rules["bit_cast"] = bitCast;
}

} // namespace dovetail::graph
