// SPDX-License-Identifier: Apache-2.0
//
// Evaluates ops whose operands are all constants, through the evaluator the caller gives, and
// shares the bytes of constants under views. Results that would be much larger than what they
// replace stay computed at run time, and so do dequantised weights (of two dimensions or more),
// which kernels read in their small form.
#include "mlir/IR/DialectResourceBlobManager.h"

#include "graph/Attributes.h"
#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"
#include "graph/Passes.h"
#include "graph/TensorType.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// As where problems are built: what a kernel may look at when it is made.
constexpr int64_t kMostLiteralElements = 64;

/// Biases and other small things: nothing is won by keeping them quantised.
bool isVector(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type && type.getRank() <= 1;
}

bool isFoldable(Operation *op, const OpInfo &info) {
  if (info.isRandom() || info.dataDependent || info.kind == OpKind::Sequence ||
      info.kind == OpKind::Text || (info.name == "dequantize_linear" && !isVector(op)))
    return false;
  for (Value operand : op->getOperands())
    if (!isAbsent(operand) && !constantOf(operand))
      return false;
  return llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && elementType(tensor) != DVT_UNDEFINED;
  });
}

uint64_t bytesOfType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? bytesOf(elementType(tensor), tensor.getNumElements()) : 0;
}

bool growsTooMuch(Operation *op, uint64_t most) {
  uint64_t before = 0, after = 0;
  for (Value operand : op->getOperands())
    before += bytesOfType(operand.getType());
  for (Type type : op->getResultTypes())
    after += bytesOfType(type);
  return after > before + most;
}

/// A view of a constant is the same bytes under another type.
ElementsAttr viewOf(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  ElementsAttr value = constantOf(op->getOperand(0)).getValue();
  if (value.getElementType() != type.getElementType() ||
      value.getNumElements() != type.getNumElements())
    return {};
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense.reshape(type);
  return {};
}

class Folder {
public:
  Folder(const GraphOptions &options, const Evaluator &evaluator)
      : options(options), evaluator(evaluator) {}

  bool fold(Operation *op, const OpInfo &info) {
    if (!isFoldable(op, info))
      return false;
    OpBuilder builder(op);
    if (info.isView() && op->getNumResults() == 1) {
      ElementsAttr value = viewOf(op);
      if (!value)
        return false;
      replace(builder, op, 0, value);
      op->erase();
      return true;
    }
    if (!evaluator || growsTooMuch(op, options.mostGrowthBytes))
      return false;
    return evaluate(builder, op, info);
  }

private:
  void replace(OpBuilder &builder, Operation *op, unsigned result, ElementsAttr value) {
    auto constant =
        ConstantOp::create(builder, op->getLoc(), op->getResult(result).getType(), value);
    op->getResult(result).replaceAllUsesWith(constant.getResult());
  }

  uint32_t addOperand(Problem &problem, Value operand, std::vector<const void *> &pointers) {
    auto type = cast<RankedTensorType>(operand.getType());
    ConstantBytes bytes = constantBytes(constantOf(operand));
    if (bytes.owned)
      owners.push_back(bytes.owned);
    ProblemValue value;
    value.type = elementType(type);
    value.extents = extentsOf(type);
    value.constant = true;
    auto index = uint32_t(problem.values.size());
    bool small = type.getNumElements() <= 1 ||
                 (isIntegerType(value.type) && type.getNumElements() <= kMostLiteralElements);
    if (small) {
      const auto *first = static_cast<const uint8_t *>(bytes.data);
      value.isLiteral = true;
      value.literal.assign(first, first + bytes.size);
    } else {
      problem.inputs.push_back(index);
      pointers.push_back(bytes.data);
    }
    problem.values.push_back(std::move(value));
    return index;
  }

  bool evaluate(OpBuilder &builder, Operation *op, const OpInfo &info) {
    // Attributes that are tensors have no place in a problem.
    for (NamedAttribute attribute : op->getAttrs())
      if (isa<ElementsAttr>(attribute.getValue()) && !isa<DenseArrayAttr>(attribute.getValue()))
        return false;
    owners.clear();
    Problem problem;
    std::vector<const void *> pointers;
    ProblemOp entry;
    entry.name = std::string(info.name);
    entry.version = info.version;
    entry.attributes = plainAttributes(op->getAttrDictionary());
    for (Value operand : op->getOperands())
      entry.inputs.push_back(isAbsent(operand) ? kNoValue : addOperand(problem, operand, pointers));
    while (!entry.inputs.empty() && entry.inputs.back() == kNoValue)
      entry.inputs.pop_back();
    for (Type type : op->getResultTypes()) {
      ProblemValue value;
      value.type = elementType(cast<RankedTensorType>(type));
      value.extents = extentsOf(cast<RankedTensorType>(type));
      entry.outputs.push_back(uint32_t(problem.values.size()));
      problem.outputs.push_back(uint32_t(problem.values.size()));
      problem.values.push_back(std::move(value));
    }
    problem.ops.push_back(std::move(entry));
    problem.canonicalize();
    auto results = evaluator(problem, pointers);
    // An op that cannot be evaluated now is computed at run time.
    if (!results || results->size() != op->getNumResults())
      return false;
    for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
      if ((*results)[i].size() != bytesOfType(type))
        return false;
    for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
      replace(builder, op, i,
              elementsAttribute(cast<RankedTensorType>(type), std::move((*results)[i]), "folded"));
    op->erase();
    return true;
  }

  const GraphOptions &options;
  const Evaluator &evaluator;
  std::vector<std::shared_ptr<const void>> owners;
};

} // namespace

Expected<bool> foldConstants(ModuleOp module, const GraphOptions &options,
                             const Evaluator &evaluator) {
  Folder folder(options, evaluator);
  std::vector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (infoOf(op))
      ops.push_back(op);
  });
  bool changed = false;
  for (Operation *op : ops)
    changed |= folder.fold(op, *infoOf(op));
  return changed;
}

} // namespace dovetail::graph
