// SPDX-License-Identifier: Apache-2.0
//
// Static plans: results, sharing between threads, timing, failing steps, cancelling, plans that are
// wrong.
#include <thread>

#include <gtest/gtest.h>

#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

TEST(StaticPlan, ComputesADenseLayer) {
  auto model = Model::create(denseLayerPlan(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session) << session.error().message;
  for (uint32_t seed : {1, 5, 9}) {
    std::vector<float> x = noise(12, seed);
    EXPECT_EQ(runOnce(**session, x, {4, 3}), denseLayerTruth(x));
  }
  for (const StepState &state : (*model)->steps()) {
    EXPECT_EQ(state.planned, state.running);
    EXPECT_EQ(state.note, "");
  }
}

TEST(StaticPlan, StepTimes) {
  auto model = Model::create(denseLayerPlan(), toyOptions());
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> x(12);
  ASSERT_TRUE((*session)->bindInput(0, x.data(), std::vector<int64_t>{4, 3}));
  std::vector<double> micros;
  ASSERT_TRUE((*session)->run(&micros));
  ASSERT_EQ(micros.size(), 3u);
  for (double time : micros)
    EXPECT_GT(time, 0);
}

TEST(StaticPlan, SessionsRunAtOnce) {
  auto model = Model::create(denseLayerPlan(), toyOptions());
  ASSERT_TRUE(model);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto session = Session::create(*model);
      std::vector<float> x = noise(12, t + 1), truth = denseLayerTruth(x);
      for (int run = 0; run < 200; ++run)
        wrong += !session || runOnce(**session, x, {4, 3}) != truth;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(StaticPlan, OutputsThatAreInputsConstantsViewsOrUsedTwice) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {2, 3});
  uint32_t c = maker.constant(noise(6, 4), {2, 3});
  uint32_t y = maker.outputValue("y", {2, 3});
  maker.step("add", {x, c}, {y});
  uint32_t t = maker.value({2, 3});
  maker.step("relu", {y}, {t}); // reads what was written to the caller's memory
  maker.output("x again", x);
  maker.output("constant", c);
  maker.output("flat", maker.view(t, {6}));
  maker.output("y flat", maker.view(y, {6}));
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  std::vector<float> data = noise(6), constant = noise(6, 4), sum, relu;
  for (int i = 0; i < 6; ++i) {
    sum.push_back(data[i] + constant[i]);
    relu.push_back(std::max(sum.back(), 0.0f));
  }
  EXPECT_EQ(runOnce(**session, data, {2, 3}), sum);
  EXPECT_EQ(outputOf(**session, 1), data);
  EXPECT_EQ(outputOf(**session, 2), constant);
  EXPECT_EQ(outputOf(**session, 3), relu);
  EXPECT_EQ(outputOf(**session, 4), sum);
  EXPECT_EQ((*session)->output(3).rank, 1u);
}

TEST(StaticPlan, EmptyTensors) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {0, 3});
  uint32_t w = maker.constant(noise(15), {3, 5});
  maker.step("mat_mul", {x, w}, {maker.outputValue("y", {0, 5})});
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  EXPECT_TRUE(runOnce(**session, {}, {0, 3}).empty());
}

TEST(StaticPlan, AFailingStepNamesItself) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {3});
  maker.step("fail", {x}, {maker.outputValue("y", {3})}).label = "node/7";
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> data(3);
  ASSERT_TRUE((*session)->bindInput(0, data.data(), std::vector<int64_t>{3}));
  Status status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Internal);
  for (const char *part : {"node/7", "toy:plain", "this op always fails"})
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
}

/// A host's parallel-for that cancels the session while a step runs.
struct CancellingHost {
  Session *session = nullptr;
  dvt_parallel parallel{sizeof(dvt_parallel), 1, this,
                        [](void *context, int64_t count,
                           void (*body)(void *, int64_t, int64_t, uint32_t), void *argument) {
                          body(argument, 0, count, 0);
                          if (auto *session = static_cast<CancellingHost *>(context)->session)
                            session->cancel();
                        }};
};

TEST(StaticPlan, Cancel) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {3}), t = maker.value({3});
  maker.step("relu", {x}, {t});
  maker.step("add", {t, t}, {maker.outputValue("y", {3})});
  CancellingHost host;
  ModelOptions options = toyOptions();
  options.parallel = &host.parallel;
  auto model = Model::create(maker.take(), options);
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> data(3);
  data[0] = 2;
  ASSERT_TRUE((*session)->bindInput(0, data.data(), std::vector<int64_t>{3}));
  (*session)->cancel(); // before: the next run
  Status status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
  host.session = session->get(); // during the first step
  status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
  host.session = nullptr;
  ASSERT_TRUE((*session)->run());
  EXPECT_EQ(outputOf(**session)[0], 4);
}

TEST(StaticPlan, WrongPlansAreRefused) {
  auto refused = [](auto change) {
    Plan plan = denseLayerPlan();
    change(plan, plan.blocks[0]);
    auto model = Model::create(std::move(plan), toyOptions());
    EXPECT_FALSE(model);
    return model ? std::string() : model.error().message;
  };
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.steps[0].inputs[0] = 99; }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { std::swap(b.steps[0], b.steps[1]); }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.values[3].offset = b.values[4].offset; }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.values[3].bytes = 4; }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.values[3].offset = 1 << 20; }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.values[3].extents[0] = 7; }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.values[3].layout = "zz"; }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.values[3].storage = Storage(77); }), "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) {
              b.values[3].storage = Storage::Alias;
              b.values[3].index = 3;
            }),
            "");
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.steps[0].choice.kernel = 5; }), "");
  EXPECT_NE(refused([](Plan &p, PlanBlock &) { p.problems[0] = "problem("; }), "");
  EXPECT_NE(refused([](Plan &p, PlanBlock &) { p.constants[0].bytes = 1; }), "");
  EXPECT_NE(refused([](Plan &p, PlanBlock &) { p.target.architecture = "pdp-11"; }).find("pdp-11"),
            std::string::npos);
  EXPECT_NE(refused([](Plan &p, PlanBlock &) { p.target.features += ",avx4096"; }).find("avx4096"),
            std::string::npos);
  EXPECT_NE(refused([](Plan &, PlanBlock &b) { b.steps[0].kind = StepKind::Loop; }), "");
}

} // namespace
