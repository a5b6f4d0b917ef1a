// SPDX-License-Identifier: Apache-2.0
//
// Where the elements of slices, splits and transposes lie, against plain walks over indices, and
// what the check of plans says to views that lead astray.
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "artifact/BlockMemory.h"
#include "artifact/PlanCheck.h"
#include "plan/StridedViews.h"

namespace dovetail::plan {
namespace {

using Integers = std::vector<int64_t>;

struct Sketch {
  OpTable table;
  std::vector<std::shared_ptr<Integers>> kept;

  uint32_t value(std::vector<Extent> extents) {
    TableValue made;
    made.extents = std::move(extents);
    table.values.push_back(made);
    return static_cast<uint32_t>(table.values.size() - 1);
  }
  uint32_t numbers(Integers data) {
    uint32_t made = value({static_cast<int64_t>(data.size())});
    kept.push_back(std::make_shared<Integers>(std::move(data)));
    TableValue &constant = table.values[made];
    constant.type = DVT_I64;
    constant.constant = true;
    constant.data = kept.back()->data();
    constant.dataBytes = kept.back()->size() * 8;
    return made;
  }
  std::vector<uint32_t> op(const char *name, std::vector<uint32_t> inputs,
                           std::vector<std::vector<Extent>> results, AttributeMap attributes = {}) {
    TableOp made;
    made.name = name;
    made.role = OpRole::Movement;
    made.inputs = std::move(inputs);
    made.attributes = std::move(attributes);
    for (auto &extents : results)
      made.outputs.push_back(value(std::move(extents)));
    std::vector<uint32_t> outputs = made.outputs;
    table.ops.push_back(made);
    return outputs;
  }
  /// Somebody must read a result for it to get a view.
  void read(uint32_t result) {
    TableOp made;
    made.name = "relu";
    made.role = OpRole::Pointwise;
    made.inputs = {result};
    made.outputs = {value(table.values[result].extents)};
    table.ops.push_back(made);
  }
  std::vector<uint32_t> views() {
    linkUsers(table);
    return addStridedViews(table);
  }
};

Integers numbersOf(const std::vector<Extent> &extents) {
  Integers result;
  for (const Extent &extent : extents)
    result.push_back(extent.value());
  return result;
}

/// Places of a view's elements in what it shows, in row-major order.
Integers places(const TableValue &view) {
  Integers extents = numbersOf(view.extents), index(extents.size(), 0), result;
  for (int64_t left =
           std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
       left > 0; --left) {
    result.push_back(view.offset + std::inner_product(index.begin(), index.end(),
                                                      view.strides.begin(), int64_t(0)));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < extents[d])
        break;
      index[d] = 0;
    }
  }
  return result;
}

TEST(StridedViews, Slice) {
  Sketch sketch;
  uint32_t x = sketch.value({4, 10});
  uint32_t s = sketch.op("slice",
                         {x, sketch.numbers({-3, 1}), sketch.numbers({99, 8}),
                          sketch.numbers({0, -1}), sketch.numbers({2, 3})},
                         {{2, 3}})[0];
  sketch.read(s);
  auto views = sketch.views();
  ASSERT_NE(views[s], kNoValue);
  // Rows 1 and 3, columns 1, 4 and 7.
  EXPECT_EQ(places(sketch.table.values[views[s]]), (Integers{11, 14, 17, 31, 34, 37}));
  EXPECT_EQ(sketch.table.ops.back().role, OpRole::View);
  EXPECT_EQ(sketch.table.ops.back().inputs, std::vector<uint32_t>{x});
}

TEST(StridedViews, Split) {
  Sketch sketch;
  uint32_t x = sketch.value({2, 5, 2});
  auto parts = sketch.op("split", {x}, {{2, 2, 2}, {2, 3, 2}}, {{"axis", int64_t(-2)}});
  for (uint32_t part : parts)
    sketch.read(part);
  auto views = sketch.views();
  EXPECT_EQ(places(sketch.table.values[views[parts[0]]]), (Integers{0, 1, 2, 3, 10, 11, 12, 13}));
  EXPECT_EQ(places(sketch.table.values[views[parts[1]]]),
            (Integers{4, 5, 6, 7, 8, 9, 14, 15, 16, 17, 18, 19}));
}

