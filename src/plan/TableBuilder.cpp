// SPDX-License-Identifier: Apache-2.0
//
// Walks @main and lists its values and ops; composites are entered, so that their bodies' ops stand
// in the same table.
#include "plan/TableBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include "graph/Attributes.h"
#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"
#include "graph/OpRegistry.h"
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
      uint32_t number = numbers.lookup(value);
      std::string name;
      if (auto attribute = function.getResultAttrOfType<mlir::StringAttr>(i, graph::kNameAttribute))
        name = attribute.str();
      if (table.values[number].name.empty() || table.values[number].producer >= 0)
        table.values[number].name = name;
      table.outputs.push_back(number);
      table.outputNames.push_back(name);
    }
    linkUsers(table);
    findShapeData(table);
    return std::move(table);
  }

private:
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
        if (Status status = addConstant(constant); !status)
          return status;
        continue;
      }
      if (auto composite = mlir::dyn_cast<graph::CompositeOp>(op)) {
        if (Status status = addComposite(composite); !status)
          return status;
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

  Status addConstant(graph::ConstantOp constant) {
    uint32_t number = declare(constant.getResult());
    TableValue &value = table.values[number];
    value.name = graph::nodeName(constant).str();
    value.constant = true;
    graph::ConstantBytes bytes = graph::constantBytes(constant);
    value.data = bytes.data;
    value.dataBytes = bytes.size;
    value.owner = bytes.owned ? bytes.owned : owner;
    return Status::success();
  }

  template <typename Entry> void connect(Entry &entry, mlir::Operation &op) {
    for (mlir::Value operand : op.getOperands())
      entry.inputs.push_back(graph::isAbsent(operand) ? kNoValue : numbers.lookup(operand));
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
    for (mlir::Value result : op.getResults()) {
      uint32_t number = declare(result);
      table.values[number].name =
          fmt::format("{}:{}", entry.node, mlir::cast<mlir::OpResult>(result).getResultNumber());
      table.values[number].producer = static_cast<int32_t>(table.ops.size());
      table.values[number].dataDependent = info.dataDependent;
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
      numbers[argument] = numbers.lookup(operand);
    uint32_t first = static_cast<uint32_t>(table.ops.size());
    if (Status status = walk(body); !status)
      return status;
    for (uint32_t i = first; i < table.ops.size(); ++i) {
      entry.body.push_back(i);
      if (table.ops[i].node.empty())
        table.ops[i].node = entry.node;
    }
    for (auto [result, value] : llvm::zip(op.getResults(), body.getTerminator()->getOperands())) {
      numbers[result] = numbers.lookup(value);
      entry.outputs.push_back(numbers.lookup(value));
    }
    // A body that passes an operand through computes nothing by itself.
    if (!entry.body.empty())
      table.composites.push_back(std::move(entry));
    return Status::success();
  }

  OpTable table;
  std::shared_ptr<const void> owner;
  llvm::DenseMap<mlir::Value, uint32_t> numbers;
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
