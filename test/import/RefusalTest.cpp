// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a model is said in one message that names the node; nothing wrong comes
// through.
#include "ModelBuilder.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "import/WireScan.h"

namespace dovetail::importer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string importedBytes(const std::string &bytes) {
  mlir::MLIRContext context;
  auto module = importOnnx(bytes, nullptr, context);
  if (module)
    return "imported";
  EXPECT_EQ(module.error().kind, ErrorKind::BadInput);
  return module.error().message;
}

TEST(Refusal, FilesThatAreNoModels) {
  mlir::MLIRContext context;
  EXPECT_THAT(importOnnx(std::string("/nowhere/at/all.onnx"), context).error().message,
              HasSubstr("/nowhere/at/all.onnx: there is no such file"));
  EXPECT_THAT(importOnnx(testing::TempDir(), context).error().message,
              HasSubstr("it is a folder, not a file"));
  EXPECT_THAT(importedBytes(""), HasSubstr("it is empty"));
  EXPECT_THAT(importedBytes("PK\3\4 this is another format"), HasSubstr("not a"));
  EXPECT_THAT(importedBytes(std::string(300, '\0')), HasSubstr("broken protobuf data at byte 0"));
  onnx::ModelProto empty;
  empty.set_ir_version(8);
  EXPECT_THAT(importedBytes(empty.SerializeAsString()), HasSubstr("it has no graph"));
}

TEST(Refusal, EveryCutOfAModel) {
  std::string bytes =
      graphModel("g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add(x, w) }")
          .SerializeAsString();
  unsigned broken = 0;
  for (size_t length = 0; length < bytes.size(); ++length)
    broken += importedBytes(bytes.substr(0, length)) != "imported";
  // A cut between two fields at the very end leaves a complete model.
  EXPECT_GE(broken, bytes.size() - 20);
  EXPECT_EQ(importedBytes(bytes), "imported");
}

TEST(Refusal, DeepNesting) {
  std::string graph;
  for (int i = 0; i < 400; ++i) {
    onnx::NodeProto node; // node { attribute { g: graph } }
    node.set_op_type("If");
    auto &attribute = *node.add_attribute();
    attribute.set_name("then_branch");
    attribute.set_type(onnx::AttributeProto::GRAPH);
    std::string around = node.SerializeAsString();
    auto field = [](char tag, const std::string &content) {
      std::string text(1, tag);
      for (size_t size = content.size();; size >>= 7) {
        text.push_back(char((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
        if (size <= 0x7f)
          break;
      }
      return text + content;
    };
    graph = field('\x0a',
                  field('\x2a', field('\x32', graph))); // Graph.node, Node.attribute, Attribute.g
  }
  std::string model("\x08\x08\x3a", 3);
  for (size_t size = graph.size();; size >>= 7) {
    model.push_back(char((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
    if (size <= 0x7f)
      break;
  }
  EXPECT_THAT(importedBytes(model + graph), HasSubstr("nested deeper than"));
}

std::string refused(const std::string &graph, int opSet = 21) {
  return importedText(graphModel(graph, opSet));
}

TEST(Refusal, NodesThatDoNotHangTogether) {
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Add(x, nowhere) }"),
              AllOf(HasSubstr("Add producing y"), HasSubstr("uses the value 'nowhere'")));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] z) { y = Relu(x) }"),
              HasSubstr("output 'z' is produced by no"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Relu(x) y = Neg(x) }"),
              HasSubstr("value 'y' is produced by both"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] x) { x = Relu(x) }"),
              HasSubstr("is also an input"));
  EXPECT_THAT(
      refused("g (float[2] x) => (float[2] y) { a = Add(x, b) b = Neg(a) y = Relu(b) }"),
      AllOf(HasSubstr("cycle"), HasSubstr("Neg producing b"), HasSubstr("Add producing a")));
}

TEST(Refusal, UnknownOpsDomainsAndVersions) {
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Frobnicate(x) }"),
              AllOf(HasSubstr("Frobnicate"), HasSubstr("there is no ONNX op of this name")));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Gelu(x) }", 11),
              HasSubstr("added after version 11"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Upsample(x) }", 12),
              HasSubstr("removed in version 10"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Relu(x) }", 99),
              HasSubstr("version 99"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Relu(x) }", 6),
              HasSubstr("version 6 of the ONNX op set; versions 7 to"));
  EXPECT_THAT(
      importedText(parseModel("<ir_version: 8, opset_import: [\"\" : 17, \"com.example\" : 1]>\n"
                              "g (float[2] x) => (float[2] y) { y = com.example.Thing(x) }")),
      AllOf(HasSubstr("com.example.Thing is not known"),
            HasSubstr("functions that the model defines")));
}

TEST(Refusal, OperandsAndAttributesThatAreNotDefined) {
  EXPECT_THAT(refused("g (float[2] x, int64[2] z) => (float[2] y) { y = Add(x, z) }"),
              AllOf(HasSubstr("operand 1 ('B') is a tensor(int64)"), HasSubstr("tensor(float)")));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = And(x, x) }"),
              HasSubstr("defined are tensor(bool)"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Relu <alpha=1.0> (x) }"),
              HasSubstr("alpha"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Concat (x) }"), HasSubstr("axis"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Add (x) }"), HasSubstr("Add"));
  EXPECT_THAT(refused("g (float[2,3] x, float[4,5] z) => (float[2,5] y) { y = MatMul (x, z) }"),
              HasSubstr("MatMul"));
  EXPECT_THAT(refused("g (float[2] x) => (float[2] y) { y = Cast <to=4294967297> (x) }"),
              HasSubstr("4294967297"));
  EXPECT_THAT(refused("g (float[2] x) => (int64[2] y) { y = Relu (x) }"),
              HasSubstr("output 'y' is declared as INT64 but the graph computes FLOAT"));
}

