// SPDX-License-Identifier: Apache-2.0
//
// The one place where ops come into being, so that no op leaves it with a wrong type, a missing
// default or an attribute the table does not know.
#include "import/OpEmitter.h"

#include <cstring>

#include <onnx/defs/schema.h>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "graph/shapes/ShapeRules.h"
#include "import/TensorTypes.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

template <typename T>
TensorData tensorOf(dvt_type type, std::vector<int64_t> extents, const std::vector<T> &values) {
  TensorData data;
  data.type = type;
  data.extents = std::move(extents);
  data.elements = int64_t(values.size());
  auto owner = std::make_shared<std::string>(reinterpret_cast<const char *>(values.data()),
                                             values.size() * sizeof(T));
  data.bytes = *owner;
  data.owner = std::move(owner);
  return data;
}

Attribute attributeOf(Builder &builder, const AttributeValue &value, graph::AttributeType type) {
  if (auto *number = std::get_if<int64_t>(&value))
    return builder.getI64IntegerAttr(*number);
  if (auto *number = std::get_if<double>(&value))
    return builder.getF32FloatAttr(float(*number));
  if (auto *text = std::get_if<std::string>(&value))
    return builder.getStringAttr(*text);
  // A list without elements has no type of its own.
  if (type == graph::AttributeType::Floats) {
    SmallVector<float> floats;
    if (auto *numbers = std::get_if<std::vector<double>>(&value))
      floats.assign(numbers->begin(), numbers->end());
    return builder.getDenseF32ArrayAttr(floats);
  }
  auto *numbers = std::get_if<std::vector<int64_t>>(&value);
  return builder.getDenseI64ArrayAttr(numbers ? ArrayRef<int64_t>(*numbers) : ArrayRef<int64_t>());
}

/// The value a default attribute stands for, for the shape rules.
AttributeValue plainValue(Attribute attribute) {
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.getValue().str();
  if (auto floats = dyn_cast<DenseF32ArrayAttr>(attribute))
    return std::vector<double>(floats.asArrayRef().begin(), floats.asArrayRef().end());
  ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(attribute).asArrayRef();
  return std::vector<int64_t>(numbers.begin(), numbers.end());
}

graph::ValueFacts factsOf(const TensorData &data) {
  graph::ValueFacts facts;
  facts.type = data.type;
  for (int64_t extent : data.extents)
    facts.shape.push_back(extent);
  facts.constant = true;
  facts.bytes = std::span<const char>(data.bytes.data(), data.bytes.size());
  return facts;
}

} // namespace

Status OpEmitter::checkTypes(const onnx::OpSchema &schema, std::string_view op,
                             ArrayRef<Value> operands) const {
  const auto &formals = schema.inputs();
  std::map<std::string, std::string> bound; // type variable -> type
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i] || formals.empty())
      continue;
    const auto &formal = formals[std::min(i, formals.size() - 1)];
    std::string type = onnxTypeName(this->type(operands[i]));
    if (i >= formals.size() && formal.GetOption() != onnx::OpSchema::Variadic)
      return fail(op, "has {} operands, at most {} are defined", operands.size(), formals.size());
    bool allowed = formal.GetTypes().empty();
    for (const std::string *candidate : formal.GetTypes())
      allowed |= *candidate == type;
    if (!allowed) {
      std::string list;
      for (const std::string *candidate : formal.GetTypes())
        list += (list.empty() ? "" : ", ") + *candidate;
      return fail(op, "operand {} ('{}') is a {}, defined are {}", i, formal.GetName(), type, list);
    }
    if (formal.GetOption() == onnx::OpSchema::Variadic && !formal.GetIsHomogeneous())
      continue;
    auto [known, isNew] = bound.emplace(formal.GetTypeStr(), type);
    if (known->second != type)
      return fail(op, "operand {} ('{}') is a {} but must have the type of an earlier operand, {}",
                  i, formal.GetName(), type, known->second);
  }
  return Status::success();
}

