// SPDX-License-Identifier: Apache-2.0
//
// Reads cases, runs them through the rules and, as a model of one node, through libonnx.
#include "ShapeCase.h"

#include <cstring>
#include <stdexcept>

#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

namespace dovetail::graph {
namespace {

std::vector<std::string> splitAt(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (char letter : text) {
    depth += letter == '[' || letter == '{' ? 1 : letter == ']' || letter == '}' ? -1 : 0;
    if (letter == separator && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else if (letter != ' ') {
      part += letter;
    }
  }
  if (!part.empty())
    parts.push_back(part);
  return parts;
}

std::string between(const std::string &text, char open, char close) {
  size_t begin = text.find(open), end = text.find(close);
  return begin == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

template <typename T> void append(std::vector<char> &bytes, double number) {
  T value = T(number);
  const char *first = reinterpret_cast<const char *>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

ShapeCase::Operand readOperand(const std::string &text, SymbolValues &symbols) {
  ShapeCase::Operand operand;
  if (text == "_") {
    operand.absent = true;
    return operand;
  }
  operand.type = parseTypeName(text.substr(0, text.find('[')));
  for (const std::string &part : splitAt(between(text, '[', ']'), ',')) {
    size_t equals = part.find('=');
    std::string name = equals == std::string::npos ? "" : part.substr(0, equals);
    int64_t value = std::stoll(equals == std::string::npos ? part : part.substr(equals + 1));
    operand.extents.push_back(value);
    operand.names.push_back(name);
    if (!name.empty())
      symbols[name] = value;
  }
  operand.constant = text.find('{') != std::string::npos;
  for (const std::string &part : splitAt(between(text, '{', '}'), ','))
    operand.numbers.push_back(std::stod(part));
  for (double number : operand.numbers) {
    if (operand.type == DVT_I64)
      append<int64_t>(operand.bytes, number);
    else if (operand.type == DVT_F32)
      append<float>(operand.bytes, number);
    else if (operand.type == DVT_BOOL)
      append<uint8_t>(operand.bytes, number);
    else
      throw std::invalid_argument("constants of this type are not read: " + text);
  }
  return operand;
}

AttributeValue readAttribute(const OpAttribute &attribute, const std::string &text) {
  std::vector<int64_t> ints;
  switch (attribute.type) {
  case AttributeType::Int:
    return int64_t(std::stoll(text));
  case AttributeType::Float:
    return std::stod(text);
  case AttributeType::String:
    return text;
  case AttributeType::Ints:
    for (const std::string &part : splitAt(text, ','))
      ints.push_back(std::stoll(part));
    return ints;
  default:
    throw std::invalid_argument("attributes of this type are not read: " + text);
  }
}

void addTensorType(onnx::TypeProto &type, const ShapeCase::Operand &operand) {
  type.mutable_tensor_type()->set_elem_type(int(operand.type));
  auto *shape = type.mutable_tensor_type()->mutable_shape();
  for (int64_t extent : operand.extents)
    shape->add_dim()->set_dim_value(extent);
}

void addAttribute(onnx::NodeProto &node, const std::string &name, const AttributeValue &value) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  if (auto *number = std::get_if<int64_t>(&value)) {
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(*number);
  } else if (auto *real = std::get_if<double>(&value)) {
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(float(*real));
  } else if (auto *text = std::get_if<std::string>(&value)) {
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s(*text);
  } else {
    attribute->set_type(onnx::AttributeProto::INTS);
    for (int64_t number : std::get<std::vector<int64_t>>(value))
      attribute->add_ints(number);
  }
}

} // namespace

ShapeCase ShapeCase::parse(std::string_view text) {
  ShapeCase result;
  size_t open = text.find('('), close = text.rfind(')');
  result.op = text.substr(0, open);
  const OpInfo *info = findOnnxOp(result.op);
  if (!info)
    throw std::invalid_argument("no such op: " + result.op);
  for (const std::string &part : splitAt(text.substr(open + 1, close - open - 1), ','))
    result.operands.push_back(readOperand(part, result.symbols));
  std::string rest(text.substr(close + 1));
  for (size_t begin = 0; begin < rest.size();) {
    size_t end = std::min(rest.find(' ', begin), rest.size());
    std::string word = rest.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty())
      continue;
    if (word[0] == '/') {
      result.results = std::stoul(word.substr(1));
      continue;
    }
    std::string name = word.substr(0, word.find('='));
    const OpAttribute *attribute = info->findAttribute(name);
    if (!attribute)
      throw std::invalid_argument("no such attribute: " + word);
    result.attributes[name] = readAttribute(*attribute, word.substr(word.find('=') + 1));
  }
  return result;
}

Expected<std::vector<ValueFacts>> ShapeCase::infer(bool symbolic) const {
  std::vector<ValueFacts> facts;
  for (const Operand &operand : operands) {
    ValueFacts one;
    one.absent = operand.absent;
    one.type = operand.absent ? DVT_UNDEFINED : operand.type;
    for (size_t d = 0; d < operand.extents.size(); ++d)
      one.shape.push_back(symbolic && !operand.names[d].empty() ? Extent::symbol(operand.names[d])
                                                                : Extent(operand.extents[d]));
    one.constant = operand.constant;
    one.bytes = operand.bytes;
    facts.push_back(std::move(one));
  }
  SymbolRanges ranges;
  InferContext context(*findOnnxOp(op), "node", attributes, std::move(facts), results, ranges);
  if (Status status = inferShapes(context); !status)
    return status.takeError();
  return context.takeResults();
}

std::vector<std::string> inferByOnnx(const ShapeCase &shapeCase) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  auto *opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(28);
  auto *graph = model.mutable_graph();
  graph->set_name("case");
  auto *node = graph->add_node();
  node->set_op_type(shapeCase.op);
  for (size_t i = 0; i < shapeCase.operands.size(); ++i) {
    const ShapeCase::Operand &operand = shapeCase.operands[i];
    std::string name = operand.absent ? "" : "in" + std::to_string(i);
    node->add_input(name);
    if (operand.absent)
      continue;
    if (operand.constant) {
      auto *tensor = graph->add_initializer();
      tensor->set_name(name);
      tensor->set_data_type(int(operand.type));
      for (int64_t extent : operand.extents)
        tensor->add_dims(extent);
      tensor->set_raw_data(std::string(operand.bytes.begin(), operand.bytes.end()));
    } else {
      auto *input = graph->add_input();
      input->set_name(name);
      addTensorType(*input->mutable_type(), operand);
    }
  }
  for (const auto &[name, value] : shapeCase.attributes)
    addAttribute(*node, name, value);
  for (size_t i = 0; i < shapeCase.results; ++i) {
    node->add_output("out" + std::to_string(i));
    graph->add_output()->set_name("out" + std::to_string(i));
  }
  onnx::ShapeInferenceOptions options{true, 1, true};
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options);
  std::vector<std::string> texts;
  for (const auto &output : graph->output()) {
    if (!output.type().has_tensor_type() || !output.type().tensor_type().has_shape()) {
      texts.emplace_back();
      continue;
    }
    std::string text = typeName(dvt_type(output.type().tensor_type().elem_type()));
    std::string extents;
    for (const auto &dim : output.type().tensor_type().shape().dim())
      extents += (extents.empty() ? "" : ",") +
                 (dim.has_dim_value() ? std::to_string(dim.dim_value()) : std::string("?"));
    texts.push_back(text + "[" + extents + "]");
  }
  return texts;
}

} // namespace dovetail::graph
