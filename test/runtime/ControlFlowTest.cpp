// SPDX-License-Identifier: Apache-2.0
//
// If, Loop and Scan in plans made by hand: what bodies read and give, extents that change from
// iteration to iteration, loops that run not at all or without end, and plans whose bodies do not
// fit their steps.
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "artifact/ControlFlow.h"
#include "artifact/PlanCheck.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

const Extent K = Extent::symbol("K"), S = Extent::symbol("S");

/// A run with a bool and x.
Status runWith(Session &session, bool flag, const std::vector<float> &x) {
  Aligned<float> data(x.size());
  std::copy(x.begin(), x.end(), data.begin());
  Aligned<uint8_t> condition(1);
  condition[0] = flag;
  if (Status status = session.bindInput(0, condition.data(), {}); !status)
    return status;
  if (Status status = session.bindInput(1, data.data(), std::vector<int64_t>{int64_t(x.size())});
      !status)
    return status;
  return session.run();
}

std::unique_ptr<Session> sessionOf(Plan plan) {
  auto model = Model::create(std::move(plan), toyOptions());
  EXPECT_TRUE(model) << model.error().message;
  if (!model)
    return nullptr;
  auto session = Session::create(*model);
  EXPECT_TRUE(session) << session.error().message;
  return session ? std::move(*session) : nullptr;
}

/// y = flag ? relu(x) : x + w
Plan conditionalPlan() {
  PlanMaker maker;
  uint32_t flag = maker.input("flag", {}, DVT_BOOL), x = maker.input("x", {3});
  uint32_t y = maker.outputValue("y", {3});
  maker.control(StepKind::If, {flag, x}, {y}, {1, 2});
  maker.beginBody();
  uint32_t taken = maker.input("x", {3});
  maker.step("relu", {taken}, {maker.outputValue("a", {3})});
  maker.beginBody();
  taken = maker.input("x", {3});
  uint32_t w = maker.constant({1, 2, 3}, {3});
  maker.step("add", {taken, w}, {maker.outputValue("b", {3})});
  return maker.take();
}

TEST(ControlFlow, OneOfTwoBranches) {
  auto session = sessionOf(conditionalPlan());
  ASSERT_TRUE(session);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(runWith(*session, true, {-1, 0, 5}));
    EXPECT_EQ(outputOf(*session), (std::vector<float>{0, 0, 5}));
    ASSERT_TRUE(runWith(*session, false, {-1, 0, 5}));
    EXPECT_EQ(outputOf(*session), (std::vector<float>{0, 2, 8}));
  }
}

/// v = x; `trips` times, or for ever: v = v + x, and v is stacked up. The condition is `flag`.
Plan loopPlan(bool counts) {
  PlanMaker maker;
  maker.plan.symbols["K"] = {0, 1000, 1};
  uint32_t flag = maker.input("flag", {}, DVT_BOOL), x = maker.input("x", {3});
  uint32_t trips = kNoValue;
  if (counts)
    trips = maker.input("trips", {}, DVT_I64);
  uint32_t last = maker.outputValue("last", {3}), all = maker.dynamic({K, 3});
  maker.block().symbolSources.push_back({"K", all, 0});
  maker.output("all", all);
  maker.control(StepKind::Loop, {trips, flag, x, x}, {last, all}, {1}, 1);
  maker.beginBody();
  maker.input("iteration", {}, DVT_I64);
  uint32_t goesOn = maker.input("condition", {}, DVT_BOOL), v = maker.input("v", {3});
  uint32_t captured = maker.input("x", {3});
  maker.copy(goesOn, maker.outputValue("condition", {}, DVT_BOOL));
  uint32_t next = maker.outputValue("next", {3}), shown = maker.outputValue("element", {3});
  maker.step("add", {v, captured}, {next});
  maker.copy(next, shown);
  return maker.take();
}

