// SPDX-License-Identifier: Apache-2.0
//
// Registers the dialect: the ops of GraphOps.td by their classes, the tensor ops of the table with
// one verifier, one printer and one parser for all. They are free of side effects except that
// random ops are never merged.
#include "graph/GraphDialect.h"

#include "mlir/IR/DialectImplementation.h"

#include <charconv>

#include "graph/GraphDialect.cpp.inc"

using namespace mlir;

namespace dovetail::graph {
namespace {

struct TensorOpEffects : MemoryEffectOpInterface::FallbackModel<TensorOpEffects> {
  void
  getEffects(Operation *op,
             SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) const {
    const OpInfo *info = infoOf(op);
    if (info && info->isRandom())
      for (OpResult result : op->getResults())
        effects.emplace_back(MemoryEffects::Allocate::get(), result);
  }
};

struct TensorOpSpeculation : ConditionallySpeculatable::FallbackModel<TensorOpSpeculation> {
  Speculation::Speculatability getSpeculatability(Operation *) const {
    return Speculation::Speculatable;
  }
};

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
void printTensorOp(Operation *op, OpAsmPrinter &printer, StringRef) {
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

} // namespace

void GraphDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "graph/GraphOps.cpp.inc"
      >();
  registerTensorOps();
}

void GraphDialect::registerTensorOps() {
  for (const OpInfo &info : allOps()) {
    registerDynamicOp(DynamicOpDefinition::get(
        info.name, this, [&info](Operation *op) { return verifyTensorOp(op, info); },
        [](Operation *) { return success(); }, parseTensorOp, printTensorOp));
    infos[OperationName(("dvt." + Twine(info.name)).str(), getContext())] = &info;
  }
}

const OpInfo *GraphDialect::infoOf(OperationName name) const { return infos.lookup(name); }

void *GraphDialect::getRegisteredInterfaceForOp(TypeID interface, OperationName name) {
  if (!infoOf(name))
    return nullptr;
  static TensorOpEffects effects;
  static TensorOpSpeculation speculation;
  if (interface == MemoryEffectOpInterface::getInterfaceID())
    return &effects;
  if (interface == ConditionallySpeculatable::getInterfaceID())
    return &speculation;
  return nullptr;
}

Operation *GraphDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                             Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

const OpInfo *infoOf(Operation *op) {
  auto *dialect = dyn_cast_or_null<GraphDialect>(op->getDialect());
  return dialect ? dialect->infoOf(op->getName()) : nullptr;
}

bool isOp(Operation *op, StringRef name) {
  return op && op->getName().getDialectNamespace() == "dvt" && op->getName().stripDialect() == name;
}

Operation *definedBy(Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  return isOp(op, name) ? op : nullptr;
}

bool isAbsent(Value value) { return isa<NoneType>(value.getType()); }

Attribute defaultAttribute(MLIRContext *context, const OpAttribute &attribute) {
  if (!attribute.hasDefault)
    return {};
  Builder builder(context);
  StringRef text = attribute.defaultText;
  switch (attribute.type) {
  case AttributeType::Int: {
    int64_t value = 0;
    text.getAsInteger(10, value);
    return builder.getI64IntegerAttr(value);
  }
  case AttributeType::Float: {
    // Rounded once, from the decimal text to f32.
    float value = 0;
    std::from_chars(text.begin(), text.end(), value);
    return builder.getF32FloatAttr(value);
  }
  case AttributeType::String:
    return builder.getStringAttr(text);
  case AttributeType::Ints: {
    SmallVector<int64_t> values;
    for (StringRef part : llvm::split(text, ','))
      part.getAsInteger(10, values.emplace_back());
    return builder.getDenseI64ArrayAttr(values);
  }
  case AttributeType::Strings: {
    SmallVector<StringRef> values;
    text.split(values, ',');
    return builder.getStrArrayAttr(values);
  }
  default:
    return {};
  }
}

Operation *createOp(OpBuilder &builder, Location loc, StringRef name, ValueRange operands,
                    TypeRange results, ArrayRef<NamedAttribute> attributes) {
  OperationState state(loc, ("dvt." + name).str(), operands, results, attributes);
  const OpInfo *info = findOp(name);
  assert(info && "no such op in the table");
  // Paddings are resolved into pads, so auto_pad has no place in a graph unless it was given.
  for (const OpAttribute &attribute : info->attributes)
    if (Attribute value = attribute.name == "auto_pad"
                              ? Attribute()
                              : defaultAttribute(builder.getContext(), attribute))
      if (!state.attributes.get(attribute.name))
        state.addAttribute(attribute.name, value);
  return builder.create(state);
}

int64_t intAttribute(Operation *op, StringRef name, int64_t fallback) {
  auto attribute = op->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : fallback;
}

double floatAttribute(Operation *op, StringRef name, double fallback) {
  auto attribute = op->getAttrOfType<FloatAttr>(name);
  return attribute ? attribute.getValueAsDouble() : fallback;
}

StringRef stringAttribute(Operation *op, StringRef name, StringRef fallback) {
  auto attribute = op->getAttrOfType<StringAttr>(name);
  return attribute ? attribute.getValue() : fallback;
}

ArrayRef<int64_t> intsAttribute(Operation *op, StringRef name) {
  auto attribute = op->getAttrOfType<DenseI64ArrayAttr>(name);
  return attribute ? attribute.asArrayRef() : ArrayRef<int64_t>();
}

StringRef nodeName(Operation *op) {
  auto loc = dyn_cast<NameLoc>(op->getLoc());
  return loc ? loc.getName().getValue() : StringRef();
}

} // namespace dovetail::graph
