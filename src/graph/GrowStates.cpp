// SPDX-License-Identifier: Apache-2.0
//
// States: inputs of the model that become, from one run to the next, what an output was. Where the
// output is the input with something behind it (keys and values of a decoder), the model's border
// is turned so that what grows is the outermost dimension. Then the new part is written behind the
// old one, in memory with room to spare, and the old one is never moved.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "graph/GraphDialect.h"
#include "graph/Passes.h"
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

constexpr const char *kStates = "dvt.states";

/// The axis along which `result` is `argument` and something behind it; nothing where it is not.
std::optional<int64_t> grownAxis(BlockArgument argument, Value result) {
  Operation *concat = definedBy(result, "concat");
  if (!concat || concat->getNumOperands() < 2 || concat->getOperand(0) != argument ||
      concat->getBlock() != argument.getOwner())
    return std::nullopt;
  int64_t axis = intAttribute(concat, "axis", 0);
  axis += axis < 0 ? typeOf(result).getRank() : 0;
  Extent length = extentsOf(typeOf(argument))[axis];
  std::vector<std::string> symbols = length.symbols();
  return symbols.size() == 1 && length == Extent::symbol(symbols[0]) ? std::optional(axis)
                                                                     : std::nullopt;
}

/// Makes `order[0]` the outermost dimension of the argument and of the result.
void turn(BlockArgument argument, OpOperand &result, ArrayRef<int64_t> order) {
  Operation *concat = result.get().getDefiningOp();
  SmallVector<int64_t> back(order.size());
  for (auto [i, dimension] : llvm::enumerate(order))
    back[dimension] = int64_t(i);
  auto turned = [&](Value value) {
    Shape from = extentsOf(typeOf(value)), to;
    for (int64_t dimension : order)
      to.push_back(from[dimension]);
    return tensorType(typeOf(value).getElementType(), to);
  };
  argument.setType(turned(argument));
  OpBuilder builder(argument.getOwner(), argument.getOwner()->begin());
  Value shown = createTranspose(builder, argument.getLoc(), argument, back);
  argument.replaceAllUsesExcept(shown, shown.getDefiningOp());
  builder.setInsertionPoint(concat);
  SmallVector<Value> parts{argument};
  for (Value part : concat->getOperands().drop_front())
    parts.push_back(createTranspose(builder, concat->getLoc(), part, order));
  Value grown =
      createValue(builder, concat->getLoc(), "concat", parts, turned(concat->getResult(0)),
                  builder.getNamedAttr("axis", builder.getI64IntegerAttr(0)));
  Value present = createTranspose(builder, concat->getLoc(), grown, back);
  concat->getResult(0).replaceAllUsesWith(present);
  result.set(grown);
  concat->erase();
}

Attribute describe(Builder &builder, const GraphState &state) {
  SmallVector<int64_t> numbers{state.input, state.output, state.grows};
  llvm::append_range(numbers, state.order);
  return builder.getDenseI64ArrayAttr(numbers);
}

} // namespace

void borderNames(ModuleOp module, std::vector<std::string> &inputs,
                 std::vector<std::string> &outputs) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  auto text = [](StringAttr name) { return name ? name.str() : std::string(); };
  for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
    inputs.push_back(text(function.getArgAttrOfType<StringAttr>(i, kNameAttribute)));
  for (unsigned i = 0; function && i < function.getNumResults(); ++i)
    outputs.push_back(text(function.getResultAttrOfType<StringAttr>(i, kNameAttribute)));
}

Status growStates(ModuleOp module, const std::vector<std::pair<uint32_t, uint32_t>> &pairs) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal())
    return badInput("the module has no function @main with a body");
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  SymbolRanges ranges = symbolRanges(module);
  Builder builder(module.getContext());
  SmallVector<Attribute> states;
  for (auto [input, output] : pairs) {
    if (input >= block.getNumArguments() || output >= end->getNumOperands())
      return internalError("a state of input {} and output {}, which are not there", input, output);
    BlockArgument argument = block.getArgument(input);
    GraphState state{input, output, false, {}};
    if (std::optional<int64_t> axis = grownAxis(argument, end->getOperand(output))) {
      state.grows = true;
      Extent length = extentsOf(typeOf(argument))[*axis];
      SymbolRange &range = ranges[length.symbols()[0]];
      if (range == SymbolRange())
        range.min = 0; // it may start empty
      if (*axis != 0) {
        state.order.push_back(*axis);
        for (int64_t d = 0; d < typeOf(argument).getRank(); ++d)
          if (d != *axis)
            state.order.push_back(d);
        turn(argument, end->getOpOperand(output), state.order);
      }
    }
    states.push_back(describe(builder, state));
  }
  setSymbolRanges(module, ranges);
  module->setAttr(kStates, builder.getArrayAttr(states));
  function.setFunctionType(
      builder.getFunctionType(block.getArgumentTypes(), end->getOperandTypes()));
  return Status::success();
}

std::vector<GraphState> statesOf(ModuleOp module) {
  std::vector<GraphState> states;
  auto attribute = module->getAttrOfType<ArrayAttr>(kStates);
  if (!attribute)
    return states;
  for (Attribute entry : attribute) {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(entry);
    if (!numbers || numbers.size() < 3)
      continue;
    GraphState state{uint32_t(numbers[0]), uint32_t(numbers[1]), numbers[2] != 0, {}};
    ArrayRef<int64_t> order = numbers.asArrayRef().drop_front(3);
    state.order.assign(order.begin(), order.end());
    states.push_back(std::move(state));
  }
  return states;
}

} // namespace dovetail::graph
