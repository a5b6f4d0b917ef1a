// SPDX-License-Identifier: Apache-2.0
//
// The table's ops as registered operations. MLIR's own dynamic ops would do, but two of them never
// compare equal, so that equal ops are never merged.
#include "graph/TensorOpModel.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

#include "graph/GraphDialect.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

bool hasEncoding(Attribute value, AttributeType type) {
  switch (type) {
  case AttributeType::Int:
    return isa<IntegerAttr>(value) && cast<IntegerAttr>(value).getType().isInteger(64);
  case AttributeType::Float:
    return isa<FloatAttr>(value) && cast<FloatAttr>(value).getType().isF32();
  case AttributeType::String:
    return isa<StringAttr>(value);
  case AttributeType::Ints:
    return isa<DenseI64ArrayAttr>(value);
  case AttributeType::Floats:
    return isa<DenseF32ArrayAttr>(value);
  case AttributeType::Strings: {
    auto list = dyn_cast<ArrayAttr>(value);
    return list && llvm::all_of(list, llvm::IsaPred<StringAttr>);
  }
  case AttributeType::Tensor:
    return isa<ElementsAttr>(value);
  }
  return false;
}

const char *encodingName(AttributeType type) {
  constexpr const char *names[] = {
      "i64", "f32", "string", "array<i64>", "array<f32>", "array of strings", "elements"};
  return names[unsigned(type)];
}

LogicalResult verifyCount(Operation *op, const char *what, int count, int least, int most) {
  if (count >= least && (most < 0 || count <= most))
    return success();
  InFlightDiagnostic error = op->emitOpError() << "has " << count << " " << what << ", expected ";
  if (most == least)
    return error << least;
  if (most < 0)
    return error << "at least " << least;
  return error << least << " to " << most;
}

LogicalResult verifyTensorOp(Operation *op, const OpInfo &info) {
  if (failed(
          verifyCount(op, "operands", op->getNumOperands(), info.leastInputs, info.mostInputs)) ||
      failed(verifyCount(op, "results", op->getNumResults(), info.leastOutputs, info.mostOutputs)))
    return failure();
  if (op->getNumRegions() || op->getNumSuccessors())
    return op->emitOpError() << "takes no regions";
  if (info.kind != OpKind::Sequence && info.kind != OpKind::Text)
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (!isa<TensorType, NoneType>(type))
        return op->emitOpError() << "has an operand or result of type " << type
                                 << ", expected tensors";
  for (const OpAttribute &attribute : info.attributes)
    if (attribute.required && !op->hasAttr(attribute.name))
      return op->emitOpError() << "lacks the attribute '" << attribute.name << "'";
  for (NamedAttribute named : op->getAttrs()) {
    StringRef name = named.getName();
    if (name.contains('.'))
      continue;
    const OpAttribute *attribute = info.findAttribute(name);
    if (!attribute)
      return op->emitOpError() << "has no attribute '" << name << "'";
    if (!hasEncoding(named.getValue(), attribute->type))
      return op->emitOpError() << "attribute '" << name << "' is " << named.getValue()
                               << ", expected " << encodingName(attribute->type);
  }
  return success();
}

/// dvt.add(%a, %b) {attributes} : (types) -> types
void printTensorOp(Operation *op, OpAsmPrinter &printer) {
  // The printer has not written the name: ops of a dialect print theirs in full.
  printer << op->getName() << '(' << op->getOperands() << ')';
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : ";
  printer.printFunctionalType(op);
}

ParseResult parseTensorOp(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren) ||
      parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc, state.operands))
    return failure();
  state.addTypes(type.getResults());
  return success();
}

/// The table's line as MLIR's type-erased view of an op.
class TensorOpModel : public OperationName::Impl {
public:
  TensorOpModel(Dialect *dialect, TypeID typeID, const OpInfo &info)
      : Impl(("dvt." + Twine(info.name)).str(), dialect, typeID, mlir::detail::InterfaceMap()),
        info(info) {}

  LogicalResult foldHook(Operation *, ArrayRef<Attribute>, SmallVectorImpl<OpFoldResult> &) final {
    return failure();
  }
  void getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) final {}
  bool hasTrait(TypeID) final { return false; }
  OperationName::ParseAssemblyFn getParseAssemblyFn() final { return parseTensorOp; }
  void populateDefaultAttrs(const OperationName &, NamedAttrList &) final {}
  void printAssembly(Operation *op, OpAsmPrinter &printer, StringRef) final {
    printTensorOp(op, printer);
  }
  LogicalResult verifyInvariants(Operation *op) final { return verifyTensorOp(op, info); }
  LogicalResult verifyRegionInvariants(Operation *) final { return success(); }

  std::optional<Attribute> getInherentAttr(Operation *, StringRef) final { return std::nullopt; }
  void setInherentAttr(Operation *op, StringAttr name, Attribute value) final {
    op->setDiscardableAttr(name, value);
  }
  void populateInherentAttrs(Operation *, NamedAttrList &) final {}
  LogicalResult verifyInherentAttrs(OperationName, NamedAttrList &,
                                    function_ref<InFlightDiagnostic()>) final {
    return success();
  }
  int getOpPropertyByteSize() final { return 0; }
  void initProperties(OperationName, OpaqueProperties, OpaqueProperties) final {}
  void deleteProperties(OpaqueProperties) final {}
  void populateDefaultProperties(OperationName, OpaqueProperties) final {}
  LogicalResult setPropertiesFromAttr(OperationName, OpaqueProperties, Attribute,
                                      function_ref<InFlightDiagnostic()> emitError) final {
    return emitError() << "tensor ops have no properties";
  }
  Attribute getPropertiesAsAttr(Operation *) final { return {}; }
  void copyProperties(OpaqueProperties, OpaqueProperties) final {}
  bool compareProperties(OpaqueProperties, OpaqueProperties) final { return true; }
  llvm::hash_code hashProperties(OpaqueProperties) final { return llvm::hash_code(0); }

private:
  const OpInfo &info;
};

} // namespace

void registerTensorOps(Dialect *dialect) {
  // An id for each op, the same in every context.
  static const std::vector<SelfOwningTypeID> ids(allOps().size());
  size_t next = 0;
  for (const OpInfo &info : allOps())
    RegisteredOperationName::insert(std::make_unique<TensorOpModel>(dialect, ids[next++], info),
                                    {});
}

} // namespace dovetail::graph
