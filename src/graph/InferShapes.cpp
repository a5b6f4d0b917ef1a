// SPDX-License-Identifier: Apache-2.0
//
// Walks @main in order, runs the rule of every op and writes the types it states. Bodies of
// composites are walked with the operands' facts, and give the composite's results theirs; bodies
// of conditionals are joined, those of loops walked until what they carry is the same before and
// after an iteration.
#include "graph/InferShapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

#include "graph/Attributes.h"
#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "graph/shapes/BodyShapes.h"
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
      else if (auto loop = dyn_cast<LoopOp>(op))
        status = visitLoop(loop);
      else if (auto scan = dyn_cast<ScanOp>(op))
        status = visitScan(scan);
      else if (isa<NoneOp, RefuseOp>(op))
        for (OpResult result : op.getResults())
          facts[result] = typeFacts(result);
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
    for (unsigned branch : {0u, 1u})
      if (Status status = visitBody(*conditional, branch); !status)
        return status;
    std::set<std::string> outside = symbolsOutside(conditional);
    for (auto [from, to] : {std::pair(&yes, &no), std::pair(&no, &yes)})
      likeOther(*from->getTerminator(), *to->getTerminator(), outside);
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
          shape[d] = open(result, d, "if");
      setShape(result, shape, a.getElementType());
    }
    return Status::success();
  }

  /// A branch that is refused gives what the other one does; of extents that only that one knows it
  /// says nothing.
  void likeOther(Operation &other, Operation &yield, const std::set<std::string> &outside) {
    for (auto [value, refused] : llvm::zip(other.getOperands(), yield.getOperands())) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || !refused.getDefiningOp<RefuseOp>() || value.getDefiningOp<RefuseOp>())
        continue;
      setShape(refused, knownOutside(extentsOf(type), outside), type.getElementType());
    }
  }

  /// Visits a body of control flow. What its extents must fulfil holds only where it runs, and
  /// stands with `op`.
  Status visitBody(Operation &op, unsigned region) {
    std::vector<Requirement> around = std::move(requirements);
    requirements.clear();
    Status status = visit(op.getRegion(region).front());
    if (status)
      setRequirements(&op, requirements, region);
    requirements = std::move(around);
    return status;
  }

  void setShape(Value value, const Shape &shape, Type element) {
    value.setType(tensorType(element, shape));
    facts[value] = typeFacts(value);
  }
  static Shape shapeOf(Value value) { return extentsOf(cast<RankedTensorType>(value.getType())); }
  static Type elementOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType();
  }

  /// The symbol that the value has for an extent already, or a new one.
  Extent open(Value value, size_t dimension, const char *stem) {
    auto before = dyn_cast<RankedTensorType>(value.getType());
    if (before && dimension < size_t(before.getRank()) && hasReadableExtents(before) &&
        before.isDynamicDim(dimension))
      return extentsOf(before)[dimension];
    return newSymbol(stem, 0);
  }

  /// What a body hands from iteration to iteration: `count` operands, arguments, yielded values and
  /// results, from the given ones on.
  struct Carried {
    unsigned operand, argument, yielded, count;
  };

  /// Gives arguments the operands' extents, but for those that are known to change, and visits the
  /// body until no other ones change.
  Status settle(Operation &op, const Carried &carried, const std::set<std::string> &outside) {
    Block &body = op.getRegion(0).front();
    auto fail = [&](unsigned i, const char *what) {
      return badInput("node '{}' ({}): the value carried as input {} of the body has another {} "
                      "after an iteration, which is not supported",
                      nodeName(&op).str(), opName(op), carried.argument + i, what);
    };
    for (unsigned i = 0; i < carried.count; ++i) {
      BlockArgument argument = body.getArgument(carried.argument + i);
      Shape shape = shapeOf(op.getOperand(carried.operand + i)), before = shapeOf(argument);
      if (before.size() != shape.size())
        return fail(i, "number of dimensions");
      for (size_t d = 0; d < shape.size(); ++d)
        if (isOwn(before[d], outside))
          shape[d] = before[d];
      setShape(argument, shape, elementOf(argument));
    }
    for (bool changed = true; changed;) {
      if (Status status = visitBody(op, 0); !status)
        return status;
      changed = false;
      for (unsigned i = 0; i < carried.count; ++i) {
        BlockArgument argument = body.getArgument(carried.argument + i);
        Value yielded = body.getTerminator()->getOperand(carried.yielded + i);
        Shape shape = shapeOf(argument), after = shapeOf(yielded);
        if (elementOf(argument) != elementOf(yielded))
          return fail(i, "type");
        if (shape.size() != after.size())
          return fail(i, "number of dimensions");
        // An extent that is a symbol of the body's own takes any value already.
        for (size_t d = 0; d < shape.size(); ++d)
          if (isOwn(shape[d], outside))
            after[d] = shape[d];
        if (generalize(shape, after, [&](size_t) { return newSymbol("carried", 0); })) {
          setShape(argument, shape, elementOf(argument));
          changed = true;
        }
      }
    }
    for (unsigned i = 0; i < carried.count; ++i) {
      Value operand = op.getOperand(carried.operand + i), result = op.getResult(i);
      Shape shape =
          afterIterations(shapeOf(operand), shapeOf(body.getArgument(carried.argument + i)),
                          [&](size_t d) { return open(result, d, "carried"); });
      setShape(result, shape, elementOf(operand));
    }
    return Status::success();
  }

  static bool isOwn(const Extent &extent, const std::set<std::string> &outside) {
    std::vector<std::string> names =
        extent.isStatic() ? std::vector<std::string>() : extent.symbols();
    return names.size() == 1 && extent == Extent::symbol(names[0]) && !outside.contains(names[0]);
  }
  /// Whether all that goes into a body, or around it, are tensors of known rank.
  static bool isWellFormed(Operation &op, unsigned yielded) {
    Block &body = op.getRegion(0).front();
    auto isTensor = [](Type type) { return isa<RankedTensorType, NoneType>(type); };
    return body.getTerminator()->getNumOperands() == yielded &&
           llvm::all_of(op.getOperandTypes(), isTensor) &&
           llvm::all_of(body.getArgumentTypes(),
                        [](Type type) { return isa<RankedTensorType>(type); });
  }
  static std::string opName(Operation &op) { return isa<LoopOp>(op) ? "Loop" : "Scan"; }

  /// The one element of an integer or bool tensor where it is known.
  std::optional<Extent> knownElement(Value value) {
    auto known = facts.find(value);
    if (known == facts.end())
      return std::nullopt;
    InferContext reader(*findOp("identity"), "", AttributeMap(), {known->second}, 1, ranges);
    std::optional<Elements> elements = reader.elements(0);
    return elements && elements->size() == 1 ? elements->front() : std::nullopt;
  }

  Status visitLoop(LoopOp loop) {
    Block &body = loop.getBody().front();
    unsigned carried = std::max(loop.getNumOperands(), 2u) - 2;
    if (loop.getNumOperands() < 2 || body.getNumArguments() != 2 + carried ||
        loop.getNumResults() < carried || !isWellFormed(*loop, 1 + loop.getNumResults()))
      return badInput("node '{}' (Loop): its body does not fit its operands and results",
                      nodeName(loop).str());
    std::set<std::string> outside = symbolsOutside(loop);
    facts[body.getArgument(0)] = typeFacts(body.getArgument(0));
    // No iteration begins without its condition.
    facts[body.getArgument(1)] = typeFacts(body.getArgument(1));
    facts[body.getArgument(1)].elements = Elements{Extent(1)};
    if (Status status = settle(*loop, {2, 2, 1, carried}, outside); !status)
      return status;
    Operation *yield = body.getTerminator();
    auto isTrue = [&](Value value) { return isAbsent(value) || knownElement(value) == Extent(1); };
    Value trips = loop.getOperand(0);
    std::optional<Extent> length;
    if (!isAbsent(trips) && isTrue(loop.getOperand(1)) && isTrue(yield->getOperand(0)))
      length = knownElement(trips);
    if (length && length->staticValue().value_or(0) < 0)
      length = Extent(0);
    // A trip count that is an extent itself is never negative; others might be.
    if (length && !length->isStatic() && length->range(ranges).min < 0)
      length = std::nullopt;
    for (unsigned i = carried; i < loop.getNumResults(); ++i) {
      Value element = yield->getOperand(i + 1), result = loop.getResult(i);
      if (!length)
        length = open(result, 0, "iterations");
      setShape(result,
               stacked(shapeOf(element), *length, 0, outside,
                       [&](size_t d) { return open(result, d, "stacked"); }),
               elementOf(element));
    }
    return Status::success();
  }

  Status visitScan(ScanOp scan) {
    Block &body = scan.getBody().front();
    ArrayRef<int64_t> axes = intsAttribute(scan, "scan_input_axes"),
                      stackedAxes = intsAttribute(scan, "scan_output_axes");
    unsigned carried = scan.getNumOperands() - unsigned(axes.size());
    if (axes.size() > scan.getNumOperands() || body.getNumArguments() != scan.getNumOperands() ||
        scan.getNumResults() != carried + stackedAxes.size() ||
        !isWellFormed(*scan, scan.getNumResults()))
      return badInput("node '{}' (Scan): its body does not fit its operands and results",
                      nodeName(scan).str());
    std::set<std::string> outside = symbolsOutside(scan);
    std::optional<Extent> length;
    for (unsigned i = 0; i < axes.size(); ++i) {
      Value operand = scan.getOperand(carried + i);
      Shape whole = shapeOf(operand);
      if (axes[i] < 0 || size_t(axes[i]) >= whole.size())
        return badInput("node '{}' (Scan): input {} of rank {} has no axis {}",
                        nodeName(scan).str(), carried + i, whole.size(), axes[i]);
      const Extent &mine = whole[size_t(axes[i])];
      if (length && length->isStatic() && mine.isStatic() && *length != mine)
        return badInput("node '{}' (Scan): it goes through {} elements of one input and {} of "
                        "another; both must be as many",
                        nodeName(scan).str(), length->text(), mine.text());
      if (!length || (!length->isStatic() && mine.isStatic()))
        length = mine;
      setShape(body.getArgument(carried + i), elementsAlong(whole, size_t(axes[i])),
               elementOf(operand));
    }
    if (Status status = settle(*scan, {0, 0, 0, carried}, outside); !status)
      return status;
    for (unsigned i = carried; i < scan.getNumResults(); ++i) {
      Value element = body.getTerminator()->getOperand(i), result = scan.getResult(i);
      setShape(result,
               stacked(shapeOf(element), *length, size_t(stackedAxes[i - carried]), outside,
                       [&](size_t d) { return open(result, d, "stacked"); }),
               elementOf(element));
    }
    return Status::success();
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
