// SPDX-License-Identifier: Apache-2.0
//
// Kernels made ready by several threads: the same results, substitutes and messages as by one. The
// provider `toy` allows it, `spare` refuses where two threads call it at once.
#include <gtest/gtest.h>

#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

constexpr int kLayers = 60;

/// relu(...relu(x w0) w1...) with x [4,4]; the providers take turns, and `algorithms` of them too.
Plan layersPlan(const std::vector<std::string> &algorithms, bool fallback) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {4, 4});
  for (int i = 0; i < kLayers; ++i) {
    // Every third layer has the weights of the one before: its kernel is shared.
    uint32_t w = maker.constant(noise(16, 7 + i / 3), {4, 4}), product = maker.value({4, 4});
    std::string provider = i % 2 ? "spare" : "toy";
    PlanStep &step =
        maker.step("mat_mul", {x, w}, {product}, algorithms[i % algorithms.size()], provider);
    step.choice.candidate.packedBytes = 64 + i;
    if (fallback)
      step.fallback =
          PlanMaker::choice(*Problem::parse(maker.plan.problems[step.problem]), "spare", "plain");
    x = i + 1 == kLayers ? maker.outputValue("y", {4, 4}) : maker.value({4, 4});
    maker.step("relu", {product}, {x}, "plain", provider);
  }
  return maker.take();
}

struct Outcome {
  std::vector<float> y;
  std::vector<std::string> running, notes;
  std::string log, error;
};

Outcome runWith(uint32_t threads, Plan plan) {
  Outcome outcome;
  ModelOptions options = toyOptions();
  options.threads = threads;
  options.log = {[](void *out, int, const char *message) {
                   *static_cast<std::string *>(out) += std::string(message) + "\n";
                 },
                 &outcome.log, LogLevel::Info};
  auto model = Model::create(std::move(plan), options);
  if (!model) {
    outcome.error = model.error().message;
    return outcome;
  }
  for (const StepState &state : (*model)->steps()) {
    outcome.running.push_back(state.running);
    outcome.notes.push_back(state.note);
  }
  auto session = Session::create(*model);
  EXPECT_TRUE(session);
  outcome.y = runOnce(**session, noise(16), {4, 4});
  return outcome;
}

void expectEqual(const Outcome &one, const Outcome &many) {
  EXPECT_EQ(one.y, many.y);
  EXPECT_EQ(one.running, many.running);
  EXPECT_EQ(one.notes, many.notes);
  EXPECT_EQ(one.log, many.log);
  EXPECT_EQ(one.error, many.error);
}

TEST(Prepare, ManyThreadsMakeWhatOneMakes) {
  Outcome one = runWith(1, layersPlan({"plain", "fixed"}, false));
  for (int round = 0; round < 20; ++round)
    expectEqual(one, runWith(4, layersPlan({"plain", "fixed"}, false)));
  EXPECT_EQ(one.log, "");
  EXPECT_EQ(one.y.size(), 16u);
}

TEST(Prepare, SubstitutesAreFoundAndSaidAsByOneThread) {
  std::vector<std::string> algorithms{"plain", "fixed", "gone", "plain", "lost"};
  Outcome one = runWith(1, layersPlan(algorithms, true));
  for (int round = 0; round < 20; ++round)
    expectEqual(one, runWith(4, layersPlan(algorithms, true)));
  EXPECT_NE(one.log.find("knows no such algorithm"), std::string::npos) << one.log;
}

TEST(Prepare, TheFirstStepThatNothingRunsIsNamed) {
  auto broken = [] {
    Plan plan = layersPlan({"plain"}, false);
    for (size_t at : {41, 61}) {
      PlanStep &step = plan.blocks[0].steps[at];
      step.choice.candidate.algorithm = "gone";
      std::string &text = plan.problems[step.problem];
      text.replace(text.find("relu"), 4, "ceil");
    }
    return plan;
  };
  Outcome one = runWith(1, broken());
  EXPECT_NE(one.error.find("step 'relu42'"), std::string::npos) << one.error;
  expectEqual(one, runWith(4, broken()));
}

} // namespace