Expected<Values> OpEmitter::emit(std::string_view op, ArrayRef<Value> operands,
                                 OpAttributes attributes, size_t results) {
  const graph::OpInfo *info = graph::findOnnxOp(op);
  const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(std::string(op));
  if (!info || !schema || info->kind == graph::OpKind::Sequence ||
      info->kind == graph::OpKind::Text)
    return fail(op, "this op is not supported yet");
  while (!operands.empty() && !operands.back())
    operands = operands.drop_back();
  results = std::max(results, size_t(std::max(info->leastOutputs, 1)));
  if (info->mostOutputs >= 0 && results > size_t(info->mostOutputs))
    return fail(op, "has {} outputs, at most {} are defined", results, info->mostOutputs);
  if (info->mostInputs >= 0 && operands.size() > size_t(info->mostInputs))
    return fail(op, "has {} inputs, at most {} are defined", operands.size(), info->mostInputs);
  if (Status status = checkTypes(*schema, op, operands); !status)
    return status.takeError();

  OperationState state(location, ("dvt." + Twine(info->name)).str());
  for (const graph::OpAttribute &attribute : info->attributes) {
    Attribute value;
    if (auto plain = attributes.plain.find(attribute.name); plain != attributes.plain.end())
      value = attributeOf(builder, plain->second, attribute.type);
    else if (auto list = attributes.strings.find(attribute.name); list != attributes.strings.end())
      value =
          builder.getStrArrayAttr(SmallVector<StringRef>(list->second.begin(), list->second.end()));
    else if (auto tensor = attributes.tensors.find(attribute.name);
             tensor != attributes.tensors.end())
      value = elementsOf(builder.getContext(), tensor->second, attribute.name);
    else if (attribute.name != "auto_pad")
      value = graph::defaultAttribute(builder.getContext(), attribute);
    if (!value && attribute.required)
      return fail(op, "lacks the attribute '{}'", attribute.name);
    if (!value)
      continue;
    state.addAttribute(attribute.name, value);
    if (!isa<ArrayAttr, ElementsAttr>(value))
      attributes.plain.emplace(attribute.name, plainValue(value));
  }
  for (const auto &[name, value] : attributes.plain)
    if (!info->findAttribute(name))
      return fail(op, "has an attribute '{}', which is not defined", name);

  std::vector<graph::ValueFacts> operandFacts;
  for (Value operand : operands) {
    graph::ValueFacts absent;
    absent.absent = true;
    operandFacts.push_back(operand ? facts(operand) : absent);
    state.operands.push_back(
        operand ? operand
                : graph::NoneOp::create(builder, location, builder.getNoneType()).getResult());
  }
  // Shape rules see a tensor attribute as a constant operand behind the others.
  for (const auto &[name, data] : attributes.tensors)
    operandFacts.push_back(factsOf(data));
  graph::InferContext context(*info, label, attributes.plain, std::move(operandFacts), results,
                              symbols.ranges());
  context.freshSymbol = [&](size_t result, size_t dimension, int64_t least) {
    return symbols.fresh(label + (results > 1 ? "_" + std::to_string(result) : ""), dimension,
                         least);
  };
  if (Status status = graph::inferShapes(context); !status) {
    shapesContradict = true;
    return status.takeError();
  }
  std::vector<graph::ValueFacts> &inferred = context.takeResults();
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (!graph::toElementType(builder.getContext(), inferred[i].type))
      return fail(op, "its result {} would be a {}, which is not supported yet", i,
                  onnxTypeName(inferred[i].type));
    state.addTypes(graph::tensorType(builder.getContext(), inferred[i].type, inferred[i].shape));
  }
  Operation *created = builder.create(state);
  Values values;
  for (size_t i = 0; i < inferred.size(); ++i) {
    values.push_back(created->getResult(unsigned(i)));
    known[values.back()] = std::move(inferred[i]);
  }
  return values;
}

Expected<Value> OpEmitter::emit(std::string_view op, ArrayRef<Value> operands,
                                AttributeMap attributes) {
  Expected<Values> results = emit(op, operands, OpAttributes{std::move(attributes), {}, {}}, 1);
  if (!results)
    return results.takeError();
  return results->front();
}

