// SPDX-License-Identifier: Apache-2.0
//
// Walks @main in order, runs the rule of every op and writes the types it states. Bodies of
// composites are walked with the operands' facts, and give the composite's results theirs; bodies
// of conditionals are joined.
#include "graph/InferShapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

#include "graph/Attributes.h"
#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "graph/shapes/ShapeRules.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

class Inference {
public:
  explicit Inference(ModuleOp module) : module(module), ranges(symbolRanges(module)) {
    for (std::string &symbol : symbolsOf(module))
      symbols.insert(std::move(symbol));
  }

  Expected<GraphFacts> run() {
    auto function = module.lookupSymbol<func::FuncOp>("main");
    if (!function || function.isExternal())
      return badInput("the module has no function @main with a body");
    Block &block = function.getBody().front();
    for (BlockArgument argument : block.getArguments())
      if (Status status = declareArgument(argument); !status)
        return status.takeError();
    if (Status status = visit(block); !status)
      return status.takeError();
    function.setType(FunctionType::get(module.getContext(), block.getArgumentTypes(),
                                       block.getTerminator()->getOperandTypes()));
    setSymbolRanges(module, ranges);
    setRequirements(module, requirements);
    return std::move(facts);
  }

private:
  ValueFacts typeFacts(Value value) {
    ValueFacts result;
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      result.type = elementType(type);
      result.shape = extentsOf(type);
    } else {
      result.absent = isa<NoneType>(value.getType());
    }
    return result;
  }

  Status declareArgument(BlockArgument argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || elementType(type) == DVT_UNDEFINED)
      return badInput("argument {} of @main has a type that is no tensor of the graph",
                      argument.getArgNumber());
    if (!hasReadableExtents(type)) {
      Shape shape;
      auto encoding = dyn_cast_or_null<ArrayAttr>(type.getEncoding());
      for (unsigned d = 0; d < type.getRank(); ++d) {
        auto text =
            encoding && d < encoding.size() ? dyn_cast<StringAttr>(encoding[d]) : StringAttr();
        Expected<Extent> known =
            text ? Extent::parse(text.getValue()) : Expected<Extent>(badInput("no text"));
        if (!type.isDynamicDim(d))
          shape.push_back(type.getDimSize(d));
        else
          shape.push_back(known ? *known
                                : newSymbol("arg" + std::to_string(argument.getArgNumber()), 1));
      }
      argument.setType(tensorType(type.getElementType(), shape));
    }
    facts[argument] = typeFacts(argument);
    return Status::success();
  }

  Extent newSymbol(const std::string &stem, int64_t least) {
    for (unsigned i = 0;; ++i) {
      std::string name = stem + "." + std::to_string(i);
      if (!symbols.insert(name).second)
        continue;
      ranges[name] = SymbolRange{least, SymbolRange().max, 1};
      return Extent::symbol(name);
    }
  }

  Status visit(Block &block) {
    for (Operation &op : block) {
      Status status = Status::success();
      if (const OpInfo *info = infoOf(&op))
        status = visitTensorOp(op, *info);
      else if (auto constant = dyn_cast<ConstantOp>(op))
        facts[constant.getResult()] = constantFacts(constant.getValue());
      else if (auto composite = dyn_cast<CompositeOp>(op))
        status = visitComposite(composite);
      else if (auto conditional = dyn_cast<IfOp>(op))
        status = visitIf(conditional);
      else if (isa<NoneOp>(op))
        facts[op.getResult(0)] = typeFacts(op.getResult(0));
      else if (!op.hasTrait<OpTrait::IsTerminator>())
        status = badInput("node '{}': {} is not supported yet", nodeName(&op).str(),
                          op.getName().getStringRef().str());
      if (!status)
        return status;
    }
    return Status::success();
  }

  ValueFacts constantFacts(ElementsAttr value) {
    ValueFacts result;
    result.type = elementType(value.getElementType());
    for (int64_t extent : value.getShapedType().getShape())
      result.shape.push_back(extent);
    ConstantBytes bytes = rawConstantBytes(value);
    result.constant = true;
    result.uniform = bytes.uniform;
    result.bytes = {static_cast<const char *>(bytes.data), size_t(bytes.size)};
    if (!bytes.owned)
      return result;
    // Repacked bytes die here; keep what rules use.
    InferContext reader(*findOp("identity"), "", AttributeMap(), {result}, 1, ranges);
    result.elements = reader.elements(0);
    result.constant = false;
    result.bytes = {};
    return result;
  }

  Status visitTensorOp(Operation &op, const OpInfo &info) {
    std::vector<ValueFacts> operands;
    for (Value operand : op.getOperands()) {
      auto known = facts.find(operand);
      operands.push_back(known == facts.end() ? typeFacts(operand) : known->second);
    }
    // The one attribute whose type decides a result's type.
    if (auto value = op.getAttrOfType<ElementsAttr>("value");
        value && info.name == "constant_of_shape")
      operands.push_back(constantFacts(value));
    AttributeMap attributes = plainAttributes(op.getAttrDictionary());
    InferContext context(info, nodeName(&op).str(), attributes, std::move(operands),
                         op.getNumResults(), ranges);
    context.freshSymbol = [&](size_t result, size_t dimension, int64_t least) {
      auto before = dyn_cast<RankedTensorType>(op.getResult(result).getType());
      if (before && dimension < size_t(before.getRank()) && hasReadableExtents(before))
        return extentsOf(before)[dimension];
      return newSymbol(std::string(info.name), least);
    };
    if (Status status = graph::inferShapes(context); !status)
      return status;
    // A branch may state what holds only where it is taken.
    if (!op.getParentOfType<IfOp>())
      for (Requirement &requirement : context.takeRequirements())
        if (llvm::find(requirements, requirement) == requirements.end())
          requirements.push_back(std::move(requirement));
    for (auto [result, inferred] : llvm::zip(op.getResults(), context.takeResults())) {
      if (isAbsent(result) || inferred.type == DVT_UNDEFINED)
        continue;
      Type element = toElementType(op.getContext(), inferred.type);
      if (!element)
        return context.fail("gives a tensor of {}, which is not supported",
                            typeName(inferred.type));
      result.setType(tensorType(element, inferred.shape));
      facts[result] = std::move(inferred);
    }
    return Status::success();
  }

  void copyFacts(Value from, Value to) {
    auto known = facts.find(from);
    ValueFacts copy = known == facts.end() ? typeFacts(from) : known->second;
    to.setType(from.getType());
    facts[to] = std::move(copy);
  }

  Status visitComposite(CompositeOp composite) {
    Block &body = composite.getBody().front();
    for (auto [operand, argument] : llvm::zip(composite.getOperands(), body.getArguments()))
      copyFacts(operand, argument);
    if (Status status = visit(body); !status)
      return status;
    for (auto [yielded, result] :
         llvm::zip(body.getTerminator()->getOperands(), composite.getResults()))
      copyFacts(yielded, result);
    return Status::success();
  }

  Status visitIf(IfOp conditional) {
    Block &yes = conditional.getThenBranch().front(), &no = conditional.getElseBranch().front();
    for (Block *block : {&yes, &no})
      if (Status status = visit(*block); !status)
        return status;
    for (auto [i, result] : llvm::enumerate(conditional.getResults())) {
      auto a = dyn_cast<RankedTensorType>(yes.getTerminator()->getOperand(i).getType()),
           b = dyn_cast<RankedTensorType>(no.getTerminator()->getOperand(i).getType());
      if (!a || !b || a.getElementType() != b.getElementType() || a.getRank() != b.getRank())
        return badInput(
            "node '{}' (If): result {} has other types in its two branches, which is not "
            "supported",
            nodeName(conditional).str(), i);
      Shape shape = extentsOf(a), other = extentsOf(b);
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] != other[d])
          shape[d] = joined(result, d);
      result.setType(tensorType(a.getElementType(), shape));
      facts[result] = typeFacts(result);
    }
    return Status::success();
  }

  Extent joined(Value result, size_t dimension) {
    auto before = dyn_cast<RankedTensorType>(result.getType());
    if (before && dimension < size_t(before.getRank()) && hasReadableExtents(before) &&
        before.isDynamicDim(dimension))
      return extentsOf(before)[dimension];
    return newSymbol("if", 0);
  }

  ModuleOp module;
  SymbolRanges ranges;
  std::set<std::string> symbols;
  std::vector<Requirement> requirements;
  GraphFacts facts;
};

