// SPDX-License-Identifier: Apache-2.0
//
// What rewrites share: replacing a value and building views.
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

class NamedRewrite : public RewritePattern {
public:
  NamedRewrite(MLIRContext *context, StringRef name, Rewrite rewrite, unsigned benefit)
      : RewritePattern(name, benefit, context), rewrite(rewrite) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    return rewrite(op, rewriter);
  }

private:
  Rewrite rewrite;
};

} // namespace

void addRewrite(RewritePatternSet &set, StringRef name, Rewrite rewrite, unsigned benefit) {
  set.add<NamedRewrite>(set.getContext(), ("dvt." + name).str(), rewrite, benefit);
}

LogicalResult replaceWith(Operation *op, Value value, PatternRewriter &rewriter) {
  if (op->getResult(0).getType() != value.getType())
    return failure();
  rewriter.replaceOp(op, value);
  return success();
}

RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

Value createShape(PatternRewriter &rewriter, Location loc, Value input, RankedTensorType type) {
  Shape from = extentsOf(typeOf(input)), to = extentsOf(type);
  SmallVector<int64_t> numbers;
  bool open = false;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d].isStatic() && to[d] != Extent(0)) {
      numbers.push_back(to[d].value());
    } else if (d < from.size() && from[d] == to[d]) {
      numbers.push_back(0);
    } else if (!open && !to[d].isStatic()) {
      open = true;
      numbers.push_back(-1);
    } else {
      return {};
    }
  }
  return createIntegers(rewriter, loc, numbers);
}

Value createReshape(PatternRewriter &rewriter, Location loc, Value input, RankedTensorType type) {
  Value shape = createShape(rewriter, loc, input, type);
  return shape ? createValue(rewriter, loc, "reshape", {input, shape}, type) : Value();
}

Value createTranspose(OpBuilder &builder, Location loc, Value input, ArrayRef<int64_t> perm) {
  Shape from = extentsOf(typeOf(input)), to;
  for (int64_t d : perm)
    to.push_back(from[d]);
  return createValue(builder, loc, "transpose", input,
                     tensorType(typeOf(input).getElementType(), to),
                     builder.getNamedAttr("perm", builder.getDenseI64ArrayAttr(perm)));
}

Value createValue(OpBuilder &builder, Location loc, StringRef name, ValueRange operands, Type type,
                  ArrayRef<NamedAttribute> attributes) {
  return createOp(builder, loc, name, operands, type, attributes)->getResult(0);
}

SmallVector<int64_t> permOf(Operation *transpose) {
  ArrayRef<int64_t> perm = intsAttribute(transpose, "perm");
  if (transpose->hasAttr("perm"))
    return SmallVector<int64_t>(perm);
  SmallVector<int64_t> reversed;
  for (int64_t d = typeOf(transpose->getOperand(0)).getRank(); d-- > 0;)
    reversed.push_back(d);
  return reversed;
}

} // namespace dovetail::graph