Value OpEmitter::constant(const TensorData &data, StringRef name) {
  ElementsAttr value = elementsOf(builder.getContext(), data, name);
  Value result = graph::ConstantOp::create(builder, location, value.getType(), value);
  owners[result] = data.owner;
  declare(result, factsOf(data));
  return result;
}

std::optional<TensorData> OpEmitter::constantData(Value value) const {
  auto owner = owners.find(value);
  if (owner == owners.end())
    return std::nullopt;
  const graph::ValueFacts &fact = facts(value);
  // A value of a body that was imported again may stand where a constant stood.
  if (!fact.constant)
    return std::nullopt;
  TensorData data;
  data.type = fact.type;
  for (const Extent &extent : fact.shape) {
    data.extents.push_back(extent.value());
    data.elements *= extent.value();
  }
  data.bytes = std::string_view(fact.bytes.data(), fact.bytes.size());
  data.owner = owner->second;
  return data;
}

Value OpEmitter::ints(ArrayRef<int64_t> values) {
  return constant(tensorOf<int64_t>(DVT_I64, {int64_t(values.size())}, values.vec()), "ints");
}

Value OpEmitter::intScalar(int64_t value) {
  return constant(tensorOf<int64_t>(DVT_I64, {}, {value}), "int");
}

Value OpEmitter::floats(ArrayRef<double> values) {
  std::vector<float> rounded(values.begin(), values.end());
  return constant(tensorOf<float>(DVT_F32, {int64_t(values.size())}, rounded), "floats");
}

Value OpEmitter::scalar(dvt_type type, double value) {
  Type element = graph::toElementType(builder.getContext(), type);
  uint64_t bits = 0;
  if (auto floatType = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool losesInfo = false;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    bits = number.bitcastToAPInt().getZExtValue();
  } else {
    APSInt number(64, /*isUnsigned=*/false);
    bool isExact = false;
    APFloat(value).convertToInteger(number, APFloat::rmTowardZero, &isExact); // saturates
    bits = number.getZExtValue();
  }
  auto owner = std::make_shared<std::string>(bytesOf(type, 1), '\0');
  std::memcpy(owner->data(), &bits, owner->size());
  TensorData data;
  data.type = type;
  data.bytes = *owner;
  data.owner = std::move(owner);
  return constant(data, "scalar");
}

void OpEmitter::declare(Value value, graph::ValueFacts facts) { known[value] = std::move(facts); }

const graph::ValueFacts &OpEmitter::facts(Value value) const {
  auto found = known.find(value);
  assert(found != known.end() && "every value is declared or emitted");
  return found->second;
}

std::optional<std::vector<int64_t>> OpEmitter::knownInts(Value value) const {
  const graph::ValueFacts &fact = facts(value);
  std::vector<int64_t> numbers;
  if (fact.elements) {
    for (const std::optional<Extent> &element : *fact.elements) {
      if (!element || !element->isStatic())
        return std::nullopt;
      numbers.push_back(element->value());
    }
    return numbers;
  }
  std::optional<int64_t> count = elementCount(fact.shape).staticValue();
  if (!fact.constant || !count || !graph::isIntegerType(fact.type) ||
      fact.bytes.size() < bytesOf(fact.type, *count))
    return std::nullopt;
  for (int64_t i = 0; i < *count; ++i) {
    std::optional<int64_t> number = graph::integerAt(fact.type, fact.bytes.data(), size_t(i));
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<double>> OpEmitter::knownNumbers(Value value) const {
  const graph::ValueFacts &fact = facts(value);
  std::optional<int64_t> count = elementCount(fact.shape).staticValue();
  if (!fact.constant || !count || fact.bytes.size() < bytesOf(fact.type, *count))
    return std::nullopt;
  std::vector<double> numbers;
  for (int64_t i = 0; i < *count; ++i) {
    std::optional<double> number = graph::numberAt(fact.type, fact.bytes.data(), size_t(i));
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

} // namespace dovetail::importer
