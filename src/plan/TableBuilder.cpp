// SPDX-License-Identifier: Apache-2.0
//
// Walks @main and lists its values and ops; composites are entered, so that their bodies' ops stand
// in the same table. Bodies of control flow become tables of their own, built when the one around
// them is done: what that knows as shape data they know, too, and what of it they read only for its
// extents they do not take.
#include "plan/TableBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include "graph/Attributes.h"
#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"
#include "graph/OpRegistry.h"
#include "graph/Passes.h"
#include "graph/TensorType.h"
#include "plan/ShapeData.h"

namespace dovetail::plan {
namespace {

OpRole roleOf(const graph::OpInfo &info) {
  using graph::OpKind;
  switch (info.kind) {
  case OpKind::Pointwise:
    return OpRole::Pointwise;
  case OpKind::Contraction:
  case OpKind::Attention:
    return OpRole::Contraction;
  case OpKind::Reduction:
  case OpKind::Normalization:
  case OpKind::Pool:
    return OpRole::Reduction;
  case OpKind::Movement:
    return OpRole::Movement;
  case OpKind::View:
    return OpRole::View;
  case OpKind::Quantization:
    return info.name == "quantize_linear"     ? OpRole::Quantize
           : info.name == "dequantize_linear" ? OpRole::Dequantize
                                              : OpRole::Other;
  default:
    return OpRole::Other;
  }
}

class Builder {
public:
  Builder(std::shared_ptr<const void> owner, SymbolRanges ranges) : owner(std::move(owner)) {
    table.ranges = std::move(ranges);
  }

  Expected<OpTable> run(mlir::func::FuncOp function) {
    if (auto module = function->getParentOfType<mlir::ModuleOp>())
      table.requirements = graph::requirementsOf(module);
    for (mlir::Type type : function.getArgumentTypes())
      addSymbols(type, given);
    seen = given;
    for (mlir::BlockArgument argument : function.getArguments()) {
      uint32_t number = declare(argument);
      if (auto name = function.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(),
                                                                  graph::kNameAttribute))
        table.values[number].name = name.str();
      table.inputs.push_back(number);
      table.inputNames.push_back(table.values[number].name);
    }
    if (Status status = walk(function.getBody().front()); !status)
      return status.takeError();
    mlir::Operation *end = function.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(end->getOperands())) {
      uint32_t number = numberOf(value);
      std::string name;
      if (auto attribute = function.getResultAttrOfType<mlir::StringAttr>(i, graph::kNameAttribute))
        name = attribute.str();
      if (table.values[number].name.empty() || table.values[number].producer >= 0)
        table.values[number].name = name;
      table.outputs.push_back(number);
      table.outputNames.push_back(name);
    }
    if (auto module = function->getParentOfType<mlir::ModuleOp>())
      addStates(module);
    return finish();
  }

private:
  /// The runtime itself appends to what grows.
  void addStates(mlir::ModuleOp module) {
    for (const graph::GraphState &from : graph::statesOf(module)) {
      PlanState state{from.input, from.output, false, {}};
      state.order.assign(from.order.begin(), from.order.end());
      uint32_t grown = table.outputs[from.output];
      int32_t producer = table.values[grown].producer;
      TableOp *op = from.grows && producer >= 0 ? &table.ops[size_t(producer)] : nullptr;
      // Simplification may have found something better than to append, and two outputs may be one.
      if (op && op->name == "concat" && op->inputs[0] == table.inputs[from.input] &&
          llvm::count(table.outputs, grown) == 1) {
        op->role = OpRole::Control;
        op->control = StepKind::Append;
        state.grows = true;
      }
      table.states.push_back(std::move(state));
    }
  }

  /// Whether a concatenation's operands are known to differ from `value`, what it gives, in nothing
  /// but the first extent. Of elements that were found at run time it is not.
  bool addsOnlyLength(const TableOp &concat, const TableValue &value) const {
    Extent length;
    for (uint32_t operand : concat.inputs) {
      const TableValue &part = table.values[operand];
      if (part.extents.size() != value.extents.size() ||
          !std::equal(part.extents.begin() + 1, part.extents.end(), value.extents.begin() + 1))
        return false;
      length = length + part.extents.front();
    }
    return length == value.extents.front();
  }

