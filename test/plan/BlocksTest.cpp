// SPDX-License-Identifier: Apache-2.0
//
// Plans of bodies joined to one, and what must run before an extent is known although no operand
// says so.
#include <gtest/gtest.h>

#include "TableSketch.h"
#include "plan/Blocks.h"
#include "plan/ExtentSources.h"
#include "plan/FreeOptions.h"
#include "plan/ShapeData.h"

namespace dovetail::plan {
namespace {

const float kWeights[] = {1, 2, 3};

/// A block with a constant and steps on the given problems and kernels.
Plan planOf(std::vector<std::string> problems, std::vector<KernelBytes> kernels, const void *data) {
  Plan plan;
  PlanConstant constant;
  constant.extents = {3};
  constant.bytes = 12;
  constant.data = data;
  plan.constants.push_back(constant);
  PlanBlock &block = plan.blocks.emplace_back();
  block.values.resize(1);
  block.values[0].storage = Storage::Constant;
  for (uint32_t i = 0; i < problems.size(); ++i) {
    PlanStep &step = block.steps.emplace_back();
    step.problem = i;
    step.choice.kernel = static_cast<int32_t>(i);
    step.report = i;
    plan.reports.emplace_back().problem = i;
  }
  plan.problems = std::move(problems);
  plan.kernels = std::move(kernels);
  return plan;
}

TEST(Blocks, WhatBothHaveIsThereOnce) {
  Plan outer = planOf({"a", "b"}, {{1}, {2}}, kWeights);
  Plan inner = planOf({"c", "b"}, {{3}, {1}}, kWeights);
  Plan innermost = planOf({"a"}, {{2}}, kWeights + 1);
  PlanStep &control = inner.blocks[0].steps.emplace_back();
  control.kind = StepKind::Loop;
  control.bodies = {appendBlocks(inner, std::move(innermost))};
  EXPECT_EQ(inner.blocks[0].steps.back().bodies, std::vector<uint32_t>{1});
  EXPECT_EQ(appendBlocks(outer, std::move(inner)), 1u);
  ASSERT_EQ(outer.blocks.size(), 3u);
  EXPECT_EQ(outer.blocks[1].steps.back().bodies, std::vector<uint32_t>{2});
  EXPECT_EQ(outer.problems, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(outer.kernels, (std::vector<KernelBytes>{{1}, {2}, {3}}));
  EXPECT_EQ(outer.constants.size(), 2u);
  EXPECT_EQ(outer.blocks[1].values[0].index, 0u);
  EXPECT_EQ(outer.blocks[2].values[0].index, 1u);
  auto step = [&](uint32_t block, uint32_t number) { return outer.blocks[block].steps[number]; };
  EXPECT_EQ(step(1, 0).problem, 2u);
  EXPECT_EQ(step(1, 0).choice.kernel, 2);
  EXPECT_EQ(step(1, 1).problem, 1u);
  EXPECT_EQ(step(1, 1).choice.kernel, 0);
  EXPECT_EQ(step(2, 0).problem, 0u);
  EXPECT_EQ(step(2, 0).choice.kernel, 1);
  ASSERT_EQ(outer.reports.size(), 5u);
  EXPECT_EQ(step(2, 0).report, 4u);
  EXPECT_EQ(outer.reports[step(1, 0).report].problem, 2u);
}

/// found = non_zero(x), whose extent K is data; shape = {K}; seen = a view of y with K in it.
struct FoundTable : TableSketch {
  uint32_t x = input({9}), y = input({6}), found = 0, shape = 0, seen = 0;
  FoundTable() {
    Extent k = Extent::symbol("K");
    found = op("non_zero", OpRole::Other, {x}, {1, 1});
    table.values[found].extents[1] = k;
    table.values[found].dataDependent = true;
    shape = op("shape", OpRole::Other, {found}, {1});
    table.values[shape].isShapeData = true;
    table.values[shape].shapeData = {k};
    seen = op("reshape", OpRole::View, {y, shape}, {1, 6});
    table.values[seen].extents[0] = k;
    linkUsers(table);
  }
};

TEST(ExtentSources, ShapeDataAndViewsWaitForData) {
  FoundTable sketch;
  ExtentSources sources(sketch.table);
  EXPECT_EQ(sources.ofShapeData(sketch.shape), std::vector<uint32_t>{sketch.found});
  EXPECT_EQ(sources.ofOp(sketch.table.ops[2]), std::vector<uint32_t>{sketch.found});
  EXPECT_TRUE(sources.ofOp(sketch.table.ops[0]).empty());
  std::vector<CoverOption> options;
  std::vector<OptionMeaning> meanings;
  addFreeOptions(sketch.table, std::nullopt, options, meanings);
  ASSERT_EQ(options.size(), 2u);
  EXPECT_EQ(options[0].needs, (std::vector<LayoutState>{{sketch.y, 0}, {sketch.found, 0}}));
  EXPECT_EQ(options[1].needs, (std::vector<LayoutState>{{sketch.found, 0}}));
  std::vector<uint32_t> ranks = ranksOf(sketch.table);
  EXPECT_LT(ranks[sketch.found], ranks[sketch.shape]);
  EXPECT_LT(ranks[sketch.shape], ranks[sketch.seen]);
}

TEST(ExtentSources, WhatGivesAnExtentIsNotDead) {
  for (bool asView : {true, false}) {
    FoundTable sketch;
    sketch.output(asView ? sketch.seen : sketch.shape);
    dropDeadOps(sketch.table);
    ASSERT_FALSE(sketch.table.ops.empty());
    EXPECT_EQ(sketch.table.ops[0].name, "non_zero");
  }
}

TEST(ExtentSources, SymbolsOfInputsAreGiven) {
  TableSketch sketch;
  uint32_t x = sketch.input({1});
  sketch.table.values[x].extents[0] = Extent::symbol("N");
  uint32_t found = sketch.op("non_zero", OpRole::Other, {x}, {1});
  sketch.table.values[found].extents[0] = Extent::symbol("N");
  sketch.table.values[found].dataDependent = true;
  uint32_t shape = sketch.value({1});
  sketch.table.values[shape].isShapeData = true;
  sketch.table.values[shape].shapeData = {Extent::symbol("N")};
  EXPECT_TRUE(ExtentSources(sketch.table).ofShapeData(shape).empty());
}

} // namespace
} // namespace dovetail::plan
