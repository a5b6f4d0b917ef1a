// SPDX-License-Identifier: Apache-2.0
//
// What an import looks like: types, symbols, names, constants, functions, conditionals; and that
// the extents it states are those libonnx infers by itself.
#include "ModelBuilder.h"
#include "ModelTexts.h"

#include <gmock/gmock.h>
#include <onnx/shape_inference/implementation.h>

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"
#include "graph/TensorType.h"

namespace dovetail::importer {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Importer, NamesTypesAndAttributes) {
  std::string text = importedText(graphModel("g (float[N,3] x, uint8[2] u) => (float[N,3] y, "
                                             "uint8[2] v) { y = LeakyRelu(x) v = Identity(u) }"));
  EXPECT_THAT(text, HasSubstr("%arg0: tensor<?x3xf32, [\"N\", \"3\"]> {dvt.name = \"x\"}"));
  EXPECT_THAT(text, HasSubstr("%arg1: tensor<2xui8> {dvt.name = \"u\"}"));
  EXPECT_THAT(text, HasSubstr("tensor<2xui8> {dvt.name = \"v\"}"));
  EXPECT_THAT(text, HasSubstr("dvt.leaky_relu(%arg0) {alpha = 0.00999999977 : f32}"));
  EXPECT_THAT(text, Not(HasSubstr("identity")));
}

TEST(Importer, UnnamedDimensionsGetSymbolsOfTheirOwn) {
  onnx::ModelProto model = graphModel("g (float[A,B,C,D] x) => (float[A,B,C,D] y) { y = Relu(x) }");
  auto &shape = *model.mutable_graph()
                     ->mutable_input(0)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape();
  shape.mutable_dim(0)->set_dim_param("?");
  shape.mutable_dim(1)->set_dim_param("?");
  shape.mutable_dim(2)->set_dim_value(-1);
  shape.mutable_dim(3)->clear_dim_param();
  EXPECT_THAT(importedText(model), HasSubstr("[\"x_0\", \"x_1\", \"x_2\", \"x_3\"]"));
}

TEST(Importer, NamesThatAreNoSymbolsAreMadeOnes) {
  onnx::ModelProto model = graphModel("g (float[A,B,A] x) => (float[A,B,A] y) { y = Relu(x) }");
  auto &shape = *model.mutable_graph()
                     ->mutable_input(0)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape();
  shape.mutable_dim(0)->set_dim_param("batch size");
  shape.mutable_dim(1)->set_dim_param("batch*size");
  shape.mutable_dim(2)->set_dim_param("batch size");
  EXPECT_THAT(importedText(model), HasSubstr("[\"batch_size\", \"batch_size_2\", \"batch_size\"]"));
}

TEST(Importer, DimsAndShapesAreFixedByOptions) {
  onnx::ModelProto model = graphModel("g (float[N,C,N] x) => (float[N,C,N] y) { y = Relu(x) }");
  ImportOptions options;
  options.dims["N"] = 4;
  EXPECT_THAT(importedText(model, options), HasSubstr("tensor<4x?x4xf32, [\"4\", \"C\", \"4\"]>"));
  options.dims["Q"] = 1;
  EXPECT_THAT(importedText(model, options),
              HasSubstr("no dimension 'Q' to set to 1; its open dimensions are: N, C"));

  ImportOptions shaped;
  shaped.shapes["x"] = {2, Extent::symbol("L"), 2};
  EXPECT_THAT(importedText(model, shaped), HasSubstr("tensor<2x?x2xf32, [\"2\", \"L\", \"2\"]>"));
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_THAT(importedText(model), HasSubstr("input 'x' has no shape"));
  EXPECT_THAT(importedText(model, shaped), HasSubstr("tensor<2x?x2xf32, [\"2\", \"L\", \"2\"]>"));
}

/// The one constant of a graph, as bytes.
std::vector<uint8_t> onlyConstant(mlir::ModuleOp module) {
  std::vector<uint8_t> bytes;
  int count = 0;
  module.walk([&](graph::ConstantOp constant) {
    ++count;
    graph::ConstantBytes data = graph::constantBytes(constant);
    bytes.assign(static_cast<const uint8_t *>(data.data),
                 static_cast<const uint8_t *>(data.data) + data.size);
  });
  EXPECT_EQ(count, 1);
  return bytes;
}

onnx::ModelProto modelWithTensor(onnx::TensorProto tensor) {
  onnx::ModelProto model = graphModel("g (float[1] x) => (float[1] y, float[1] w) { y = Relu(x) }");
  tensor.set_name("w");
  auto &type = *model.mutable_graph()->mutable_output(1)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(tensor.data_type());
  *model.mutable_graph()->add_initializer() = std::move(tensor);
  return model;
}

