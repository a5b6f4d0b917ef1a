// SPDX-License-Identifier: Apache-2.0
//
// The functions the driver calls: fixing dimensions, the whole optimisation, and text of a graph.
#include <gtest/gtest.h>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "graph/Graph.h"
#include "graph/GraphDialect.h"
#include "graph/InferShapes.h"
#include "graph/Passes.h"
#include "graph/TensorType.h"

using namespace dovetail;
using namespace dovetail::graph;

namespace {

Graph parse(const char *text) {
  Graph graph;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &graph.context());
  EXPECT_TRUE(module);
  graph.setModule(module.release());
  return graph;
}

constexpr const char *kPool = R"(
  func.func @main(%x: tensor<?x3x?x?xf32, ["N", "3", "H", "W"]> {dvt.name = "x"}) -> tensor<*xf32> {
    %y = dvt.max_pool(%x) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<?x3x?x?xf32, ["N", "3", "H", "W"]>) -> tensor<*xf32>
    return %y : tensor<*xf32>
  })";

TEST(SetDims, SpecialisesEveryType) {
  Graph graph = parse(kPool);
  ASSERT_TRUE(setDims(graph.module(), {{"N", 2}, {"H", 9}}));
  EXPECT_EQ(symbolsOf(graph.module()), std::vector<std::string>{"W"});
  EXPECT_NE(
      graph.text().find("tensor<2x3x4x?xf32, [\"2\", \"3\", \"4\", \"max(1,floordiv(W,2))\"]>"),
      std::string::npos)
      << graph.text();
}

TEST(SetDims, RefusesWhatTheModelDoesNotHave) {
  Graph graph = parse(kPool);
  Status status = setDims(graph.module(), {{"K", 2}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::BadInput);
  EXPECT_NE(status.error().message.find("H, N, W"), std::string::npos);
}

TEST(SetDims, HonoursRanges) {
  Graph graph = parse(kPool);
  setSymbolRanges(graph.module(), {{"N", {1, 8, 2}}});
  EXPECT_FALSE(setDims(graph.module(), {{"N", 3}}));
  EXPECT_FALSE(setDims(graph.module(), {{"N", 10}}));
  EXPECT_TRUE(setDims(graph.module(), {{"N", 4}}));
  EXPECT_TRUE(symbolRanges(graph.module()).empty());
}

TEST(InferShapes, KeepsDataDependentSymbols) {
  Graph graph = parse(R"(
    func.func @main(%x: tensor<4xf32>) -> tensor<*xi64> {
      %y = dvt.non_zero(%x) : (tensor<4xf32>) -> tensor<*xi64>
      return %y : tensor<*xi64>
    })");
  ASSERT_TRUE(inferShapes(graph.module()));
  std::string first = graph.text();
  EXPECT_EQ(symbolsOf(graph.module()), std::vector<std::string>{"non_zero.0"});
  EXPECT_EQ(symbolRanges(graph.module())["non_zero.0"].min, 0);
  ASSERT_TRUE(inferShapes(graph.module()));
  EXPECT_EQ(graph.text(), first);
}

TEST(InferShapes, SaysWhichNodeIsWrong) {
  Graph graph = parse(R"(
    func.func @main(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) -> tensor<*xf32> {
      %z = dvt.mat_mul(%x, %y) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<*xf32> loc("layer.3/fc")
      return %z : tensor<*xf32>
    })");
  auto facts = inferShapes(graph.module());
  ASSERT_FALSE(facts);
  EXPECT_NE(facts.error().message.find("MatMul 'layer.3/fc'"), std::string::npos)
      << facts.error().message;
}

TEST(OptimizeGraph, ReachesAFixedPoint) {
  Graph graph = parse(kPool);
  ASSERT_TRUE(optimizeGraph(graph.module(), {}, {}));
  std::string once = graph.text();
  ASSERT_TRUE(optimizeGraph(graph.module(), {}, {}));
  EXPECT_EQ(graph.text(), once);
}

} // namespace