  /// What a body of `op` carries from one iteration to the next and only appends to is appended to
  /// by the runtime, in memory with room to spare.
  void addGrowing(mlir::Operation &op) {
    bool isLoop = mlir::isa<graph::LoopOp>(op);
    if (!isLoop && !mlir::isa<graph::ScanOp>(op))
      return;
    const uint32_t firstInput = isLoop ? 2 : 0, firstOutput = isLoop ? 1 : 0;
    const size_t scanned = isLoop ? 0 : graph::intsAttribute(&op, "scan_input_axes").size();
    const size_t carried = op.getNumOperands() - firstInput - scanned;
    for (uint32_t i = 0; i < carried; ++i) {
      uint32_t grown = table.outputs[firstOutput + i];
      const TableValue &value = table.values[grown];
      TableOp *concat = value.producer >= 0 ? &table.ops[size_t(value.producer)] : nullptr;
      if (!concat || concat->name != "concat" || concat->inputs.size() < 2 ||
          concat->inputs[0] != table.inputs[firstInput + i] || value.dataDependent ||
          concat->role == OpRole::Control || typeBits(value.type) < 8 ||
          llvm::count(table.outputs, grown) != 1)
        continue;
      auto axis = concat->attributes.find("axis");
      int64_t along = axis == concat->attributes.end() ? 0 : std::get<int64_t>(axis->second);
      if (along != 0 && along + int64_t(value.extents.size()) != 0)
        continue;
      if (!addsOnlyLength(*concat, value))
        continue;
      concat->role = OpRole::Control;
      concat->control = StepKind::Append;
      table.states.push_back({firstInput + i, firstOutput + i, true, {}});
    }
  }

  /// A control-flow op whose bodies are still to be built.
  struct Pending {
    mlir::Operation *op;
    llvm::SmallVector<mlir::Value> captured;
  };

  /// For the body `region` of `op`, which reads `captured` of the table that `outer` built.
  Expected<OpTable> runBody(mlir::Operation &op, unsigned region,
                            llvm::ArrayRef<mlir::Value> captured, const Builder &outer) {
    given = outer.given;
    seen = table.outerSymbols = graph::symbolsOutside(&op);
    for (mlir::Type type : op.getRegion(region).getArgumentTypes())
      addSymbols(type, seen);
    table.requirements = graph::requirementsOf(&op, region);
    mlir::Block &block = op.getRegion(region).front();
    for (mlir::BlockArgument argument : block.getArguments()) {
      uint32_t number = declare(argument);
      table.values[number].name =
          fmt::format("{}:input {}", graph::nodeName(&op).str(), argument.getArgNumber());
      table.inputs.push_back(number);
    }
    for (mlir::Value value : captured) {
      const TableValue &from = outer.table.values[outer.numbers.lookup(value)];
      uint32_t number = declare(value);
      table.values[number].name = from.name;
      table.values[number].isShapeData = from.isShapeData;
      table.values[number].shapeData = from.shapeData;
      if (!from.isShapeData)
        table.inputs.push_back(number);
    }
    if (Status status = walk(block); !status)
      return status.takeError();
    for (mlir::Value value : block.getTerminator()->getOperands())
      table.outputs.push_back(numberOf(value));
    addGrowing(op);
    for (uint32_t number : table.outputs)
      table.outputNames.push_back(table.values[number].name);
    return finish();
  }

  Expected<OpTable> finish() {
    linkUsers(table);
    findShapeData(table);
    if (Status status = addBodies(); !status)
      return status.takeError();
    for (uint32_t number : table.inputs)
      if (table.inputNames.size() < table.inputs.size())
        table.inputNames.push_back(table.values[number].name);
    return std::move(table);
  }

