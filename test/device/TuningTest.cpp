// SPDX-License-Identifier: Apache-2.0
//
// Candidates for a device, compiled without one, run and timed on the simulated one: right kernels,
// such as go wrong, and one that the device does not survive.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include <gmock/gmock.h>
#include <unistd.h>

#include "SimulatedDriver.h"
#include "plan/TableSketch.h"
#include "plan/TuningRun.h"

using namespace dovetail;
using namespace dovetail::plan;
using testing::HasSubstr;

namespace {

class DeviceTuning : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    const std::string target = GetParam() == "cuda" ? "cuda:sm_90" : "rocm:gfx942";
    auto known = device::findDescription(target, {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
    ASSERT_TRUE(known) << known.error().message;
    options.device = known->target();
    options.only = options.worker.only = {"simulated", "reference"};
    options.worker.executable = DOVETAIL_WORKER;
    options.worker.plugins = {DOVETAIL_BINARY_DIR "/test/device-plugins",
                              DOVETAIL_BINARY_DIR "/lib/dovetail"};
    options.worker.timeout = std::chrono::seconds(20);
    // relu(x * w) + x
    uint32_t x = sketch.input({32, 32}), w = sketch.value({32, 32}, true);
    weights.resize(32 * 32);
    std::iota(weights.begin(), weights.end(), -500.f);
    sketch.table.values[w].data = weights.data();
    sketch.table.values[w].dataBytes = weights.size() * sizeof(float);
    uint32_t product = sketch.op("mat_mul", OpRole::Contraction, {x, w}, {32, 32}, 13);
    uint32_t positive = sketch.op("relu", OpRole::Pointwise, {product}, {32, 32}, 14);
    sketch.output(sketch.op("add", OpRole::Pointwise, {positive, x}, {32, 32}, 14));
    linkUsers(sketch.table);
  }

  Expected<Plan> plan(PlanCache &cache, Select select) {
    options.select = select;
    options.budgetSeconds = 0;
    Planner planner(sketch.table, Target::host(1), providers, cache, options);
    if (Status status = planner.evaluate(); !status)
      return status.takeError();
    auto chosen = planner.choose(Prefer::Cost);
    tuning.target = *options.device;
    tuning.footprintBytes = planner.footprintBytes();
    tuning.providers = {{"simulated", "1.0"}};
    tuning.problems.clear();
    for (PosedProblem &posed : planner.asked())
      tuning.problems.push_back({std::move(posed), {}, {}});
    return chosen;
  }
  void build(PlanCache &cache) {
    auto predicted = plan(cache, Select::Estimate);
    ASSERT_TRUE(predicted) << predicted.error().message;
    Worker worker(options.worker, *options.device);
    Status built = buildCandidates(tuning, worker, cache, {});
    ASSERT_TRUE(built) << built.error().message;
  }
  Status measure(const std::string &path) {
    WorkerOptions given = options.worker;
    given.deviceDrivers = GetParam() + "=" + path;
    given.memoryBytes = UINT64_MAX;
    tuning.measuredOn = "the simulated one";
    Worker worker(given, *options.device);
    return measureCandidates(tuning, worker, {"simulated"}, {}, [] { return Status(); });
  }
  /// The candidate for the one op; null where there is none.
  Trial *trialOf(const char *op) {
    for (TuningProblem &problem : tuning.problems)
      if (problem.posed.problem.ops.size() == 1 && problem.posed.problem.ops[0].name == op &&
          !problem.evaluation.trials.empty())
        return &problem.evaluation.trials[0];
    return nullptr;
  }

  PlannerOptions options;
  TableSketch sketch;
  std::vector<float> weights;
  Tuning tuning;
  const std::map<std::string, std::string> providers = {{"simulated", "1.0"}, {"reference", "1"}};
};

TEST_P(DeviceTuning, TimesFromTheDeviceCount) {
  auto cache = PlanCache::open("", {}), other = PlanCache::open("", {});
  ASSERT_TRUE(cache && other);
  ASSERT_NO_FATAL_FAILURE(build(**cache));
  Status measured = measure(device::simulatedPath(GetParam()));
  ASSERT_TRUE(measured) << measured.error().message;
  for (const char *op : {"mat_mul", "relu", "add"}) {
    const Trial *trial = trialOf(op);
    ASSERT_TRUE(trial) << op;
    EXPECT_EQ(trial->outcome, TrialOutcome::Measured) << op << ": " << trial->detail;
    EXPECT_GE(trial->micros, 0);
    EXPECT_LE(trial->low, trial->high);
    EXPECT_EQ(trial->measuredOn, "the simulated one");
  }
}

TEST_P(DeviceTuning, PlansSayThatTimesWereMeasured) {
  std::string folder = (std::filesystem::temp_directory_path() /
                        fmt::format("device-tuning-{}-{}", GetParam(), ::getpid()))
                           .string();
  {
    auto cache = PlanCache::open(folder, {});
    ASSERT_TRUE(cache) << cache.error().message;
    ASSERT_NO_FATAL_FAILURE(build(**cache));
    ASSERT_TRUE(measure(device::simulatedPath(GetParam())));
    for (TuningProblem &problem : tuning.problems) // so fast that every step goes there
      for (Trial &trial : problem.evaluation.trials)
        if (trial.micros >= 0)
          trial.micros = trial.low = trial.high = 1e-3;
    storeTimes(tuning, **cache);
    auto chosen = plan(**cache, Select::Measure);
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_THAT(chosen->selection, HasSubstr("with times of the simulated one"));
    size_t there = 0;
    for (const PlanStep &step : chosen->blocks[0].steps)
      if (step.kind == StepKind::Kernel && step.choice.candidate.memory == DVT_MEMORY_DEVICE) {
        ++there;
        EXPECT_DOUBLE_EQ(chosen->reports[step.report].micros, 1e-3) << step.label;
      }
    EXPECT_EQ(there, 3u);
    auto predicted = plan(**cache, Select::Estimate);
    ASSERT_TRUE(predicted);
    EXPECT_EQ(predicted->selection, "estimate");
  }
  std::filesystem::remove_all(folder);
}

TEST_P(DeviceTuning, WhatGoesWrongThereIsFound) {
  auto cache = PlanCache::open("", {});
  ASSERT_TRUE(cache);
  ASSERT_NO_FATAL_FAILURE(build(**cache));
  auto wrong = readFile(DOVETAIL_BINARY_DIR "/test/kernels/wrong.so");
  ASSERT_TRUE(wrong) << wrong.error().message;
  for (const char *op : {"mat_mul", "relu", "add"}) {
    ASSERT_TRUE(trialOf(op)) << op;
    trialOf(op)->kernel.assign(wrong->begin(), wrong->end());
  }
  Status measured = measure(device::simulatedPath(GetParam()));
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(trialOf("relu")->outcome, TrialOutcome::WrongResult) << trialOf("relu")->detail;
  EXPECT_EQ(trialOf("add")->outcome, TrialOutcome::OutOfBounds) << trialOf("add")->detail;
  // The device is of no use to the process after that; the others were tried in another one.
  EXPECT_EQ(trialOf("mat_mul")->outcome, TrialOutcome::Crashed);
  EXPECT_THAT(trialOf("mat_mul")->detail, HasSubstr("in phase 'run: "));
}

TEST_P(DeviceTuning, CodeThatIsNoneIsRefused) {
  auto cache = PlanCache::open("", {});
  ASSERT_TRUE(cache);
  ASSERT_NO_FATAL_FAILURE(build(**cache));
  ASSERT_TRUE(trialOf("relu"));
  trialOf("relu")->kernel = {1, 2, 3};
  ASSERT_TRUE(measure(device::simulatedPath(GetParam())));
  EXPECT_EQ(trialOf("relu")->outcome, TrialOutcome::PrepareFailed);
  EXPECT_FALSE(trialOf("relu")->detail.empty());
  EXPECT_EQ(trialOf("add")->outcome, TrialOutcome::Measured) << trialOf("add")->detail;
}

TEST_P(DeviceTuning, WithoutTheDeviceItSaysSo) {
  auto cache = PlanCache::open("", {});
  ASSERT_TRUE(cache);
  ASSERT_NO_FATAL_FAILURE(build(**cache));
  Status measured = measure("/nowhere/driver.so");
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(measured.error().message, HasSubstr("/nowhere/driver.so"));
}

INSTANTIATE_TEST_SUITE_P(, DeviceTuning, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });

} // namespace
