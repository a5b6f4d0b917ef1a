// SPDX-License-Identifier: Apache-2.0
//
// Whatever node comes in, of any op and op set, with operands and attributes of any kind, the
// importer gives a graph, which it has verified, or a message. The seed is fixed. Damaged files are
// the fuzz target's (test/fuzz).
#include <random>

#include <onnx/defs/schema.h>

#include "ModelBuilder.h"

namespace dovetail::importer {
namespace {

using Random = std::mt19937_64;

size_t pick(Random &random, size_t count) {
  return std::uniform_int_distribution<size_t>(0, count - 1)(random);
}

/// A value for an operand: an input of any shape and type, or a small constant, as axes and extents
/// are.
void addOperand(onnx::GraphProto &graph, const std::string &name, Random &random) {
  using onnx::TensorProto;
  constexpr TensorProto::DataType types[] = {
      TensorProto::FLOAT, TensorProto::FLOAT, TensorProto::FLOAT,
      TensorProto::INT64, TensorProto::INT64, TensorProto::BOOL,
      TensorProto::UINT8, TensorProto::INT32, TensorProto::FLOAT16};
  TensorProto::DataType type = types[pick(random, std::size(types))];
  constexpr int64_t extents[] = {0, 1, 1, 2, 3, 4, 6, 8};
  std::vector<int64_t> shape(pick(random, 6));
  for (int64_t &extent : shape)
    extent = extents[pick(random, std::size(extents))];
  if (pick(random, 3) == 0) {
    shape.resize(std::min<size_t>(shape.size(), 1));
    TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(name);
    bool isInteger = pick(random, 3) != 0;
    tensor.set_data_type(isInteger ? TensorProto::INT64 : TensorProto::FLOAT);
    for (int64_t extent : shape)
      tensor.add_dims(extent);
    int64_t count = shape.empty() ? 1 : shape[0];
    for (int64_t i = 0; i < count; ++i) {
      int64_t number = pick(random, 12) == 0 ? int64_t(random()) : int64_t(pick(random, 9)) - 3;
      isInteger ? tensor.add_int64_data(number) : tensor.add_float_data(float(number) / 2);
    }
    return;
  }
  onnx::ValueInfoProto &input = *graph.add_input();
  input.set_name(name);
  auto &tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (int64_t extent : shape) {
    auto &dimension = *tensor.mutable_shape()->add_dim();
    if (pick(random, 4) == 0)
      dimension.set_dim_param(std::string(1, char('A' + pick(random, 3))));
    else
      dimension.set_dim_value(extent);
  }
}

void addAttribute(onnx::NodeProto &node, const onnx::OpSchema::Attribute &defined, Random &random) {
  using onnx::AttributeProto;
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(defined.name);
  attribute.set_type(AttributeProto::AttributeType(defined.type));
  auto number = [&] {
    return pick(random, 20) == 0 ? int64_t(random()) : int64_t(pick(random, 8)) - 2;
  };
  size_t count = pick(random, 6);
  constexpr const char *texts[] = {"SAME_UPPER",    "VALID",
                                   "linear",        "cubic",
                                   "constant",      "reflect",
                                   "bij,bjk->bik",  "reverse",
                                   "mean",          "none",
                                   "bidirectional", "LEFT",
                                   "CRD",           "tf_crop_and_resize"};
  switch (defined.type) {
  case AttributeProto::INT:
    attribute.set_i(number());
    break;
  case AttributeProto::INTS:
    for (size_t i = 0; i < count; ++i)
      attribute.add_ints(number());
    break;
  case AttributeProto::FLOAT:
    attribute.set_f(float(number()) / 4);
    break;
  case AttributeProto::FLOATS:
    for (size_t i = 0; i < count; ++i)
      attribute.add_floats(float(number()) / 4);
    break;
  case AttributeProto::STRING:
    attribute.set_s(texts[pick(random, std::size(texts))]);
    break;
  default:
    node.mutable_attribute()->RemoveLast();
  }
}

} // namespace

TEST(Fuzz, NodesOfAnyOpGiveAGraphOrAMessage) {
  std::vector<onnx::OpSchema> schemas;
  for (const onnx::OpSchema &schema : onnx::OpSchemaRegistry::get_all_schemas_with_history())
    if (schema.domain().empty())
      schemas.push_back(schema);
  ASSERT_GT(schemas.size(), 400u);
  constexpr unsigned kRounds = 60000;
  Random random(7);
  unsigned imported = 0;
  auto context = std::make_unique<mlir::MLIRContext>();
  for (unsigned round = 0; round < kRounds; ++round) {
    if (round % 2000 == 0)
      context = std::make_unique<mlir::MLIRContext>();
    const onnx::OpSchema &schema = schemas[round % schemas.size()];
    onnx::ModelProto model;
    model.set_ir_version(10);
    model.add_opset_import()->set_version(std::max(7, schema.since_version()));
    onnx::GraphProto &graph = *model.mutable_graph();
    onnx::NodeProto &node = *graph.add_node();
    node.set_op_type(schema.Name());
    size_t least = size_t(schema.min_input()), most = size_t(std::min(schema.max_input(), 9));
    size_t inputs = least + pick(random, most > least ? most - least + 1 : 1);
    for (size_t i = 0; i < inputs; ++i) {
      if (i >= least && pick(random, 4) == 0) {
        node.add_input("");
        continue;
      }
      std::string name = i > 0 && pick(random, 6) == 0 ? "i0" : "i" + std::to_string(i);
      node.add_input(name);
      if (name == "i" + std::to_string(i))
        addOperand(graph, name, random);
    }
    for (const auto &[name, attribute] : schema.attributes())
      if (attribute.required || pick(random, 2))
        addAttribute(node, attribute, random);
    size_t outputs = size_t(std::max(1, std::min(schema.max_output(), 3)));
    for (size_t i = 0; i < outputs; ++i) {
      node.add_output("o" + std::to_string(i));
      graph.add_output()->set_name("o" + std::to_string(i));
    }
    auto bytes = std::make_shared<const std::string>(model.SerializeAsString());
    auto module = importOnnx(*bytes, bytes, *context);
    imported += bool(module);
    if (!module) {
      EXPECT_NE(module.error().kind, ErrorKind::Internal) << module.error().message << "\n"
                                                          << model.DebugString();
      EXPECT_FALSE(module.error().message.empty());
    }
  }
  EXPECT_GT(imported, kRounds / 20);
  EXPECT_LT(imported, kRounds);
}

} // namespace dovetail::importer