std::vector<uint8_t> importedBytes(const onnx::TensorProto &tensor) {
  mlir::MLIRContext context;
  auto module = importModel(modelWithTensor(tensor), context);
  EXPECT_TRUE(bool(module)) << module.error().message;
  return module ? onlyConstant(**module) : std::vector<uint8_t>();
}

onnx::TensorProto tensorOf(onnx::TensorProto::DataType type, std::vector<int64_t> extents) {
  onnx::TensorProto tensor;
  tensor.set_data_type(type);
  for (int64_t extent : extents)
    tensor.add_dims(extent);
  return tensor;
}

TEST(Importer, ConstantsKeepTheirBytesHoweverTheyAreStored) {
  using onnx::TensorProto;
  TensorProto floats = tensorOf(TensorProto::FLOAT, {2});
  floats.add_float_data(1.0f);
  floats.add_float_data(-2.0f);
  EXPECT_EQ(importedBytes(floats), (std::vector<uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}));

  TensorProto bools = tensorOf(TensorProto::BOOL, {4});
  bools.set_raw_data(std::string("\0\1\2\xff", 4));
  EXPECT_EQ(importedBytes(bools), (std::vector<uint8_t>{0, 1, 1, 1}));

  TensorProto wide = tensorOf(TensorProto::BOOL, {3});
  for (int value : {256, 0, -1})
    wide.add_int32_data(value);
  EXPECT_EQ(importedBytes(wide), (std::vector<uint8_t>{1, 0, 1}));

  TensorProto nibbles = tensorOf(TensorProto::INT4, {3});
  nibbles.set_raw_data("\x21\x0f");
  EXPECT_EQ(importedBytes(nibbles), (std::vector<uint8_t>{0x21, 0x0f}));

  TensorProto halves = tensorOf(TensorProto::FLOAT16, {2});
  halves.add_int32_data(0x3c00);
  halves.add_int32_data(0xbc00);
  EXPECT_EQ(importedBytes(halves), (std::vector<uint8_t>{0x00, 0x3c, 0x00, 0xbc}));

  TensorProto longs = tensorOf(TensorProto::INT64, {1});
  longs.add_int64_data(-2);
  EXPECT_EQ(importedBytes(longs), (std::vector<uint8_t>{0xfe, 255, 255, 255, 255, 255, 255, 255}));

  EXPECT_TRUE(importedBytes(tensorOf(TensorProto::FLOAT, {0, 3})).empty());
}

TEST(Importer, LargeConstantsAreNotCopied) {
  onnx::TensorProto tensor = tensorOf(onnx::TensorProto::FLOAT, {64, 64});
  std::string payload(64 * 64 * 4, '\0');
  for (size_t i = 0; i < payload.size(); ++i)
    payload[i] = char(i * 7);
  tensor.set_raw_data(payload);
  auto bytes = std::make_shared<const std::string>(modelWithTensor(tensor).SerializeAsString());
  std::weak_ptr<const std::string> alive = bytes;
  {
    mlir::MLIRContext context;
    auto module = importOnnx(*bytes, bytes, context);
    ASSERT_TRUE(bool(module)) << module.error().message;
    const std::string &file = *bytes;
    bytes.reset();
    bool found = false;
    (*module)->walk([&](graph::ConstantOp constant) {
      graph::ConstantBytes data = graph::constantBytes(constant);
      auto *start = static_cast<const char *>(data.data);
      EXPECT_GE(start, file.data());
      EXPECT_LE(start + data.size, file.data() + file.size());
      EXPECT_EQ(std::string(start, data.size), payload);
      found = true;
    });
    EXPECT_TRUE(found);
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired()) << "the context is gone, nothing refers to the bytes any more";
}

TEST(Importer, InitializersThatAreInputsAreConstantsUnlessKept) {
  onnx::ModelProto model =
      graphModel("g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }");
  onnx::TensorProto tensor = tensorOf(onnx::TensorProto::FLOAT, {2});
  tensor.set_name("w");
  tensor.add_float_data(1);
  tensor.add_float_data(2);
  *model.mutable_graph()->add_initializer() = tensor;
  std::string constant = importedText(model);
  EXPECT_THAT(constant, HasSubstr("dvt.constant"));
  EXPECT_THAT(constant, Not(HasSubstr("%arg1")));
  ImportOptions options;
  options.keepInputs = {"w"};
  std::string kept = importedText(model, options);
  EXPECT_THAT(kept, Not(HasSubstr("dvt.constant")));
  EXPECT_THAT(kept, HasSubstr("%arg1: tensor<2xf32> {dvt.name = \"w\"}"));
}

