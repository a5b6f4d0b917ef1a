// SPDX-License-Identifier: Apache-2.0
//
// Libraries that are gone or have another version: what runs instead, conversions around it, and
// what is said about it.
#include <gtest/gtest.h>

#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

/// relu of x [3,4] in layout `ba` between two conversions, with a row-major fallback of another
/// provider.
Plan reluPlan(bool fallback, const std::string &algorithm = "plain",
              const std::string &fallbackProvider = "spare") {
  PlanMaker maker;
  uint32_t x = maker.input("x", {3, 4});
  uint32_t y = maker.outputValue("y", {3, 4});
  PlanStep &step = maker.step("relu", {x}, {y}, algorithm);
  if (fallback) {
    auto problem = Problem::parse(maker.plan.problems[0]);
    step.fallback = PlanMaker::choice(*problem, fallbackProvider, "transposed");
  }
  return maker.take();
}

struct Outcome {
  std::vector<float> y;
  StepState state;
  std::string log, error;
};

Outcome runRelu(Plan plan, const std::string &folder) {
  Outcome outcome;
  ModelOptions options = toyOptions(folder);
  options.log = {[](void *out, int, const char *message) {
                   *static_cast<std::string *>(out) += std::string(message) + "\n";
                 },
                 &outcome.log, LogLevel::Info};
  auto model = Model::create(std::move(plan), options);
  if (!model) {
    outcome.error = model.error().message;
    EXPECT_EQ(model.error().kind, ErrorKind::Unavailable);
    return outcome;
  }
  outcome.state = (*model)->steps()[0];
  auto session = Session::create(*model);
  EXPECT_TRUE(session);
  outcome.y = runOnce(**session, noise(12), {3, 4});
  return outcome;
}

std::vector<float> truth() {
  std::vector<float> y = noise(12);
  for (float &v : y)
    v = std::max(v, 0.0f);
  return y;
}

TEST(Substitute, PlannedKernelRunsWhereItsProviderIsThere) {
  Outcome outcome = runRelu(reluPlan(true), "toys");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_EQ(outcome.state.running, "toy:plain");
  EXPECT_EQ(outcome.log, "");
}

TEST(Substitute, TheFallbackRunsInItsOwnLayouts) {
  Outcome outcome = runRelu(reluPlan(true), "only_spare");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_EQ(outcome.state.planned, "toy:plain");
  EXPECT_EQ(outcome.state.running, "spare:transposed[ba->ba]");
  EXPECT_NE(outcome.state.note.find("provider toy is not there"), std::string::npos);
  EXPECT_NE(outcome.log.find("relu1"), std::string::npos) << outcome.log;
}

TEST(Substitute, AnotherVersionMakesTheFallbackRun) {
  Plan plan = reluPlan(true);
  plan.blocks[0].steps[0].choice.providerVersion = "0.9";
  Outcome outcome = runRelu(std::move(plan), "toys");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_EQ(outcome.state.running, "spare:transposed[ba->ba]");
  EXPECT_NE(outcome.state.note.find("version 1.0 instead of 0.9"), std::string::npos);
}

TEST(Substitute, WithoutFallbackTheSameAlgorithmOfTheOtherVersionRuns) {
  Outcome outcome = runRelu(reluPlan(false, "fixed"), "newer_toys");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_EQ(outcome.state.running, "toy:fixed");
  EXPECT_NE(outcome.state.note.find("version 2.0 instead of 1.0"), std::string::npos);
}

TEST(Substitute, TheReferenceIsTakenWhereNobodyElseOffersAnything) {
  Outcome outcome = runRelu(reluPlan(true, "fixed", "reference"), "newer_beside_reference");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_EQ(outcome.state.running, "toy:fixed");
  outcome = runRelu(reluPlan(true, "gone", "reference"), "newer_beside_reference");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_TRUE(outcome.state.running.starts_with("toy:")) << outcome.state.running;
  outcome = runRelu(reluPlan(true, "fixed", "reference"), "only_reference");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_TRUE(outcome.state.running.starts_with("reference:")) << outcome.state.running;
  EXPECT_NE(outcome.state.note.find("provider toy is not there"), std::string::npos);
}

TEST(Substitute, WhateverAProviderOffersIsTheLastResort) {
  Outcome outcome = runRelu(reluPlan(true, "plain"), "changed_spare");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_EQ(outcome.state.running, "spare:transposed[ba->ba]");
  outcome = runRelu(reluPlan(false), "changed_spare");
  EXPECT_EQ(outcome.y, truth());
  EXPECT_EQ(outcome.state.running, "spare:fixed");
}

TEST(Substitute, NoKernelAtAllIsRefusedByName) {
  Plan plan = reluPlan(false);
  plan.problems[0].replace(plan.problems[0].find("relu"), 4, "tanh");
  plan.blocks[0].steps[0].choice.candidate.provider = "gone";
  Outcome outcome = runRelu(std::move(plan), "toys");
  for (const char *part : {"relu1", "tanh", "gone is not there", "does not know tanh"})
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
}

TEST(Substitute, ConstantsInAnotherLayout) {
  PlanMaker maker;
  uint32_t c = maker.constant(noise(12), {3, 4});
  maker.step("relu", {c}, {maker.outputValue("y", {3, 4})}, "transposed");
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  ASSERT_TRUE((*session)->run());
  EXPECT_EQ(outputOf(**session), truth());
}

TEST(Substitute, SymbolicValuesAreConvertedToo) {
  PlanMaker maker;
  Extent n = Extent::symbol("N");
  maker.plan.symbols["N"] = {1, 64, 1};
  uint32_t x = maker.input("x", {n, 4});
  maker.symbol("N", x, 0, {1, 64, 1});
  uint32_t t = maker.value({n, 4});
  maker.step("relu", {x}, {t}, "transposed");
  maker.step("add", {t, t}, {maker.outputValue("y", {n, 4})});
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  for (int64_t rows : {1, 3, 9, 2}) {
    std::vector<float> data = noise(rows * 4), y;
    for (float v : data)
      y.push_back(2 * std::max(v, 0.0f));
    EXPECT_EQ(runOnce(**session, data, {rows, 4}), y);
  }
}

} // namespace