TEST(StridedViews, Transpose) {
  Sketch sketch;
  uint32_t x = sketch.value({2, 3, 2});
  uint32_t t = sketch.op("transpose", {x}, {{2, 2, 3}}, {{"perm", Integers{2, 0, 1}}})[0];
  sketch.read(t);
  auto views = sketch.views();
  EXPECT_EQ(places(sketch.table.values[views[t]]),
            (Integers{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
}

TEST(StridedViews, OnlyWithNumbers) {
  Sketch sketch;
  Extent n = Extent::symbol("N");
  uint32_t rows = sketch.value({n, 4}), columns = sketch.value({4, n});
  AttributeMap turn{{"perm", Integers{1, 0}}};
  uint32_t free = sketch.op("transpose", {rows}, {{4, n}}, turn)[0];
  uint32_t inner = sketch.op("transpose", {columns}, {{n, 4}}, turn)[0];
  uint32_t start = sketch.value({1});
  uint32_t later = sketch.op("slice", {rows, start, start}, {{n, 2}})[0];
  uint32_t back = sketch.op(
      "slice",
      {rows, sketch.numbers({3}), sketch.numbers({-9}), sketch.numbers({1}), sketch.numbers({-1})},
      {{n, 4}})[0];
  uint32_t unread = sketch.op("transpose", {rows}, {{4, n}}, turn)[0];
  for (uint32_t value : {free, inner, later, back})
    sketch.read(value);
  auto views = sketch.views();
  EXPECT_NE(views[free], kNoValue); // rows of 4 elements, however many
  for (uint32_t value : {inner, later, back, unread})
    EXPECT_EQ(views[value], kNoValue) << value;
}

/// x [4,6] -> view -> relu -> y.
Plan viewPlan(std::vector<Extent> extents, Integers strides, uint64_t offset,
              const std::string &problem) {
  Plan plan;
  plan.inputNames = {"x"};
  plan.outputNames = {"y"};
  plan.problems = {problem};
  PlanBlock block;
  block.values.resize(3);
  block.values[0].extents = {4, 6};
  block.values[0].storage = Storage::Input;
  block.values[1].extents = extents;
  block.values[1].storage = Storage::Alias;
  block.values[1].index = 0;
  block.values[1].strides = std::move(strides);
  block.values[1].offset = offset;
  block.values[2].extents = extents;
  block.values[2].storage = Storage::Output;
  block.inputs = {0};
  block.outputs = {2};
  PlanStep step;
  step.inputs = {1};
  step.outputs = {2};
  step.choice.candidate.provider = "some";
  step.choice.candidate.inputLayouts = step.choice.candidate.outputLayouts = {""};
  block.steps = {step};
  placeStaticBlock(block);
  plan.blocks = {block};
  return plan;
}

std::string reluOf(const std::string &operand, const std::string &result) {
  return "problem(%0: f32" + operand + ") %1: f32" + result + " = relu@14(%0) return(%1)";
}

TEST(StridedViews, PlansMayNotLeaveWhatTheyShow) {
  std::string problem = reluOf("[3,2] strides[6,3]", "[3,2]");
  Plan good = viewPlan({3, 2}, {6, 3}, 8 * 4, problem); // the last element is the last there is
  EXPECT_TRUE(checkPlan(good)) << checkPlan(good).error().message;
  auto refuses = [&](auto change) {
    Plan plan = good;
    change(plan, plan.blocks[0].values[1]);
    return !checkPlan(plan);
  };
  EXPECT_TRUE(refuses([](Plan &, PlanValue &v) { v.offset += 4; }));
  EXPECT_TRUE(refuses([](Plan &, PlanValue &v) { v.offset = 2; }));
  EXPECT_TRUE(refuses([](Plan &, PlanValue &v) { v.offset = UINT64_MAX - 3; }));
  EXPECT_TRUE(refuses([](Plan &, PlanValue &v) { v.strides = {6, 1}; })); // not its kernel's
  EXPECT_TRUE(refuses([](Plan &, PlanValue &v) { v.strides.clear(); }));
  EXPECT_TRUE(refuses([](Plan &, PlanValue &v) { v.strides = {6}; }));
  EXPECT_TRUE(refuses([](Plan &, PlanValue &v) { v.layout = "ba"; }));
  EXPECT_TRUE(refuses([](Plan &plan, PlanValue &) { plan.blocks[0].outputs = {1}; }));
  EXPECT_TRUE(refuses([](Plan &plan, PlanValue &) {
    plan.blocks[0].steps[0].choice.candidate.inputLayouts = {"ba"};
  }));
  for (Integers strides : {Integers{7, 3}, {INT64_MAX, 3}, {INT64_MAX / 2, INT64_MAX / 2}, {6, -3}})
    EXPECT_FALSE(checkPlan(viewPlan({3, 2}, strides, 8 * 4,
                                    reluOf("[3,2] strides[" + std::to_string(strides[0]) + "," +
                                               std::to_string(strides[1]) + "]",
                                           "[3,2]"))));
}

TEST(StridedViews, StaysInside) {
  std::mt19937 random(3);
  int inside = 0;
  for (int round = 0; round < 2000; ++round) {
    Integers extents, strides;
    for (unsigned d = 0; d < 1 + random() % 3; ++d) {
      extents.push_back(random() % 4);
      strides.push_back(random() % 9);
    }
    uint64_t offset = random() % 40, bytes = random() % 60;
    int64_t furthest = -1; // by walking
    Integers index(extents.size(), 0);
    bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
    for (bool more = !empty; more;) {
      furthest = std::max(
          furthest, std::inner_product(index.begin(), index.end(), strides.begin(), int64_t(0)));
      more = false;
      for (size_t d = index.size(); d-- > 0 && !more;)
        index[d] + 1 < extents[d] ? (more = true, ++index[d]) : index[d] = 0;
    }
    bool expected = empty || offset + static_cast<uint64_t>(furthest + 1) * 2 <= bytes;
    EXPECT_EQ(staysInside(DVT_F16, extents, strides, offset, bytes), expected);
    inside += expected;
  }
  EXPECT_GT(inside, 200);
}

} // namespace
} // namespace dovetail::plan