TEST(ControlFlow, LoopsCarryAndStack) {
  auto session = sessionOf(loopPlan(true));
  ASSERT_TRUE(session);
  Aligned<int64_t> trips(1);
  for (int64_t count : {3, 0, 1, 7, -2}) {
    trips[0] = count;
    ASSERT_TRUE(session->bindInput(2, trips.data(), {}));
    Status status = runWith(*session, true, {1, 2, 3});
    ASSERT_TRUE(status) << status.error().message;
    float times = float(std::max<int64_t>(count, 0));
    EXPECT_EQ(outputOf(*session),
              (std::vector<float>{1 + times, 2 * (1 + times), 3 * (1 + times)}));
    ASSERT_EQ(session->output(1).extents[0], std::max<int64_t>(count, 0));
    std::vector<float> all = outputOf(*session, 1);
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(all[i], float(i % 3 + 1) * float(i / 3 + 2));
  }
  ASSERT_TRUE(runWith(*session, false, {1, 2, 3})) << "the condition comes before the trip count";
  EXPECT_EQ(outputOf(*session), (std::vector<float>{1, 2, 3}));
}

TEST(ControlFlow, EndlessLoopsAreCancelled) {
  auto session = sessionOf(loopPlan(false));
  ASSERT_TRUE(session);
  Status status;
  std::thread run([&] { status = runWith(*session, true, {1, 2, 3}); });
  session->cancel(); // now, or before it begins
  run.join();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
  ASSERT_TRUE(runWith(*session, false, {1, 2, 3})) << "and can be used again";
}

/// v = x; while there is one in `trips`: v = the positive ones of v + w, w as long as v.
TEST(ControlFlow, CarriedExtentsMayChange) {
  PlanMaker maker;
  maker.plan.symbols["K"] = maker.plan.symbols["S"] = maker.plan.symbols["T"] = {0, 1000, 1};
  uint32_t flag = maker.input("flag", {}, DVT_BOOL), x = maker.input("x", {5});
  uint32_t trips = maker.input("trips", {}, DVT_I64);
  uint32_t left = maker.dynamic({K});
  maker.block().symbolSources.push_back({"K", left, 0});
  maker.output("left", left);
  maker.control(StepKind::Loop, {trips, flag, x}, {left}, {1}, 1);
  maker.beginBody();
  maker.input("iteration", {}, DVT_I64);
  uint32_t goesOn = maker.input("condition", {}, DVT_BOOL), v = maker.input("v", {S});
  maker.symbol("S", v, 0, {0, 1000, 1});
  maker.copy(goesOn, maker.outputValue("condition", {}, DVT_BOOL));
  uint32_t sum = maker.value({S}), kept = maker.dynamic({Extent::symbol("T")});
  maker.block().symbolSources.push_back({"T", kept, 0});
  maker.step("add", {v, v}, {sum});
  maker.step("keep_positive", {sum}, {kept});
  maker.output("kept", kept);
  auto session = sessionOf(maker.take());
  ASSERT_TRUE(session);
  Aligned<int64_t> count(1);
  for (int64_t n : {0, 1, 3}) {
    count[0] = n;
    ASSERT_TRUE(session->bindInput(2, count.data(), {}));
    Status status = runWith(*session, true, {-1, 2, -3, 4, 5});
    ASSERT_TRUE(status) << status.error().message;
    float factor = float(1 << n);
    EXPECT_EQ(outputOf(*session), n == 0
                                      ? (std::vector<float>{-1, 2, -3, 4, 5})
                                      : (std::vector<float>{2 * factor, 4 * factor, 5 * factor}));
  }
}

/// A scan over the columns of x [2,N], from the last to the first, stacked up as rows from the end.
TEST(ControlFlow, ScansAlongAnyAxis) {
  PlanMaker maker;
  Extent n = Extent::symbol("N");
  maker.plan.symbols["N"] = {0, 64, 1};
  uint32_t x = maker.input("x", {2, n});
  maker.symbol("N", x, 1, {0, 64, 1});
  uint32_t zero = maker.constant({0, 0}, {2});
  uint32_t total = maker.outputValue("total", {2}), rows = maker.outputValue("rows", {n, 2});
  maker.control(StepKind::Scan, {zero, x}, {total, rows}, {1}, 1, {{1, true}, {0, true}});
  maker.beginBody();
  uint32_t sum = maker.input("sum", {2}), column = maker.input("column", {2});
  uint32_t next = maker.outputValue("next", {2});
  maker.step("add", {sum, column}, {next});
  maker.step("relu", {next}, {maker.outputValue("positive", {2})});
  auto session = sessionOf(maker.take());
  ASSERT_TRUE(session);
  Aligned<float> data(6);
  const float content[] = {1, 2, 3, -10, 20, -30};
  std::copy(std::begin(content), std::end(content), data.begin());
  for (int64_t columns : {3, 0, 3}) {
    ASSERT_TRUE(session->bindInput(0, data.data(), std::vector<int64_t>{2, columns}));
    Status status = session->run();
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(outputOf(*session),
              columns ? (std::vector<float>{6, -20}) : (std::vector<float>{0, 0}));
    EXPECT_EQ(outputOf(*session, 1),
              columns ? (std::vector<float>{6, 0, 5, 0, 3, 0}) : std::vector<float>());
  }
}