  Status addBodies() {
    for (TableOp &op : table.ops) {
      if (op.role != OpRole::Control || op.bodies.empty())
        continue;
      Pending body = std::move(pending[op.bodies.front()]);
      size_t first = table.bodies.size(), own = op.inputs.size() - body.captured.size();
      op.bodies.clear();
      for (unsigned region = 0; region < body.op->getNumRegions(); ++region) {
        auto inner = Builder(owner, table.ranges).runBody(*body.op, region, body.captured, *this);
        if (!inner)
          return inner.takeError();
        op.bodies.push_back(static_cast<uint32_t>(table.bodies.size()));
        table.bodies.push_back(std::move(*inner));
      }
      op.inputs.resize(own);
      for (mlir::Value value : body.captured)
        if (uint32_t number = numberOf(value); !table.values[number].isShapeData)
          op.inputs.push_back(number);
      dropUnread(op, own, llvm::MutableArrayRef(table.bodies).drop_front(first));
    }
    dropDeadOps(table);
    return Status::success();
  }

  /// Takes out of the op's captured operands, which begin at `own`, and of the bodies' inputs what
  /// no body reads. What may be needed to learn an extent stays.
  void dropUnread(TableOp &op, size_t own, llvm::MutableArrayRef<OpTable> bodies) {
    for (size_t captured = op.inputs.size() - own; captured-- > 0;) {
      size_t fromEnd = op.inputs.size() - own - captured;
      bool isRead = llvm::any_of(bodies, [&](const OpTable &body) {
        uint32_t number = body.inputs[body.inputs.size() - fromEnd];
        return !body.values[number].users.empty() || llvm::is_contained(body.outputs, number);
      });
      const TableValue &value = table.values[op.inputs[own + captured]];
      bool isGiven = llvm::all_of(value.extents, [&](const Extent &extent) {
        return extent.isStatic() || llvm::all_of(extent.symbols(), [&](const std::string &symbol) {
                 return given.contains(symbol);
               });
      });
      if (isRead || !isGiven)
        continue;
      op.inputs.erase(op.inputs.begin() + static_cast<std::ptrdiff_t>(own + captured));
      for (OpTable &body : bodies) {
        body.inputNames.erase(body.inputNames.end() - static_cast<std::ptrdiff_t>(fromEnd));
        body.inputs.erase(body.inputs.end() - static_cast<std::ptrdiff_t>(fromEnd));
      }
    }
  }