Type substituted(Type type, const SymbolValues &values) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.hasStaticShape())
    return type;
  Shape shape = extentsOf(tensor);
  for (Extent &extent : shape)
    extent = extent.substitute(values);
  return tensorType(tensor.getElementType(), shape);
}

} // namespace

Expected<GraphFacts> inferShapes(ModuleOp module) { return Inference(module).run(); }

Status setDims(ModuleOp module, const SymbolValues &values) {
  SymbolRanges ranges = symbolRanges(module);
  std::vector<std::string> symbols = symbolsOf(module);
  for (const auto &[name, value] : values) {
    if (!llvm::is_contained(symbols, name))
      return badInput("the model has no dimension '{}'; it has {}", name,
                      symbols.empty() ? "none" : llvm::join(symbols, ", "));
    SymbolRange range = ranges.count(name) ? ranges[name] : SymbolRange();
    if (value < range.min || value > range.max || value % range.divisor)
      return badInput("dimension '{}' cannot be {}: it is a multiple of {} from {} to {}", name,
                      value, range.divisor, range.min, range.max);
    ranges.erase(name);
  }
  module.walk([&](Operation *op) {
    for (OpResult result : op->getResults())
      result.setType(substituted(result.getType(), values));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(substituted(argument.getType(), values));
  });
  setSymbolRanges(module, ranges);
  Expected<GraphFacts> facts = inferShapes(module);
  return facts ? Status::success() : Status(facts.takeError());
}

} // namespace dovetail::graph