/// In the body of a body, an extent of the model that no value on the way has.
TEST(ControlFlow, BodiesKnowTheSymbolsAroundThem) {
  PlanMaker maker;
  Extent n = Extent::symbol("N");
  maker.plan.symbols["N"] = {0, 64, 1};
  uint32_t flag = maker.input("flag", {}, DVT_BOOL), x = maker.input("x", {n});
  maker.symbol("N", x, 0, {0, 64, 1});
  uint32_t size = maker.outputValue("size", {1}, DVT_I64);
  maker.control(StepKind::If, {flag, flag}, {size}, {1, 2});
  for (int branch : {1, 2}) {
    maker.beginBody();
    uint32_t again = maker.input("flag", {}, DVT_BOOL);
    if (branch == 1)
      maker.control(StepKind::If, {again}, {maker.outputValue("size", {1}, DVT_I64)}, {3, 4});
    else
      maker.shapeData({7}, maker.outputValue("size", {1}, DVT_I64));
  }
  for (int64_t factor : {2, 3}) {
    maker.beginBody();
    maker.shapeData({Extent(factor) * n}, maker.outputValue("size", {1}, DVT_I64));
  }
  auto session = sessionOf(maker.take());
  ASSERT_TRUE(session);
  for (size_t count : {4, 9, 4}) {
    Status status = runWith(*session, true, std::vector<float>(count, 1));
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(*static_cast<const int64_t *>(session->output(0).data), int64_t(2 * count));
    ASSERT_TRUE(runWith(*session, false, std::vector<float>(count, 1)));
    EXPECT_EQ(*static_cast<const int64_t *>(session->output(0).data), 7);
  }
}

TEST(ControlFlow, BodiesDoNotFindOutWhatIsKnownAroundThem) {
  Extent n = Extent::symbol("N");
  PlanMaker maker;
  uint32_t flag = maker.input("flag", {}, DVT_BOOL), x = maker.input("x", {n});
  maker.symbol("N", x, 0, {0, 64, 1});
  maker.control(StepKind::Loop, {kNoValue, flag, x}, {}, {1});
  maker.beginBody();
  maker.input("iteration", {}, DVT_I64);
  maker.block().outputs = {maker.input("condition", {}, DVT_BOOL)};
  uint32_t again = maker.input("x", {n}), kept = maker.dynamic({Extent::symbol("K")});
  maker.symbol("N", again, 0, {0, 64, 1});
  maker.step("keep_positive", {again}, {kept});
  maker.symbol("K", kept, 0, {0, 64, 1});
  Plan plan = maker.take();
  auto checked = checkPlan(plan);
  ASSERT_TRUE(checked) << checked.error().message;
  plan.blocks[1].values[kept].extents = {n};
  plan.blocks[1].symbolSources.back().symbol = "N";
  checked = checkPlan(plan);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("known around it"), std::string::npos)
      << checked.error().message;
}

TEST(ControlFlow, StepsOfBodiesAreListedAndTimed) {
  auto model = Model::create(conditionalPlan(), toyOptions());
  ASSERT_TRUE(model);
  ASSERT_EQ((*model)->steps().size(), 3u);
  EXPECT_EQ((*model)->steps()[1].running, "toy:plain");
  EXPECT_EQ((*model)->firstStep(2), 2u);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<uint8_t> flag(1);
  Aligned<float> x(3);
  ASSERT_TRUE((*session)->bindInput(0, flag.data(), {}));
  ASSERT_TRUE((*session)->bindInput(1, x.data(), std::vector<int64_t>{3}));
  std::vector<double> micros;
  ASSERT_TRUE((*session)->run(&micros));
  ASSERT_EQ(micros.size(), 3u);
  EXPECT_EQ(micros[1], 0) << "not taken";
  EXPECT_LE(micros[2], micros[0]) << "which contains it";
}

