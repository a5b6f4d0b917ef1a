// SPDX-License-Identifier: Apache-2.0
//
// The two-way mapping between MLIR's types and ours, and the ranges of symbols as an attribute.
#include "graph/TensorType.h"

#include "mlir/IR/Builders.h"

#include <set>

using namespace mlir;

namespace dovetail::graph {

dvt_type elementType(Type element) {
  if (element.isF32())
    return DVT_F32;
  if (element.isF64())
    return DVT_F64;
  if (element.isF16())
    return DVT_F16;
  if (element.isBF16())
    return DVT_BF16;
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || integer.isSigned())
    return DVT_UNDEFINED;
  switch (integer.getWidth()) {
  case 1:
    return integer.isUnsigned() ? DVT_UNDEFINED : DVT_BOOL;
  case 4:
    return integer.isUnsigned() ? DVT_U4 : DVT_I4;
  case 8:
    return integer.isUnsigned() ? DVT_U8 : DVT_I8;
  case 16:
    return integer.isUnsigned() ? DVT_U16 : DVT_I16;
  case 32:
    return integer.isUnsigned() ? DVT_U32 : DVT_I32;
  case 64:
    return integer.isUnsigned() ? DVT_U64 : DVT_I64;
  default:
    return DVT_UNDEFINED;
  }
}

dvt_type elementType(RankedTensorType type) { return elementType(type.getElementType()); }

Type toElementType(MLIRContext *context, dvt_type type) {
  Builder builder(context);
  switch (type) {
  case DVT_F32:
    return builder.getF32Type();
  case DVT_F64:
    return builder.getF64Type();
  case DVT_F16:
    return builder.getF16Type();
  case DVT_BF16:
    return builder.getBF16Type();
  case DVT_BOOL:
    return builder.getI1Type();
  case DVT_I4:
  case DVT_I8:
  case DVT_I16:
  case DVT_I32:
  case DVT_I64:
    return builder.getIntegerType(typeBits(type));
  case DVT_U4:
  case DVT_U8:
  case DVT_U16:
  case DVT_U32:
  case DVT_U64:
    return builder.getIntegerType(typeBits(type), false);
  default:
    return {};
  }
}

namespace {

std::optional<Extent> readExtent(ArrayAttr encoding, unsigned dimension) {
  if (!encoding || dimension >= encoding.size())
    return std::nullopt;
  auto text = dyn_cast<StringAttr>(encoding[dimension]);
  if (!text)
    return std::nullopt;
  Expected<Extent> extent = Extent::parse(text.getValue());
  return extent ? std::optional(*extent) : std::nullopt;
}

} // namespace

Shape extentsOf(RankedTensorType type) {
  auto encoding = dyn_cast_or_null<ArrayAttr>(type.getEncoding());
  Shape shape;
  for (unsigned d = 0; d < type.getRank(); ++d) {
    if (!type.isDynamicDim(d))
      shape.push_back(type.getDimSize(d));
    else
      shape.push_back(readExtent(encoding, d).value_or(Extent::symbol("unknown")));
  }
  return shape;
}

bool hasReadableExtents(RankedTensorType type) {
  auto encoding = dyn_cast_or_null<ArrayAttr>(type.getEncoding());
  for (unsigned d = 0; d < type.getRank(); ++d)
    if (type.isDynamicDim(d) && !readExtent(encoding, d))
      return false;
  return true;
}

RankedTensorType tensorType(Type element, const Shape &shape) {
  SmallVector<int64_t> extents;
  bool isStatic = true;
  for (const Extent &extent : shape) {
    extents.push_back(extent.staticValue().value_or(ShapedType::kDynamic));
    isStatic &= extent.isStatic();
  }
  if (isStatic)
    return RankedTensorType::get(extents, element);
  SmallVector<Attribute> texts;
  for (const Extent &extent : shape)
    texts.push_back(StringAttr::get(element.getContext(), extent.text()));
  return RankedTensorType::get(extents, element, ArrayAttr::get(element.getContext(), texts));
}

