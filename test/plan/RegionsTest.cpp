// SPDX-License-Identifier: Apache-2.0
//
// Which regions are formed, and what their problems say.
#include <algorithm>

#include <gtest/gtest.h>

#include "TableSketch.h"
#include "plan/Regions.h"

namespace dovetail::plan {
namespace {

std::vector<std::vector<uint32_t>> regionOps(TableSketch &sketch) {
  linkUsers(sketch.table);
  std::vector<std::vector<uint32_t>> ops;
  for (const Region &region : formRegions(sketch.table))
    ops.push_back(region.ops);
  return ops;
}

bool contains(const std::vector<std::vector<uint32_t>> &regions, std::vector<uint32_t> ops) {
  return std::find(regions.begin(), regions.end(), ops) != regions.end();
}

TEST(Regions, residualBlockOffersAllGroups) {
  TableSketch sketch;
  uint32_t x = sketch.value({1, 8, 4, 4}), w = sketch.value({8, 8, 3, 3}, true);
  sketch.table.inputs = {x};
  uint32_t y = sketch.op("conv", OpRole::Contraction, {x, w}, {1, 8, 4, 4});
  uint32_t sum = sketch.op("add", OpRole::Pointwise, {y, x}, {1, 8, 4, 4});
  uint32_t out = sketch.op("relu", OpRole::Pointwise, {sum}, {1, 8, 4, 4});
  sketch.table.outputs = {out};
  auto regions = regionOps(sketch);
  for (std::vector<uint32_t> ops :
       std::vector<std::vector<uint32_t>>{{0}, {1}, {2}, {0, 1}, {0, 1, 2}, {1, 2}})
    EXPECT_TRUE(contains(regions, ops)) << ops.size() << " ops from " << ops[0];
}

TEST(Regions, depthwiseConvolutionsTakeThePointwiseBehind) {
  auto grown = [](int64_t window, bool readTwice) {
    TableSketch sketch;
    uint32_t x = sketch.value({1, 8, 4, 4}), w = sketch.value({8, 1, 3, 3}, true),
             v = sketch.value({6, 8, window, window}, true);
    sketch.table.inputs = {x};
    uint32_t y = sketch.op("conv", OpRole::Contraction, {x, w}, {1, 8, 4, 4});
    sketch.table.ops.back().attributes["group"] = int64_t(8);
    uint32_t z = sketch.op("relu", OpRole::Pointwise, {y}, {1, 8, 4, 4});
    uint32_t p = sketch.op("conv", OpRole::Contraction, {z, v}, {1, 6, 4, 4});
    uint32_t out = sketch.op("relu", OpRole::Pointwise, {p}, {1, 6, 4, 4});
    sketch.table.outputs = {out};
    if (readTwice)
      sketch.table.outputs.push_back(z);
    return regionOps(sketch);
  };
  auto regions = grown(1, false);
  EXPECT_TRUE(contains(regions, {0, 1, 2}));
  EXPECT_TRUE(contains(regions, {0, 1, 2, 3}));
  EXPECT_FALSE(contains(grown(3, false), {0, 1, 2}));
  EXPECT_FALSE(contains(grown(1, true), {0, 1, 2}));
}

TEST(Regions, areConvex) {
  // relu feeds add directly and through top_k: relu+add without it would need what it gives, unless
  // relu is computed again by somebody else.
  TableSketch sketch;
  uint32_t x = sketch.value({4, 4});
  sketch.table.inputs = {x};
  uint32_t a = sketch.op("relu", OpRole::Pointwise, {x}, {4, 4});
  uint32_t b = sketch.op("top_k", OpRole::Other, {a}, {4, 4});
  uint32_t c = sketch.op("add", OpRole::Pointwise, {a, b}, {4, 4});
  sketch.table.outputs = {c};
  auto regions = regionOps(sketch);
  EXPECT_TRUE(contains(regions, {0}));
  EXPECT_TRUE(contains(regions, {2}));
  for (const Region &region : formRegions(sketch.table))
    if (region.ops == std::vector<uint32_t>{0, 2}) {
      EXPECT_EQ(region.outputs, std::vector<uint32_t>{c});
    }
}

TEST(Regions, dequantisedWeightsJoinTheirProducts) {
  // Two products share weights, one of them through a transpose; what follows joins, too.
  TableSketch sketch;
  uint32_t x = sketch.value({2, 8}), w = sketch.value({8, 8}, true), s = sketch.value({1, 8}, true);
  sketch.table.inputs = {x};
  uint32_t weights = sketch.op("dequantize_linear", OpRole::Dequantize, {w, s}, {8, 8});
  uint32_t y = sketch.op("mat_mul", OpRole::Contraction, {x, weights}, {2, 8});
  uint32_t turned = sketch.op("transpose", OpRole::Movement, {weights}, {8, 8});
  uint32_t z = sketch.op("mat_mul", OpRole::Contraction, {y, turned}, {2, 8});
  uint32_t out = sketch.op("relu", OpRole::Pointwise, {z}, {2, 8});
  sketch.table.outputs = {out};
  auto regions = regionOps(sketch);
  for (std::vector<uint32_t> ops :
       std::vector<std::vector<uint32_t>>{{0}, {1}, {2}, {3}, {0, 1}, {0, 2, 3}, {0, 2, 3, 4}})
    EXPECT_TRUE(contains(regions, ops)) << ops.size() << " ops from " << ops[0];
  for (const Region &region : formRegions(sketch.table))
    if (region.ops == std::vector<uint32_t>{0, 1}) {
      EXPECT_EQ(region.outputs, std::vector<uint32_t>{y}); // the weights are computed again
    }
}

TEST(Regions, opsOfManyInputsStandAloneAndGrow) {
  TableSketch sketch;
  std::vector<uint32_t> parts;
  for (int i = 0; i < 40; ++i)
    parts.push_back(sketch.value({1, 2, 4, 4}));
  sketch.table.inputs = parts;
  uint32_t whole = sketch.op("concat", OpRole::Movement, parts, {1, 80, 4, 4});
  uint32_t out = sketch.op("relu", OpRole::Pointwise, {whole}, {1, 80, 4, 4});
  sketch.table.outputs = {out};
  auto regions = regionOps(sketch);
  EXPECT_TRUE(contains(regions, {0}));
  EXPECT_TRUE(contains(regions, {1}));
  EXPECT_TRUE(contains(regions, {0, 1}));
}

TEST(Regions, quantizationJoinsWhatItSurrounds) {
  // One dequantised value feeds two convolutions; what is between regions are integers.
  TableSketch sketch;
  uint32_t x = sketch.input({1, 8, 4, 4}), s = sketch.value({}, true),
           w = sketch.value({8, 8, 1, 1}, true), v = sketch.value({8}, true);
  uint32_t xf = sketch.op("dequantize_linear", OpRole::Dequantize, {x, s}, {1, 8, 4, 4});
  uint32_t wf = sketch.op("dequantize_linear", OpRole::Dequantize, {w, v}, {8, 8, 1, 1});
  uint32_t y = sketch.op("conv", OpRole::Contraction, {xf, wf}, {1, 8, 4, 4});
  uint32_t r = sketch.op("relu", OpRole::Pointwise, {y}, {1, 8, 4, 4});
  uint32_t q = sketch.op("quantize_linear", OpRole::Quantize, {r, s}, {1, 8, 4, 4});
  uint32_t qf = sketch.op("dequantize_linear", OpRole::Dequantize, {q, s}, {1, 8, 4, 4});
  uint32_t z = sketch.op("conv", OpRole::Contraction, {qf, wf}, {1, 8, 4, 4});
  uint32_t sum = sketch.op("add", OpRole::Pointwise, {z, xf}, {1, 8, 4, 4});
  sketch.output(sketch.op("quantize_linear", OpRole::Quantize, {sum, s}, {1, 8, 4, 4}));
  auto regions = regionOps(sketch);
  // Ops: 0 and 1 dequantise, 2 conv, 3 relu, 4 quantise, 5 dequantise, 6 conv, 7 add, 8 quantise.
  EXPECT_TRUE(contains(regions, {0, 1, 2}));
  EXPECT_TRUE(contains(regions, {0, 1, 2, 3}));
  EXPECT_TRUE(contains(regions, {0, 1, 2, 3, 4}));
  EXPECT_TRUE(contains(regions, {1, 5, 6}));
  EXPECT_TRUE(contains(regions, {0, 1, 5, 6, 7, 8}));
  EXPECT_TRUE(contains(regions, {0, 7, 8}));
  for (const Region &region : formRegions(sketch.table)) {
    bool first = std::find(region.ops.begin(), region.ops.end(), 4u) != region.ops.end();
    EXPECT_FALSE(first && region.ops.back() > 4) << "nothing joins behind a quantisation";
    if (region.ops.size() > 1) {
      EXPECT_EQ(std::find(region.outputs.begin(), region.outputs.end(), xf), region.outputs.end())
          << "others compute it again";
    }
  }
}

TEST(Regions, layersThatDifferByTheirGridsShareAProblem) {
  // Ordinary scales and zero points of activations are operands; what decides how a kernel is made
  // stands in the text.
  auto textOf = [](float scale, uint8_t zero) {
    TableSketch sketch;
    uint32_t x = sketch.input({4, 4}), s = sketch.value({}, true), z = sketch.value({}, true);
    sketch.table.values[x].type = sketch.table.values[z].type = DVT_U8;
    auto give = [&](uint32_t value, const void *data, uint64_t bytes) {
      sketch.table.values[value].data = data;
      sketch.table.values[value].dataBytes = bytes;
    };
    give(s, &scale, sizeof scale);
    give(z, &zero, sizeof zero);
    sketch.output(sketch.op("dequantize_linear", OpRole::Dequantize, {x, s, z}, {4, 4}));
    linkUsers(sketch.table);
    return makeProblem(sketch.table, formRegions(sketch.table).front()).problem.text();
  };
  EXPECT_EQ(textOf(0.5f, 3), textOf(0.25f, 200));
  EXPECT_NE(textOf(0.5f, 3), textOf(0.5f, 0));
  EXPECT_NE(textOf(0.5f, 3), textOf(1e30f, 3));
  EXPECT_NE(textOf(1e30f, 3).find("1e+30"), std::string::npos);
}

TEST(Regions, cheapProducersAreComputedAgain) {
  TableSketch sketch;
  uint32_t x = sketch.value({4, 4}), w = sketch.value({4, 4}, true), v = sketch.value({4, 4}, true);
  sketch.table.inputs = {x};
  uint32_t a = sketch.op("relu", OpRole::Pointwise, {x}, {4, 4});
  uint32_t b = sketch.op("mat_mul", OpRole::Contraction, {a, w}, {4, 4});
  uint32_t c = sketch.op("mat_mul", OpRole::Contraction, {a, v}, {4, 4});
  uint32_t d = sketch.op("mat_mul", OpRole::Contraction, {b, v}, {4, 4});
  sketch.table.outputs = {c, d};
  linkUsers(sketch.table);
  std::vector<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>> found;
  for (const Region &region : formRegions(sketch.table))
    found.emplace_back(region.ops, region.outputs);
  auto has = [&](std::vector<uint32_t> ops, std::vector<uint32_t> outputs) {
    return std::find(found.begin(), found.end(), std::make_pair(ops, outputs)) != found.end();
  };
  EXPECT_TRUE(has({0}, {a}));
  EXPECT_TRUE(has({0, 1}, {b}));
  EXPECT_TRUE(has({0, 2}, {c}));
  EXPECT_FALSE(has({1, 3}, {d})); // a product is not cheap
}

TEST(Regions, viewsAndShapeDataNeedNone) {
  TableSketch sketch;
  uint32_t x = sketch.value({4, 4});
  sketch.table.inputs = {x};
  uint32_t a = sketch.op("reshape", OpRole::View, {x}, {16});
  uint32_t b = sketch.op("shape", OpRole::Other, {x}, {2});
  sketch.table.values[b].isShapeData = true;
  sketch.table.outputs = {a, b};
  EXPECT_TRUE(regionOps(sketch).empty());
}

TEST(Regions, problemHasSmallConstantsAsLiterals) {
  TableSketch sketch;
  uint32_t x = sketch.value({2, 3}), half = sketch.value({}, true),
           many = sketch.value({2, 3}, true);
  float halfData = 0.5f;
  float manyData[6] = {1, 2, 3, 4, 5, 6};
  sketch.table.values[half].data = &halfData;
  sketch.table.values[half].dataBytes = sizeof halfData;
  sketch.table.values[many].data = manyData;
  sketch.table.values[many].dataBytes = sizeof manyData;
  sketch.table.inputs = {x};
  uint32_t a = sketch.op("mul", OpRole::Pointwise, {x, half}, {2, 3});
  uint32_t b = sketch.op("add", OpRole::Pointwise, {a, many}, {2, 3});
  sketch.table.outputs = {b};
  linkUsers(sketch.table);
  for (const Region &region : formRegions(sketch.table)) {
    if (region.ops != std::vector<uint32_t>{0, 1})
      continue;
    RegionProblem problem = makeProblem(sketch.table, region);
    EXPECT_EQ(problem.operands, (std::vector<uint32_t>{x, many}));
    EXPECT_EQ(problem.results, (std::vector<uint32_t>{b}));
    auto parsed = Problem::parse(problem.problem.text());
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->text(), problem.problem.text());
    EXPECT_NE(problem.problem.text().find("{0.5}"), std::string::npos) << problem.problem.text();
    return;
  }
  FAIL() << "mul+add is not a region";
}

} // namespace
} // namespace dovetail::plan