std::string refusal(Plan plan, const std::function<void(Plan &)> &change) {
  EXPECT_TRUE(checkPlan(plan)) << "in order before";
  change(plan);
  auto checked = checkPlan(plan);
  EXPECT_FALSE(checked);
  return checked ? "" : checked.error().message;
}

TEST(ControlFlow, BodiesMustFitTheirSteps) {
  auto branch = [](const std::function<void(Plan &)> &change) {
    return refusal(conditionalPlan(), change);
  };
  auto loop = [](const std::function<void(Plan &)> &change) {
    return refusal(loopPlan(true), change);
  };
  auto control = [](Plan &plan) -> PlanStep & { return plan.blocks[0].steps[0]; };
  EXPECT_NE(branch([&](Plan &p) { control(p).bodies = {1, 1}; }).find("body"), std::string::npos);
  EXPECT_NE(branch([&](Plan &p) { control(p).bodies = {0, 1}; }), "");
  EXPECT_NE(branch([&](Plan &p) { control(p).bodies = {1, 99}; }), "");
  EXPECT_NE(branch([&](Plan &p) { control(p).bodies = {1}; }), "");
  EXPECT_NE(branch([&](Plan &p) { p.blocks.emplace_back(); }), "") << "nobody runs it";
  EXPECT_NE(branch([&](Plan &p) { control(p).carried = 1; }), "");
  EXPECT_NE(branch([&](Plan &p) { control(p).inputs = {0}; }), "") << "nothing captured";
  EXPECT_NE(branch([&](Plan &p) { control(p).inputs = {kNoValue, 1}; }), "");
  EXPECT_NE(branch([&](Plan &p) { control(p).inputs = {1, 1}; }), "") << "x is no condition";
  EXPECT_NE(branch([&](Plan &p) { p.blocks[2].inputs.clear(); }), "");
  EXPECT_NE(branch([&](Plan &p) { p.blocks[2].values[0].type = DVT_I32; }), "");
  EXPECT_NE(branch([&](Plan &p) { p.blocks[0].values[2].layout = "ba"; }), "");
  EXPECT_NE(loop([&](Plan &p) { control(p).carried = 2; }), "");
  EXPECT_NE(loop([&](Plan &p) { control(p).carried = 0; }), "");
  EXPECT_NE(loop([&](Plan &p) { control(p).carried = UINT32_MAX; }), "");
  EXPECT_NE(loop([&](Plan &p) { control(p).scanned = {{0, false}}; }), "");
  EXPECT_NE(loop([&](Plan &p) { control(p).inputs[2] = kNoValue; }), "");
  EXPECT_NE(loop([&](Plan &p) { control(p).kind = StepKind::Scan; }), "");
  EXPECT_NE(loop([&](Plan &p) { p.blocks[0].values[2].type = DVT_F32; }), "") << "trip count";
  EXPECT_NE(loop([&](Plan &p) { p.blocks[0].symbolSources.clear(); }), "");
}

TEST(ControlFlow, NestingIsBounded) {
  PlanMaker maker;
  maker.output("x", maker.input("x", {3}, DVT_BOOL));
  for (int depth = 1; depth < 100; ++depth) {
    uint32_t flag = maker.plan.blocks.back().inputs[0];
    maker.continueBlock(maker.plan.blocks.size() - 1);
    maker.control(StepKind::Loop, {kNoValue, flag}, {}, {uint32_t(depth)});
    maker.beginBody();
    maker.input("iteration", {}, DVT_I64);
    uint32_t goesOn = maker.input("condition", {}, DVT_BOOL);
    maker.block().outputs = {goesOn};
  }
  auto outer = outerBlocks(maker.plan);
  ASSERT_FALSE(outer);
  EXPECT_NE(outer.error().message.find("deep"), std::string::npos) << outer.error().message;
}

} // namespace