RankedTensorType tensorType(MLIRContext *context, dvt_type type, const Shape &shape) {
  return tensorType(toElementType(context, type), shape);
}

SymbolRanges symbolRanges(ModuleOp module) {
  SymbolRanges ranges;
  auto attribute = module->getAttrOfType<DictionaryAttr>("dvt.ranges");
  if (!attribute)
    return ranges;
  for (NamedAttribute entry : attribute)
    if (auto range = dyn_cast<DenseI64ArrayAttr>(entry.getValue()); range && range.size() == 3)
      ranges[entry.getName().str()] = {range[0], range[1], range[2]};
  return ranges;
}

void setSymbolRanges(ModuleOp module, const SymbolRanges &ranges) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, range] : ranges)
    entries.push_back(builder.getNamedAttr(
        name, builder.getDenseI64ArrayAttr({range.min, range.max, range.divisor})));
  if (entries.empty())
    module->removeAttr("dvt.ranges");
  else
    module->setAttr("dvt.ranges", builder.getDictionaryAttr(entries));
}

namespace {
std::string requirementsName(unsigned region) {
  return region == 0 ? "dvt.requirements" : "dvt.requirements." + std::to_string(region);
}
} // namespace

std::vector<Requirement> requirementsOf(Operation *holder, unsigned region) {
  std::vector<Requirement> requirements;
  auto attribute = holder->getAttrOfType<ArrayAttr>(requirementsName(region));
  if (!attribute)
    return requirements;
  for (Attribute entry : attribute) {
    auto fields = dyn_cast<ArrayAttr>(entry);
    if (!fields || fields.size() != 4)
      continue;
    auto relation = dyn_cast<IntegerAttr>(fields[0]);
    auto left = dyn_cast<StringAttr>(fields[1]), right = dyn_cast<StringAttr>(fields[2]),
         subject = dyn_cast<StringAttr>(fields[3]);
    if (!relation || !left || !right || !subject || relation.getInt() < 0 ||
        relation.getInt() >= kRelationCount)
      continue;
    Expected<Extent> a = Extent::parse(left.getValue()), b = Extent::parse(right.getValue());
    if (a && b)
      requirements.push_back({static_cast<Requirement::Relation>(relation.getInt()), *a, *b,
                              subject.getValue().str()});
  }
  return requirements;
}

void setRequirements(Operation *holder, const std::vector<Requirement> &requirements,
                     unsigned region) {
  Builder builder(holder->getContext());
  SmallVector<Attribute> entries;
  for (const Requirement &requirement : requirements)
    entries.push_back(
        builder.getArrayAttr({builder.getI64IntegerAttr(static_cast<int64_t>(requirement.relation)),
                              builder.getStringAttr(requirement.left.text()),
                              builder.getStringAttr(requirement.right.text()),
                              builder.getStringAttr(requirement.subject)}));
  if (entries.empty())
    holder->removeAttr(requirementsName(region));
  else
    holder->setAttr(requirementsName(region), builder.getArrayAttr(entries));
}

namespace {

/// Collects the symbols of types, each type once.
struct SymbolCollector {
  std::set<std::string> symbols;
  DenseSet<Type> seen;

  void add(TypeRange types) {
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || tensor.hasStaticShape() || !seen.insert(type).second)
        continue;
      for (const Extent &extent : extentsOf(tensor))
        for (std::string &symbol : extent.symbols())
          symbols.insert(std::move(symbol));
    }
  }
};

} // namespace

std::vector<std::string> symbolsOf(ModuleOp module) {
  SymbolCollector collector;
  module.walk([&](Operation *op) {
    collector.add(op->getResultTypes());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        collector.add(block.getArgumentTypes());
  });
  return {collector.symbols.begin(), collector.symbols.end()};
}

std::set<std::string> symbolsOutside(Operation *op) {
  SymbolCollector collector;
  for (; op && op->getBlock(); op = op->getParentOp()) {
    collector.add(op->getBlock()->getArgumentTypes());
    for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
      collector.add(before->getResultTypes());
  }
  return std::move(collector.symbols);
}

} // namespace dovetail::graph