TEST(Importer, OnlyWhatOutputsNeedIsImportedInAnyOrder) {
  onnx::ModelProto model = graphModel(
      "g (float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) unused = StringNormalizer(x) }");
  std::string text = importedText(model);
  EXPECT_THAT(text, HasSubstr("dvt.neg"));
  model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  EXPECT_EQ(importedText(model), text);
}

TEST(Importer, FunctionsOfTheModelAreExpanded) {
  std::string text = importedText(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
      g (float[N] x, float z) => (float[N] y, float[N] w) {
        y = local.shifted <slope=0.5> (x, z)
        w = local.shifted (x)
      }
      <domain: "local", opset_import: ["" : 17]>
      shifted <slope: float = 0.25> (a, b) => (c) {
        l = LeakyRelu <alpha: float = @slope> (a)
        c = Clip (l, b)
      })"));
  EXPECT_THAT(text, Not(HasSubstr("error")));
  EXPECT_THAT(text, HasSubstr("alpha = 5.000000e-01"));
  EXPECT_THAT(text, HasSubstr("alpha = 2.500000e-01"));
  EXPECT_THAT(text, HasSubstr("dvt.clip"));
}

TEST(Importer, ConditionalsBecomeRegionsOrTheChosenBranch) {
  std::string text = importedText(graphModel(modelTexts()[7].graph, modelTexts()[7].opSet));
  EXPECT_THAT(text, HasSubstr("dvt.if"));
  EXPECT_THAT(text, HasSubstr("dvt.neg"));
  EXPECT_THAT(text, HasSubstr("dvt.abs"));

  std::string chosen = importedText(graphModel(R"(
      g (float[4] x) => (float[4] y) <int64 four = {4}, int64 zero = {0}> {
        s = Shape (x)
        n = Gather (s, zero)
        c = Equal (n, four)
        y = If (c) < then_branch = t () => (float[4] a) { a = Neg (x) },
                     else_branch = e () => (float[4,1] b) { b = Unsqueeze (x, zero) } >
      })",
                                               16));
  EXPECT_THAT(chosen, HasSubstr("dvt.neg"));
  EXPECT_THAT(chosen, Not(HasSubstr("dvt.if")));
}

/// Element type and extents; "?" where libonnx does not know.
std::string typeText(int type, const std::vector<std::string> &extents,
                     const onnx::TypeProto::Tensor &reference) {
  std::string text = std::to_string(type) + ":";
  if (!reference.has_shape())
    return text + "?";
  for (size_t i = 0; i < extents.size(); ++i)
    text += (int(i) < reference.shape().dim_size() && reference.shape().dim(int(i)).has_dim_value()
                 ? extents[i]
                 : "?") +
            ",";
  return text;
}

TEST(Importer, ExtentsAgreeWithLibonnx) {
  int known = 0;
  for (const ModelText &source : modelTexts()) {
    onnx::ModelProto model = graphModel(source.graph, source.opSet);
    int64_t next = 12; // all symbols become numbers
    std::map<std::string, int64_t> numbers;
    for (auto &input : *model.mutable_graph()->mutable_input())
      for (auto &dimension :
           *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (dimension.has_dim_param()) {
          dimension.set_dim_value(numbers.emplace(dimension.dim_param(), next).first->second);
          next += 4;
        }
    for (auto &output : *model.mutable_graph()->mutable_output())
      output.mutable_type()->mutable_tensor_type()->clear_shape();

    mlir::MLIRContext context;
    auto module = importModel(model, context);
    ASSERT_TRUE(bool(module)) << source.name << ": " << module.error().message;
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions{false, 1, true});
    auto main = (*module)->lookupSymbol<mlir::func::FuncOp>("main");
    for (int i = 0; i < model.graph().output_size(); ++i) {
      auto type = mlir::cast<mlir::RankedTensorType>(main.getResultTypes()[unsigned(i)]);
      const onnx::TypeProto::Tensor &reference = model.graph().output(i).type().tensor_type();
      std::vector<std::string> ours, theirs;
      for (const Extent &extent : graph::extentsOf(type))
        ours.push_back(extent.text());
      for (const auto &dimension : reference.shape().dim())
        theirs.push_back(std::to_string(dimension.dim_value()));
      EXPECT_EQ(typeText(int(graph::elementType(type)), ours, reference),
                typeText(reference.elem_type(), theirs, reference))
          << source.name << " output " << i;
      known += reference.has_shape();
    }
  }
  EXPECT_GE(known, 10);
}

} // namespace
} // namespace dovetail::importer
