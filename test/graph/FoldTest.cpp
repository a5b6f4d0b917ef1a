// SPDX-License-Identifier: Apache-2.0
//
// Constant folding with an evaluator of its own, which knows add and expand of f32 only: what is
// asked of it, what becomes of its answers and what is left alone.
#include <cstring>

#include <gtest/gtest.h>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "graph/ConstantData.h"
#include "graph/Graph.h"
#include "graph/Passes.h"

using namespace dovetail;
using namespace dovetail::graph;

namespace {

std::vector<std::string> asked;

std::vector<float> elementsOf(const Problem &problem, const std::vector<const void *> &inputs,
                              uint32_t number) {
  const ProblemValue &value = problem.values[number];
  std::vector<float> elements(size_t(elementCount(value.extents).value()));
  const void *source = value.literal.data();
  for (size_t i = 0; i < problem.inputs.size(); ++i)
    if (problem.inputs[i] == number)
      source = inputs[i];
  std::memcpy(elements.data(), source, elements.size() * sizeof(float));
  return elements;
}

Expected<std::vector<std::vector<uint8_t>>> evaluate(const Problem &problem,
                                                     std::vector<const void *> inputs) {
  asked.push_back(problem.text());
  const ProblemOp &op = problem.ops.front();
  if (op.name != "add")
    return unavailable("only add");
  std::vector<float> a = elementsOf(problem, inputs, op.inputs[0]),
                     b = elementsOf(problem, inputs, op.inputs[1]);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] += b[b.size() == 1 ? 0 : i];
  std::vector<uint8_t> bytes(a.size() * sizeof(float));
  std::memcpy(bytes.data(), a.data(), bytes.size());
  return std::vector<std::vector<uint8_t>>{bytes};
}

/// Folds `text` and gives it back as text.
std::string folded(const char *text, const GraphOptions &options = {}) {
  asked.clear();
  Graph graph;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &graph.context());
  EXPECT_TRUE(module);
  graph.setModule(module.release());
  EXPECT_TRUE(foldConstants(graph.module(), options, evaluate));
  return graph.text();
}

constexpr const char *kAdd = R"(
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %a = dvt.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
    %b = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
    %c = dvt.add(%a, %b) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %d = dvt.add(%c, %c) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %y = dvt.sub(%x, %d) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  })";

TEST(FoldConstants, EvaluatesChains) {
  std::string text = folded(kAdd);
  EXPECT_NE(text.find("dense<[3.000000e+00, 5.000000e+00, 7.000000e+00]>"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("dvt.add"), std::string::npos);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_NE(asked[0].find("add@14"), std::string::npos) << asked[0];
}

TEST(FoldConstants, LeavesWhatTheEvaluatorRefuses) {
  std::string text = folded(R"(
    func.func @main() -> tensor<1xf32> {
      %a = dvt.constant {value = dense<4.0> : tensor<1xf32>} : tensor<1xf32>
      %c = dvt.sqrt(%a) : (tensor<1xf32>) -> tensor<1xf32>
      return %c : tensor<1xf32>
    })");
  EXPECT_NE(text.find("dvt.sqrt"), std::string::npos);
  EXPECT_EQ(asked.size(), 1u);
}

TEST(FoldConstants, DoesNotGrowBeyondTheBound) {
  const char *text = R"(
    func.func @main() -> tensor<1000x1000xf32> {
      %a = dvt.constant {value = dense<4.0> : tensor<1000x1xf32>} : tensor<1000x1xf32>
      %b = dvt.constant {value = dense<4.0> : tensor<1x1000xf32>} : tensor<1x1000xf32>
      %c = dvt.add(%a, %b) : (tensor<1000x1xf32>, tensor<1x1000xf32>) -> tensor<1000x1000xf32>
      return %c : tensor<1000x1000xf32>
    })";
  folded(text);
  EXPECT_TRUE(asked.empty());
}

TEST(FoldConstants, KeepsWeightsQuantized) {
  folded(R"(
    func.func @main() -> tensor<1x2xf32> {
      %a = dvt.constant {value = dense<[[1, 2]]> : tensor<1x2xi8>} : tensor<1x2xi8>
      %s = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
      %c = dvt.dequantize_linear(%a, %s) {axis = 1 : i64} : (tensor<1x2xi8>, tensor<f32>) -> tensor<1x2xf32>
      return %c : tensor<1x2xf32>
    })");
  EXPECT_TRUE(asked.empty());
}

TEST(FoldConstants, DequantizesBiases) {
  folded(R"(
    func.func @main() -> tensor<2xf32> {
      %a = dvt.constant {value = dense<[1, 2]> : tensor<2xi32>} : tensor<2xi32>
      %s = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
      %c = dvt.dequantize_linear(%a, %s) {axis = 1 : i64} : (tensor<2xi32>, tensor<f32>) -> tensor<2xf32>
      return %c : tensor<2xf32>
    })");
  EXPECT_FALSE(asked.empty());
}

TEST(FoldConstants, ViewsShareBytesWithoutTheEvaluator) {
  std::string text = folded(R"(
    func.func @main() -> tensor<2x2xf32> {
      %a = dvt.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
      %s = dvt.constant {value = dense<[2, 2]> : tensor<2xi64>} : tensor<2xi64>
      %c = dvt.reshape(%a, %s) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
      return %c : tensor<2x2xf32>
    })");
  EXPECT_EQ(text.find("dvt.reshape"), std::string::npos) << text;
  EXPECT_TRUE(asked.empty());
}

TEST(ConstantBytes, BoolsAndSmallTypesAreUnpacked) {
  Graph graph;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    func.func @main() -> (tensor<3xi1>, tensor<3xi4>, tensor<3xi1>) {
      %a = dvt.constant {value = dense<[true, false, true]> : tensor<3xi1>} : tensor<3xi1>
      %b = dvt.constant {value = dense<[1, -1, 7]> : tensor<3xi4>} : tensor<3xi4>
      %c = dvt.constant {value = dense<true> : tensor<3xi1>} : tensor<3xi1>
      return %a, %b, %c : tensor<3xi1>, tensor<3xi4>, tensor<3xi1>
    })",
                                                        &graph.context());
  ASSERT_TRUE(module);
  std::vector<std::vector<uint8_t>> found;
  module->walk([&](ConstantOp constant) {
    ConstantBytes bytes = constantBytes(constant);
    const auto *first = static_cast<const uint8_t *>(bytes.data);
    found.emplace_back(first, first + bytes.size);
  });
  EXPECT_EQ(found[0], (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(found[1], (std::vector<uint8_t>{0xf1, 0x07}));
  EXPECT_EQ(found[2], (std::vector<uint8_t>{1, 1, 1}));
  // And back.
  auto type = mlir::RankedTensorType::get({3}, mlir::IntegerType::get(&graph.context(), 4));
  ConstantBytes again = constantBytes(elementsAttribute(type, found[1], "again"));
  EXPECT_EQ(std::memcmp(again.data, found[1].data(), found[1].size()), 0);
}

} // namespace
