// SPDX-License-Identifier: Apache-2.0
//
// The matching pieces and the wrapping.
#include "graph/recognize/Pattern.h"

#include <cmath>

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// Wrapped patterns are small; what is larger is no pattern.
constexpr size_t kMostOps = 40;

void takeApart(Value value, Value kept, bool isRoot, Product &product) {
  Operation *op = value.getDefiningOp();
  bool inner = op && value != kept && (isRoot || value.hasOneUse());
  if (inner && isOp(op, "mul")) {
    for (Value operand : op->getOperands()) {
      std::optional<double> number = uniformNumber(operand);
      if (number)
        product.number *= *number;
      else
        takeApart(operand, kept, false, product);
    }
    return;
  }
  std::optional<double> divisor =
      inner && isOp(op, "div") ? uniformNumber(op->getOperand(1)) : std::nullopt;
  if (divisor && *divisor != 0) {
    product.number /= *divisor;
    takeApart(op->getOperand(0), kept, false, product);
    return;
  }
  product.factors.push_back(value);
}

/// Ops between `operands` and `root`, and the constants among them, in the order of the block.
std::optional<std::vector<Operation *>> opsBetween(Operation *root, ArrayRef<Value> operands) {
  llvm::SetVector<Operation *> found;
  found.insert(root);
  for (size_t i = 0; i < found.size(); ++i) {
    for (Value operand : found[i]->getOperands()) {
      if (llvm::is_contained(operands, operand))
        continue;
      Operation *definition = operand.getDefiningOp();
      if (!definition || definition->getBlock() != root->getBlock() ||
          definition->getNumRegions() || found.size() > kMostOps)
        return std::nullopt;
      found.insert(definition);
    }
  }
  for (Operation *op : found)
    if (op != root && !isa<ConstantOp, NoneOp>(op))
      for (Operation *user : op->getUsers())
        if (!found.contains(user))
          return std::nullopt;
  std::vector<Operation *> ops(found.begin(), found.end());
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

} // namespace

Product productOf(Value root, Value kept) {
  Product product;
  takeApart(root, kept, true, product);
  return product;
}

bool isClose(double a, double b, Type type) {
  double bound = type.isF16() || type.isBF16() ? 4e-3 : 2e-6;
  return std::abs(a - b) <= bound * std::max(std::abs(a), std::abs(b));
}

bool isNumber(Value value, double number) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  std::optional<double> own = type ? uniformNumber(value) : std::nullopt;
  return own && isClose(*own, number, type.getElementType());
}

Value besideNumber(Operation *op, double number) {
  for (unsigned i : {1u, 0u})
    if (isNumber(op->getOperand(i), number))
      return op->getOperand(1 - i);
  return {};
}

Value beside(Operation *op, Value value) {
  if (op->getNumOperands() != 2)
    return {};
  if (op->getOperand(0) == value)
    return op->getOperand(1);
  return op->getOperand(1) == value ? op->getOperand(0) : Value();
}

Operation *onlyUser(Value value) { return value.hasOneUse() ? *value.getUsers().begin() : nullptr; }

std::optional<SmallVector<int64_t>> reducedAxes(Operation *reduction) {
  int64_t rank = cast<RankedTensorType>(reduction->getOperand(0).getType()).getRank();
  SmallVector<int64_t> axes;
  if (reduction->getNumOperands() > 1 && !isAbsent(reduction->getOperand(1))) {
    std::optional<std::vector<int64_t>> given = constantIntegers(reduction->getOperand(1));
    if (!given)
      return std::nullopt;
    for (int64_t axis : *given)
      axes.push_back(axis < 0 ? axis + rank : axis);
  }
  if (axes.empty()) {
    if (intAttribute(reduction, "noop_with_empty_axes", 0))
      return std::nullopt;
    axes.assign(llvm::seq<int64_t>(0, rank).begin(), llvm::seq<int64_t>(0, rank).end());
  }
  llvm::sort(axes);
  return axes;
}

DictionaryAttr attributesOf(Builder &builder, StringRef name, ArrayRef<NamedAttribute> attributes) {
  NamedAttrList list(attributes);
  const OpInfo *info = findOp(name);
  assert(info && "no such op in the table");
  for (const OpAttribute &attribute : info->attributes)
    if (Attribute value = defaultAttribute(builder.getContext(), attribute))
      if (!list.get(attribute.name))
        list.append(attribute.name, value);
  return list.getDictionary(builder.getContext());
}

Operation *wrap(Operation *root, StringRef name, ArrayRef<Value> operands,
                ArrayRef<NamedAttribute> attributes) {
  if (root->getNumResults() != 1)
    return nullptr;
  std::optional<std::vector<Operation *>> ops = opsBetween(root, operands);
  if (!ops)
    return nullptr;
  OpBuilder builder(root);
  OperationState state(root->getLoc(), CompositeOp::getOperationName(), operands,
                       root->getResultTypes());
  state.addAttribute("name", builder.getStringAttr(name));
  state.addAttribute("attributes", attributesOf(builder, name, attributes));
  Block *body = &state.addRegion()->emplaceBlock();
  IRMapping mapping;
  for (Value operand : operands) {
    BlockArgument argument = body->addArgument(operand.getType(), operand.getLoc());
    if (!mapping.contains(operand))
      mapping.map(operand, argument);
  }
  OpBuilder inner(root->getContext()); // the body has no parent yet
  inner.setInsertionPointToEnd(body);
  for (Operation *op : *ops)
    inner.clone(*op, mapping);
  YieldOp::create(inner, root->getLoc(), ValueRange(mapping.lookup(root->getResult(0))));
  Operation *composite = builder.create(state);
  root->getResult(0).replaceAllUsesWith(composite->getResult(0));
  for (Operation *op : llvm::reverse(*ops))
    if (op->use_empty())
      op->erase();
  return composite;
}

} // namespace dovetail::graph
