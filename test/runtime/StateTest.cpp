// SPDX-License-Identifier: Apache-2.0
//
// States that grow: what is appended lies behind what was there, in the same memory while there is
// room; the caller sees the model's order of dimensions; plans and calls that make no sense are
// refused.
#include <gtest/gtest.h>

#include "artifact/PlanCheck.h"
#include "artifact/StateNames.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

const Extent P = Extent::symbol("P"), S = Extent::symbol("S");

/// present[P+S,2,3] = past[P,2,3] and x[S,2,3] behind it; double = present + present. The model has
/// past and present as [2,P,3].
Plan cachePlan() {
  PlanMaker maker;
  uint32_t past = maker.input("past", {P, 2, 3}), x = maker.input("x", {S, 2, 3});
  maker.symbol("P", past, 0, {0, 1000, 1});
  maker.symbol("S", x, 0, {1, 1000, 1});
  uint32_t present = maker.outputValue("present", {P + S, 2, 3});
  PlanStep append;
  append.kind = StepKind::Append;
  append.label = "append";
  append.inputs = {past, x};
  append.outputs = {present};
  maker.block().steps.push_back(append);
  maker.step("add", {present, present}, {maker.outputValue("double", {P + S, 2, 3})});
  Plan plan = maker.take();
  plan.states.push_back({0, 0, true, {1, 0, 2}});
  return plan;
}

std::unique_ptr<Session> sessionOf(Plan plan) {
  auto model = Model::create(std::move(plan), toyOptions());
  EXPECT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  EXPECT_TRUE(session);
  return std::move(*session);
}

/// Elements of an output in the order of its extents, whatever its strides.
std::vector<float> elementsOf(const dvt_tensor &tensor) {
  std::vector<float> elements;
  int64_t s[3] = {tensor.extents[1] * tensor.extents[2], tensor.extents[2], 1};
  for (int d = 0; tensor.strides && d < 3; ++d)
    s[d] = tensor.strides[d];
  for (int64_t i = 0; i < tensor.extents[0]; ++i)
    for (int64_t j = 0; j < tensor.extents[1]; ++j)
      for (int64_t k = 0; k < tensor.extents[2]; ++k)
        elements.push_back(static_cast<const float *>(tensor.data)[i * s[0] + j * s[1] + k * s[2]]);
  return elements;
}

/// [2,length,3] of rows [2,3] one behind the other.
std::vector<float> turned(const std::vector<float> &rows) {
  std::vector<float> elements;
  for (size_t i = 0; i < 2; ++i)
    for (size_t row = 0; row < rows.size() / 6; ++row)
      for (size_t k = 0; k < 3; ++k)
        elements.push_back(rows[row * 6 + i * 3 + k]);
  return elements;
}

TEST(State, GrowsInPlace) {
  std::unique_ptr<Session> session = sessionOf(cachePlan());
  std::vector<float> rows = noise(2 * 6, 9), first = turned(rows);
  Aligned<float> past(12), x(5 * 6);
  std::copy(first.begin(), first.end(), past.begin());
  ASSERT_TRUE(session->feedBack(0, 0));
  ASSERT_TRUE(session->reserveState(0, 40));
  ASSERT_TRUE(session->bindInput(0, past.data(), std::vector<int64_t>{2, 2, 3}));
  const void *memory = nullptr;
  int64_t length = 2;
  for (uint32_t run = 0; length < 60; ++run) {
    int64_t more = 1 + run % 5;
    std::vector<float> part = noise(size_t(more) * 6, run + 20);
    std::copy(part.begin(), part.end(), x.begin());
    rows.insert(rows.end(), part.begin(), part.end());
    length += more;
    ASSERT_TRUE(session->bindInput(1, x.data(), std::vector<int64_t>{more, 2, 3}));
    Status status = session->run();
    ASSERT_TRUE(status) << status.error().message;
    const dvt_tensor &present = session->output(0);
    ASSERT_EQ(present.extents[0], 2);
    ASSERT_EQ(present.extents[1], length);
    EXPECT_EQ(elementsOf(present), turned(rows)) << run;
    std::vector<float> twice = rows;
    for (float &number : twice)
      number *= 2;
    EXPECT_EQ(outputOf(*session, 1), twice) << run;
    if (memory && length <= 40) {
      EXPECT_EQ(present.data, memory) << "moved at length " << length;
    }
    memory = present.data;
  }
  // Bound again, it starts anew, also from nothing.
  ASSERT_TRUE(session->bindInput(0, past.data(), std::vector<int64_t>{2, 0, 3}));
  ASSERT_TRUE(session->bindInput(1, x.data(), std::vector<int64_t>{1, 2, 3}));
  for (int64_t run = 1; run <= 3; ++run) {
    ASSERT_TRUE(session->run());
    EXPECT_EQ(session->output(0).extents[1], run);
  }
}