  static void addSymbols(mlir::Type type, std::set<std::string> &symbols) {
    if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type))
      for (const Extent &extent : graph::extentsOf(tensor))
        if (!extent.isStatic())
          for (std::string &symbol : extent.symbols())
            symbols.insert(std::move(symbol));
  }

  /// Whether a type has a symbol for an extent that nothing had before; now something has.
  bool bringsSymbol(mlir::Type type) {
    size_t before = seen.size();
    addSymbols(type, seen);
    return seen.size() > before;
  }

  /// Which results of an op have an extent that nothing had before the op: two of them may share
  /// one, which is found out by the kernel for both.
  std::vector<bool> bringSymbols(mlir::Operation &op) {
    std::set<std::string> found;
    std::vector<bool> brings;
    for (mlir::Type type : op.getResultTypes()) {
      std::set<std::string> own;
      addSymbols(type, own);
      for (const std::string &symbol : own)
        if (seen.insert(symbol).second)
          found.insert(symbol);
      brings.push_back(llvm::any_of(own, [&](const auto &symbol) { return found.count(symbol); }));
    }
    return brings;
  }

  /// Constants of the blocks around a body are constants of the body as soon as it reads them.
  uint32_t numberOf(mlir::Value value) {
    auto known = numbers.find(value);
    if (known != numbers.end())
      return known->second;
    if (auto constant = value.getDefiningOp<graph::ConstantOp>())
      addConstant(constant);
    return numbers.lookup(value);
  }

  uint32_t declare(mlir::Value value) {
    uint32_t number = static_cast<uint32_t>(table.values.size());
    numbers[value] = number;
    TableValue entry;
    if (auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType())) {
      entry.type = graph::elementType(type);
      entry.extents = graph::extentsOf(type);
    } else {
      entry.absent = mlir::isa<mlir::NoneType>(value.getType());
    }
    table.values.push_back(std::move(entry));
    return number;
  }

  Status walk(mlir::Block &block) {
    for (mlir::Operation &op : block) {
      if (op.hasTrait<mlir::OpTrait::IsTerminator>())
        continue;
      if (mlir::isa<graph::NoneOp>(op)) {
        declare(op.getResult(0));
        continue;
      }
      if (auto constant = mlir::dyn_cast<graph::ConstantOp>(op)) {
        if (!numbers.contains(constant.getResult()))
          addConstant(constant);
        continue;
      }
      if (auto composite = mlir::dyn_cast<graph::CompositeOp>(op)) {
        if (Status status = addComposite(composite); !status)
          return status;
        continue;
      }
      if (mlir::isa<graph::IfOp, graph::LoopOp, graph::ScanOp>(op)) {
        addControl(op);
        continue;
      }
      if (auto refusal = mlir::dyn_cast<graph::RefuseOp>(op)) {
        addRefusal(refusal);
        continue;
      }
      const graph::OpInfo *info = graph::infoOf(&op);
      if (!info)
        return badInput("node '{}': the op {} cannot be planned yet; only tensor ops can",
                        graph::nodeName(&op).str(), op.getName().getStringRef().str());
      if (Status status = addOp(op, *info); !status)
        return status;
    }
    return Status::success();
  }

  void addConstant(graph::ConstantOp constant) {
    uint32_t number = declare(constant.getResult());
    TableValue &value = table.values[number];
    value.name = graph::nodeName(constant).str();
    value.constant = true;
    graph::ConstantBytes bytes = graph::constantBytes(constant);
    value.data = bytes.data;
    value.dataBytes = bytes.size;
    value.owner = bytes.owned ? bytes.owned : owner;
  }

  void addRefusal(graph::RefuseOp op) {
    TableOp entry;
    entry.name = "refuse";
    entry.role = OpRole::Control;
    entry.control = StepKind::Refuse;
    entry.node = op.getMessage().str();
    for (mlir::OpResult result : op->getResults()) {
      uint32_t number = declare(result);
      table.values[number].name = fmt::format("refused:{}", result.getResultNumber());
      entry.outputs.push_back(number);
    }
    table.ops.push_back(std::move(entry));
  }

  void addControl(mlir::Operation &op) {
    TableOp entry;
    entry.role = OpRole::Control;
    entry.node = graph::nodeName(&op).str();
    for (mlir::Value operand : op.getOperands())
      entry.inputs.push_back(graph::isAbsent(operand) ? kNoValue : numberOf(operand));
    auto axes = [&](llvm::StringRef names, llvm::StringRef directions) {
      for (auto [axis, direction] :
           llvm::zip(graph::intsAttribute(&op, names), graph::intsAttribute(&op, directions)))
        entry.scanned.push_back({static_cast<uint32_t>(axis), direction != 0});
    };
    if (mlir::isa<graph::IfOp>(op)) {
      entry.name = "if";
      entry.control = StepKind::If;
    } else if (mlir::isa<graph::LoopOp>(op)) {
      entry.name = "loop";
      entry.control = StepKind::Loop;
      entry.carried = op.getNumOperands() - 2;
    } else {
      entry.name = "scan";
      entry.control = StepKind::Scan;
      axes("scan_input_axes", "scan_input_directions");
      entry.carried = op.getNumOperands() - static_cast<uint32_t>(entry.scanned.size());
      axes("scan_output_axes", "scan_output_directions");
    }
    Pending body{&op, {}};
    llvm::SetVector<mlir::Value> captured;
    op.walk([&](mlir::Operation *inner) {
      if (inner == &op)
        return;
      for (mlir::Value value : inner->getOperands())
        if (!op.isAncestor(value.getParentBlock()->getParentOp()) &&
            !value.getDefiningOp<graph::ConstantOp>() && !graph::isAbsent(value))
          captured.insert(value);
    });
    for (mlir::Value value : captured) {
      body.captured.push_back(value);
      entry.inputs.push_back(numberOf(value));
    }
    for (mlir::OpResult result : op.getResults()) {
      uint32_t number = declare(result);
      table.values[number].name = fmt::format("{}:{}", entry.node, result.getResultNumber());
      table.values[number].producer = static_cast<int32_t>(table.ops.size());
      table.values[number].dataDependent = bringsSymbol(result.getType());
      entry.outputs.push_back(number);
    }
    entry.bodies = {static_cast<uint32_t>(pending.size())};
    pending.push_back(std::move(body));
    table.ops.push_back(std::move(entry));
  }

  template <typename Entry> void connect(Entry &entry, mlir::Operation &op) {
    for (mlir::Value operand : op.getOperands())
      entry.inputs.push_back(graph::isAbsent(operand) ? kNoValue : numberOf(operand));
    while (!entry.inputs.empty() && entry.inputs.back() == kNoValue)
      entry.inputs.pop_back();
  }

  Status addOp(mlir::Operation &op, const graph::OpInfo &info) {
    TableOp entry;
    entry.name = std::string(info.name);
    entry.version = info.version;
    entry.role = roleOf(info);
    entry.node = graph::nodeName(&op).str();
    entry.attributes = graph::plainAttributes(op.getAttrDictionary());
    connect(entry, op);
    std::vector<bool> brings = bringSymbols(op);
    for (mlir::OpResult result : op.getResults()) {
      uint32_t number = declare(result);
      table.values[number].name = fmt::format("{}:{}", entry.node, result.getResultNumber());
      table.values[number].producer = static_cast<int32_t>(table.ops.size());
      bool isNew = brings[result.getResultNumber()];
      table.values[number].dataDependent = info.dataDependent || isNew;
      if (isNew && !info.dataDependent)
        entry.role = OpRole::Other; // its kernel has to say what it found out
      entry.outputs.push_back(number);
    }
    table.ops.push_back(std::move(entry));
    return Status::success();
  }

  Status addComposite(graph::CompositeOp op) {
    const graph::OpInfo *info =
        graph::findOp(std::string_view(op.getName().data(), op.getName().size()));
    TableComposite entry;
    entry.name = op.getName().str();
    entry.version = info ? info->version : 1;
    entry.role = info ? roleOf(*info) : OpRole::Other;
    entry.node = graph::nodeName(op).str();
    mlir::DictionaryAttr dictionary = op.getOpAttributes();
    if (dictionary)
      entry.attributes = graph::plainAttributes(dictionary);
    connect(entry, *op);
    mlir::Block &body = op.getBody().front();
    for (auto [argument, operand] : llvm::zip(body.getArguments(), op.getOperands()))
      numbers[argument] = numberOf(operand);
    uint32_t first = static_cast<uint32_t>(table.ops.size());
    if (Status status = walk(body); !status)
      return status;
    for (uint32_t i = first; i < table.ops.size(); ++i) {
      entry.body.push_back(i);
      if (table.ops[i].node.empty())
        table.ops[i].node = entry.node;
    }
    for (auto [result, value] : llvm::zip(op.getResults(), body.getTerminator()->getOperands())) {
      numbers[result] = numberOf(value);
      entry.outputs.push_back(numberOf(value));
    }
    // A body that passes an operand through computes nothing by itself.
    if (!entry.body.empty())
      table.composites.push_back(std::move(entry));
    return Status::success();
  }

  OpTable table;
  std::shared_ptr<const void> owner;
  llvm::DenseMap<mlir::Value, uint32_t> numbers;
  std::set<std::string> given; ///< symbols of the model's inputs
  std::set<std::string> seen;  ///< those of all values so far, and of those around a body
  std::vector<Pending> pending;
};

} // namespace

Expected<OpTable> buildOpTable(mlir::ModuleOp module, std::shared_ptr<const void> owner,
                               SymbolRanges ranges) {
  auto function = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!function)
    return internalError("the module has no function @main");
  return Builder(std::move(owner), std::move(ranges)).run(function);
}

} // namespace dovetail::plan