TEST(Refusal, WhatIsNotSupportedYet) {
  EXPECT_THAT(refused("g (string[2] x) => (string[2] y) { y = Identity (x) }"),
              HasSubstr("input 'x' has the element type STRING"));
  EXPECT_THAT(refused("g (seq(float[]) x) => (int64 y) { y = SequenceLength (x) }"),
              HasSubstr("input 'x' is a sequence"));
  EXPECT_THAT(
      refused(
          "g (float[2] x, int64 m, bool c) => (float[2] y) { y = Loop (m, c, x) < body = b (int64 "
          "i, bool d, float[2] a) => (bool e, float f) { e = Identity (d) f = ReduceSum "
          "<keepdims=0> (a) } > }"),
      HasSubstr("changes its number of dimensions from 1 to 0"));
  EXPECT_THAT(
      refused(
          "g (float[2] x, int64 m, bool c) => (float[2] y) { y = Loop (m, c, x) < body = b (int64 "
          "i, bool d, float[2] a) => (bool e, int64[2] f) { e = Identity (d) f = Cast <to=7> (a) } "
          "> }"),
      HasSubstr("changes its type"));
  EXPECT_THAT(
      refused(
          "g (float[2] x, float[3] z) => (float[2] y, float[2] u) { y, u = Scan (x, z) < "
          "num_scan_inputs = 2, body = b (float a, float d) => (float e, float f) { e = Neg (a) "
          "f = Neg (d) } > }"),
      HasSubstr("2 elements of one input and 3 of another"));
  EXPECT_THAT(refused("g (bool c, float[2] x) => (float[2] y) { y = If (c) < then_branch = t () => "
                      "(float[2] a) { a = Neg (x) }, else_branch = e () => (float b) { b = "
                      "ReduceSum <keepdims=0> (x) } > }"),
              HasSubstr("other types or numbers of dimensions in the two branches"));
}

TEST(Refusal, FunctionsThatCallThemselves) {
  EXPECT_THAT(importedText(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
      g (float[N] x) => (float[N] y) { y = local.f (x) }
      <domain: "local", opset_import: ["" : 17, "local" : 1]>
      f (a) => (c) { c = local.f (a) })")),
              HasSubstr("call each other"));
}

TEST(Refusal, BodiesThatAreImportedAgain) {
  // Innermost ten nodes; each loop takes two passes.
  std::string nodes;
  for (int i = 0; i < 10; ++i)
    nodes += fmt::format("a{} = Neg ({}) ", i, i ? fmt::format("a{}", i - 1) : "v");
  std::string loop = nodes + "w = Concat <axis=0> (a9, x) ";
  std::string name;
  for (int depth = 0; depth < 4; ++depth) {
    std::string outer = name + "_";
    std::string body =
        fmt::format("y{0} = Loop (m, go, v{1}) < body = b{0} (int64 i{0}, bool c{0}, "
                    "float[N] v{0}) => (bool d{0}, float[N] w{0}) {{ d{0} = "
                    "Identity (c{0}) {2} }} > ",
                    name, outer, loop);
    loop = body + fmt::format("w{0} = Identity (y{1}) ", outer, name);
    name = outer;
  }
  onnx::ModelProto model = graphModel(fmt::format(
      "g (float[2] v{0}, float[2] x, int64 m, bool go) => (float[N] w{0}) {{ {1} }}", name, loop));
  ImportOptions options;
  options.mostNodes = 50; // all of them are about thirty
  EXPECT_THAT(importedText(model, options), testing::StartsWith("module"));
  options.mostRepeatedNodes = 50;
  EXPECT_THAT(importedText(model, options), HasSubstr("bodies of loops are imported again"));
  options = {};
  options.mostNodes = 20;
  EXPECT_THAT(importedText(model, options),
              HasSubstr("more than 20 nodes once its functions and bodies"));
}

onnx::ModelProto withTensor(const onnx::TensorProto &tensor) {
  onnx::ModelProto model = graphModel("g (float[2] x) => (float[2] y) { y = Add(x, w) }");
  *model.mutable_graph()->add_initializer() = tensor;
  return model;
}

onnx::TensorProto floats(std::vector<int64_t> extents, size_t bytes) {
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t extent : extents)
    tensor.add_dims(extent);
  tensor.set_raw_data(std::string(bytes, '\0'));
  return tensor;
}

TEST(Refusal, TensorsThatDoNotHoldWhatTheyClaim) {
  EXPECT_THAT(importedText(withTensor(floats({2}, 4))),
              HasSubstr("tensor 'w' of FLOAT[2] needs 8 bytes of data but has 4"));
  EXPECT_THAT(importedText(withTensor(floats({3000}, 8000))),
              HasSubstr("needs 12000 bytes of data but has 8000"));
  EXPECT_THAT(importedText(withTensor(floats({-1}, 4))), HasSubstr("impossible extents [-1]"));
  EXPECT_THAT(importedText(withTensor(floats({int64_t(1) << 62, int64_t(1) << 62}, 4))),
              HasSubstr("impossible extents"));
  onnx::TensorProto both = floats({2}, 8);
  both.add_float_data(1);
  EXPECT_THAT(importedText(withTensor(both)), HasSubstr("both raw_data and typed data"));
  onnx::TensorProto wrong = floats({2}, 0);
  wrong.clear_raw_data();
  wrong.add_int64_data(1);
  wrong.add_int64_data(1);
  EXPECT_THAT(importedText(withTensor(wrong)), HasSubstr("data in the field of another type"));
}

} // namespace
} // namespace dovetail::importer
