// SPDX-License-Identifier: Apache-2.0
//
// The ops declared in GraphOps.td: their verifiers, folders and the syntax of composites.
#include "graph/GraphDialect.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "graph/GraphOps.cpp.inc"

namespace dovetail::graph {

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

LogicalResult ConstantOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  ShapedType valueType = getValue().getShapedType();
  if (!type.hasStaticShape() || valueType.getShape() != type.getShape() ||
      valueType.getElementType() != type.getElementType())
    return emitOpError() << "has a value of type " << valueType << " but the result type " << type;
  return success();
}

LogicalResult CompositeOp::verify() {
  const OpInfo *info = findOp(getName());
  if (!info)
    return emitOpError() << "stands for '" << getName() << "', which is no op of the table";
  if (!getOpAttributes())
    return emitOpError() << "lacks the dictionary 'attributes'";
  Block &block = getBody().front();
  if (!llvm::equal(block.getArgumentTypes(), getOperandTypes()))
    return emitOpError() << "has operands and body arguments of different types";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getNumOperands() != getNumResults())
    return emitOpError() << "has a body that does not yield its " << getNumResults() << " results";
  for (auto [given, result] : llvm::zip(yield.getOperandTypes(), getResultTypes()))
    if (given != result)
      return emitOpError() << "has a body that yields " << given << " for a result of type "
                           << result;
  return success();
}

/// dvt.composite "gelu"(%x) {attributes} : (types) -> types { ^bb0(...): ... }
void CompositeOp::print(OpAsmPrinter &printer) {
  printer << " \"" << getName() << "\"(" << getOperands() << ") " << getOpAttributes();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"name", "attributes"});
  printer << " : ";
  printer.printFunctionalType(*this);
  printer << ' ';
  printer.printRegion(getBody());
}

ParseResult CompositeOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  DictionaryAttr attributes;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  if (parser.parseAttribute(name, "name", state.attributes))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren) ||
      parser.parseAttribute(attributes, "attributes", state.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc, state.operands) ||
      parser.parseRegion(*state.addRegion()))
    return failure();
  state.addTypes(type.getResults());
  return success();
}

} // namespace dovetail::graph
