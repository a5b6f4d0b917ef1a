// SPDX-License-Identifier: Apache-2.0
//
// Registers the dialect and gives tensor ops their interfaces: they are free of side effects,
// except that random ops are never merged.
#include "graph/GraphDialect.h"

#include <charconv>

#include "llvm/ADT/StringExtras.h"

#include "graph/TensorOpModel.h"

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

} // namespace

void GraphDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "graph/GraphOps.cpp.inc"
      >();
  registerTensorOps(this);
  for (const OpInfo &info : allOps())
    infos[OperationName(("dvt." + Twine(info.name)).str(), getContext())] = &info;
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