TEST(State, FedFromAnotherOutputInstead) {
  Plan plan = cachePlan();
  plan.states[0].order.clear(); // the model has it as the plan does
  std::unique_ptr<Session> session = sessionOf(std::move(plan));
  std::vector<float> rows;
  Aligned<float> past(1), x(6);
  ASSERT_TRUE(session->feedBack(1, 0));
  ASSERT_TRUE(session->feedBack(0, 0));
  ASSERT_TRUE(session->reserveState(0, 40));
  ASSERT_TRUE(session->bindInput(0, past.data(), std::vector<int64_t>{0, 2, 3}));
  for (uint32_t run = 0; run < 4; ++run) {
    std::vector<float> part = noise(6, run + 40);
    std::copy(part.begin(), part.end(), x.begin());
    rows.insert(rows.end(), part.begin(), part.end());
    ASSERT_TRUE(session->bindInput(1, x.data(), std::vector<int64_t>{1, 2, 3}));
    ASSERT_TRUE(session->run());
    EXPECT_EQ(outputOf(*session, 0), rows) << run;
    std::vector<float> twice = rows;
    for (float &number : twice)
      number *= 2;
    EXPECT_EQ(outputOf(*session, 1), twice) << run;
  }
}

TEST(State, OrdersOfDimensionsAreNotMixed) {
  std::unique_ptr<Session> session = sessionOf(cachePlan());
  Status status = session->feedBack(1, 0); // the model has that input turned, and not that output
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("different orders of dimensions"), std::string::npos);
}

TEST(State, WithoutFeedingBackIsDense) {
  std::unique_ptr<Session> session = sessionOf(cachePlan());
  std::vector<float> rows = noise(12, 3), part = noise(6, 4), first = turned(rows);
  Aligned<float> past(12), x(6), bound(18);
  std::copy(first.begin(), first.end(), past.begin());
  std::copy(part.begin(), part.end(), x.begin());
  rows.insert(rows.end(), part.begin(), part.end());
  ASSERT_TRUE(session->bindInput(0, past.data(), std::vector<int64_t>{2, 2, 3}));
  ASSERT_TRUE(session->bindInput(1, x.data(), std::vector<int64_t>{1, 2, 3}));
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(session->run());
    EXPECT_EQ(session->output(0).strides, nullptr);
    EXPECT_EQ(outputOf(*session, 0), turned(rows));
  }
  EXPECT_FALSE(session->reserveState(0, 40)) << "is not fed back";
  ASSERT_TRUE(session->bindOutput(0, bound.data(), std::vector<int64_t>{2, 3, 3}));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(std::vector<float>(bound.begin(), bound.end()), turned(rows));
  EXPECT_FALSE(session->bindInput(0, past.data(), std::vector<int64_t>{3, 2, 3}));
  EXPECT_FALSE(session->bindOutput(0, bound.data(), std::vector<int64_t>{3, 2, 3}));
}

TEST(State, SenselessPlansAreRefused) {
  auto refused = [](auto change) {
    Plan plan = cachePlan();
    change(plan);
    auto problems = checkPlan(plan);
    return problems ? std::string() : problems.error().message;
  };
  ASSERT_TRUE(checkPlan(cachePlan())) << checkPlan(cachePlan()).error().message;
  EXPECT_NE(refused([](Plan &plan) { plan.states[0].order = {1, 1, 2}; }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.states[0].order = {0, 1}; }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.states[0].input = 1; }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.states[0].output = 7; }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.states.push_back(plan.states[0]); }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.blocks[0].steps[0].inputs.pop_back(); }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.blocks[0].steps[0].inputs[1] = 0; }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.blocks[0].steps[0].inputs[1] = kNoValue; }), "");
  EXPECT_NE(refused([](Plan &plan) { plan.blocks[0].values[1].extents[1] = 3; }), "");
  auto alsoGives = [&](bool asView) {
    return refused([&](Plan &plan) {
      PlanBlock &block = plan.blocks[0];
      uint32_t present = block.outputs[0];
      if (asView) {
        block.values.push_back(block.values[present]);
        block.values.back().storage = Storage::Alias;
        block.values.back().index = present;
      }
      block.outputs.push_back(asView ? uint32_t(block.values.size() - 1) : present);
      plan.outputNames.push_back("again");
    });
  };
  EXPECT_NE(alsoGives(false).find("other outputs show it"), std::string::npos);
  EXPECT_NE(alsoGives(true).find("other outputs show it"), std::string::npos);
}

TEST(State, NamesTell) {
  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
  std::vector<std::string> inputs{"ids", "past_k_0", "past_key_values.0.value", "h_in"},
      outputs{"logits", "present.0.value", "present_k_0", "h_out"};
  auto found = findStates({"auto"}, inputs, outputs);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (Pairs{{1, 2}, {2, 1}, {3, 3}}));
  found = findStates({"ids=logits", "auto"}, inputs, outputs);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 4u);
  EXPECT_FALSE(findStates({"auto"}, {"x"}, {"y"}));
  EXPECT_FALSE(findStates({"x"}, inputs, outputs));
  EXPECT_FALSE(findStates({"ids="}, inputs, outputs));
  EXPECT_FALSE(findStates({"ids=nothing"}, inputs, outputs));
  EXPECT_FALSE(findStates({"nothing=logits"}, inputs, outputs));
  EXPECT_FALSE(findStates({"ids=logits", "h_in=logits"}, inputs, outputs));
}

} // namespace
