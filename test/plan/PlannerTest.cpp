// SPDX-License-Identifier: Apache-2.0
//
// The planner with a provider of plain loops, broken ones beside it, and the real worker: plans
// come out whatever happens, nothing is measured twice, and the plan says why.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include <gtest/gtest.h>
#include <unistd.h>

#include "TableSketch.h"
#include "plan/Evaluations.h"
#include "plan/MeasuringOrder.h"
#include "plan/Planner.h"

namespace dovetail::plan {
namespace {

class PlannerTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             fmt::format("dovetail-planner-test-{}", ::getpid());
    options.worker.executable = DOVETAIL_WORKER;
    options.worker.plugins = {DOVETAIL_BINARY_DIR "/lib/dovetail",
                              DOVETAIL_BINARY_DIR "/test/planner_plugins"};
    options.worker.timeout = std::chrono::seconds(5);
    options.only = {"toy", "reference"};
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::map<std::string, std::string> providersOf() const {
    std::map<std::string, std::string> providers;
    for (const std::string &name : options.only)
      providers[name] = "1.0";
    return providers;
  }

  Expected<Plan> plan(TableSketch &sketch, bool cached = true, bool withStandIns = false) {
    linkUsers(sketch.table);
    options.worker.only = options.only;
    auto cache = PlanCache::open(cached ? folder.string() : "", {});
    if (!cache)
      return cache.takeError();
    Planner planner(sketch.table, Target::host(1), providersOf(), **cache, options);
    if (Status status = planner.evaluate(); !status)
      return status.takeError();
    auto plan = planner.choose(Prefer::Cost);
    if (plan && withStandIns)
      if (Status status = planner.addStandIns(*plan); !status)
        return status.takeError();
    statistics = planner.statistics();
    return plan;
  }

  /// Puts made-up measurements of all problems of the sketch into the cache.
  struct MadeUp {
    const char *provider;
    double micros, prepareMillis, packingMillis;
  };
  void remember(TableSketch &sketch, const std::vector<MadeUp> &times) {
    linkUsers(sketch.table);
    options.worker.only = options.only;
    auto cache = PlanCache::open(folder.string(), {});
    ASSERT_TRUE(cache);
    Planner planner(sketch.table, Target::host(1), providersOf(), **cache, options);
    auto problems = planner.problems();
    ASSERT_TRUE(problems) << problems.error().message;
    for (const PosedProblem &posed : *problems)
      for (const MadeUp &given : times) {
        Trial trial;
        trial.candidate.provider = given.provider;
        trial.candidate.algorithm = "interpret";
        trial.candidate.inputLayouts.resize(posed.problem.inputs.size());
        trial.candidate.outputLayouts.resize(posed.problem.outputs.size());
        trial.candidate.numerics = "f32";
        trial.outcome = TrialOutcome::Measured;
        trial.micros = trial.low = trial.high = given.micros;
        trial.prepareMillis = given.prepareMillis;
        trial.packingMillis = given.packingMillis;
        trial.kernel = {'t', 'o', 'y'};
        (*cache)->store(measuredKey(posed.problem.text(), Target::host(1), given.provider, "1.0",
                                    posed.representative, planner.footprintBytes()),
                        {{trial}, {}});
      }
  }

  /// relu feeds two chains of mat_mul and add; the results are added.
  static TableSketch twoBranches() {
    TableSketch sketch;
    uint32_t x = sketch.input({8, 8});
    uint32_t a = sketch.input({8, 8}), b = sketch.input({8, 8});
    uint32_t r = sketch.op("relu", OpRole::Pointwise, {x}, {8, 8}, 14);
    uint32_t p = sketch.op("mat_mul", OpRole::Contraction, {r, a}, {8, 8}, 13);
    uint32_t q = sketch.op("mat_mul", OpRole::Contraction, {r, b}, {8, 8}, 13);
    sketch.output(sketch.op("add", OpRole::Pointwise, {p, q}, {8, 8}, 14));
    return sketch;
  }

  std::filesystem::path folder;
  PlannerOptions options;
  Planner::Statistics statistics;
};

std::vector<std::string> kernelsOf(const Plan &plan) {
  std::vector<std::string> kernels;
  for (const PlanStep &step : plan.blocks.front().steps)
    kernels.push_back(step.choice.candidate.provider + " " + step.label);
  return kernels;
}

TEST_F(PlannerTest, brokenProvidersCostTheirCandidatesAndAreExplained) {
  TableSketch sketch;
  sketch.output(sketch.op("relu", OpRole::Pointwise, {sketch.input({4, 8})}, {4, 8}, 14));
  options.only = {"toy",      "reference", "crash_propose", "crash_compile", "crash_run",
                  "hang_run", "fail_run",  "wrong_result",  "out_of_bounds"};
  auto made = plan(sketch);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(kernelsOf(*made), std::vector<std::string>{"toy relu_0"});
  ASSERT_EQ(made->reports.size(), 1u);
  auto reasonOf = [&](const std::string &provider) -> std::string {
    for (const Alternative &alternative : made->reports[0].alternatives)
      if (alternative.label == provider || alternative.label.starts_with(provider + ":"))
        return alternative.outcome;
    return "not mentioned";
  };
  for (auto [provider, reason] :
       {std::pair{"toy", "chosen"}, std::pair{"crash_propose", "crashed"},
        std::pair{"crash_compile", "crashed"}, std::pair{"crash_run", "crashed"},
        std::pair{"hang_run", "timeout"}, std::pair{"fail_run", "run failed"},
        std::pair{"wrong_result", "wrong result"}, std::pair{"out_of_bounds", "out of bounds"}})
    EXPECT_NE(reasonOf(provider).find(reason), std::string::npos)
        << provider << ": " << reasonOf(provider);
  EXPECT_EQ(statistics.failures, 7u);
}

TEST_F(PlannerTest, secondRunMeasuresNothing) {
  TableSketch sketch = twoBranches();
  auto first = plan(sketch);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(statistics.timed, 0u);
  EXPECT_EQ(statistics.fromCache, 0u);
  EXPECT_EQ(statistics.estimated, 0u);
  EXPECT_TRUE(statistics.complete);
  EXPECT_EQ(first->problemsTimed, statistics.timed);
  auto second = plan(sketch);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(statistics.timed, 0u);
  EXPECT_EQ(statistics.estimated, 0u);
  EXPECT_GT(statistics.fromCache, 0u);
  EXPECT_EQ(kernelsOf(*first), kernelsOf(*second));
  options.select = Select::Replay;
  auto third = plan(sketch);
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(kernelsOf(*first), kernelsOf(*third));
}

TEST_F(PlannerTest, tellsItsStages) {
  std::vector<std::string> stages;
  options.progress = [&](const std::string &stage, size_t done, size_t total, const std::string &) {
    EXPECT_TRUE(total == 0 ? done == 0 : done < total) << stage << " " << done << " of " << total;
    if (stages.empty() || stages.back() != stage)
      stages.push_back(stage);
  };
  // Each after the one before it; others may lie between them.
  auto expectInOrder = [&](const std::vector<std::string> &expected) {
    auto at = stages.begin();
    for (const std::string &stage : expected) {
      at = std::find(at, stages.end(), stage);
      ASSERT_NE(at, stages.end()) << stage;
    }
  };
  TableSketch sketch = twoBranches();
  ASSERT_TRUE(plan(sketch, false, true));
  expectInOrder({"forming problems", "asking providers", "measuring what promises most", "choosing",
                 "building stand-ins"});
  stages.clear();
  options.select = Select::Estimate;
  ASSERT_TRUE(plan(sketch, false));
  expectInOrder({"forming problems", "asking providers", "choosing", "building what was chosen"});
}

TEST_F(PlannerTest, withoutBudgetTheChosenIsBuiltCheckedAndRemembered) {
  TableSketch sketch = twoBranches();
  options.budgetSeconds = 0;
  auto first = plan(sketch);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(statistics.timed, 0u);
  EXPECT_FALSE(statistics.complete);
  EXPECT_EQ(statistics.estimated, statistics.problems);
  EXPECT_EQ(first->problemsEstimated, statistics.estimated);
  // The toy's kernels have bytes, which only building gives.
  for (const PlanStep &step : first->blocks.front().steps)
    EXPECT_GE(step.choice.kernel, 0) << step.label;
  auto again = plan(sketch);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(kernelsOf(*first), kernelsOf(*again));
  // With a budget the missing is measured, and then nothing any more.
  options.budgetSeconds = 120;
  ASSERT_TRUE(plan(sketch));
  EXPECT_GT(statistics.timed, 0u);
  EXPECT_EQ(statistics.estimated, 0u);
  ASSERT_TRUE(plan(sketch));
  EXPECT_EQ(statistics.timed, 0u);
  EXPECT_EQ(statistics.estimated, 0u);
}

TEST_F(PlannerTest, aChosenKernelThatFailsIsReplaced) {
  TableSketch sketch;
  sketch.output(sketch.op("relu", OpRole::Pointwise, {sketch.input({4, 8})}, {4, 8}, 14));
  options.only = {"wrong_result", "reference"};
  options.select = Select::Estimate;
  auto made = plan(sketch);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(kernelsOf(*made), std::vector<std::string>{"reference relu_0"});
}

TEST_F(PlannerTest, samePlanFromAColdAndAWarmCacheByEstimates) {
  TableSketch sketch = twoBranches();
  options.select = Select::Estimate;
  auto cold = plan(sketch), warm = plan(sketch), without = plan(sketch, false);
  ASSERT_TRUE(cold && warm && without);
  EXPECT_EQ(kernelsOf(*cold), kernelsOf(*warm));
  EXPECT_EQ(kernelsOf(*cold), kernelsOf(*without));
}

TEST(MemoryBound, halvesCountAsTheirWiderForm) {
  PlanMemory twin, halves;
  twin.weights = 100 << 20;
  halves.weights = halves.halves = 50 << 20;
  twin.arena = halves.arena = 10 << 20;
  EXPECT_EQ(MemoryBound().of(halves), MemoryBound().of(twin));
  EXPECT_GT(MemoryBound().of(twin), uint64_t(140) << 20);
}

TEST_F(PlannerTest, aBoundOnMemoryIsKept) {
  using Kind = MemoryBound::Kind;
  TableSketch sketch = twoBranches();
  options.select = Select::Estimate;
  options.only = {"toy", "hungry", "reference"};
  std::vector<std::string> told;
  options.log = {[](void *to, int, const char *text) {
                   static_cast<std::vector<std::string> *>(to)->push_back(text);
                 },
                 &told, LogLevel::Warning};
  // Each of the hungry takes 3 MiB, all of them 1 MiB together.
  for (auto [kind, mebibytes, hungry] :
       {std::tuple{Kind::None, 0, 2}, std::tuple{Kind::Share, 0, 0}, std::tuple{Kind::Bytes, 8, 2},
        std::tuple{Kind::Bytes, 5, 1}, std::tuple{Kind::Bytes, 3, 0}}) {
    options.memory = {kind, uint64_t(mebibytes) << 20};
    for (bool cached : {false, true}) {
      auto made = plan(sketch, cached);
      ASSERT_TRUE(made) << made.error().message;
      std::vector<std::string> kernels = kernelsOf(*made);
      EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(),
                              [](const std::string &text) { return text.starts_with("hungry"); }),
                hungry)
          << mebibytes << " MiB";
      EXPECT_LE(memoryOf(*made).total(), made->memoryBound);
      EXPECT_EQ(made->memoryBound, options.memory.of(memoryOf(*made)));
    }
  }
  EXPECT_TRUE(told.empty());
  options.only = {"hungry", "reference"};
  options.memory = {Kind::Bytes, 1 << 20};
  auto made = plan(sketch, false);
  ASSERT_TRUE(made) << made.error().message;
  for (const std::string &kernel : kernelsOf(*made)) // rather than the reference
    EXPECT_TRUE(kernel.starts_with("hungry")) << kernel;
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("no plan was found within 1.0 MiB"), std::string::npos) << told[0];
}

TEST_F(PlannerTest, recomputesWhatIsCheapAndStoresWhatIsNot) {
  // By the toy's estimates relu costs 1 us inside another kernel and 6 alone, exp 20 and 25.
  for (auto [op, recomputed] : {std::pair{"relu", true}, std::pair{"exp", false}}) {
    TableSketch sketch;
    uint32_t x = sketch.input({8, 8}), a = sketch.input({8, 8}), b = sketch.input({8, 8});
    uint32_t r = sketch.op(op, OpRole::Pointwise, {x}, {8, 8}, op[0] == 'e' ? 13 : 14);
    sketch.output(sketch.op("mat_mul", OpRole::Contraction, {r, a}, {8, 8}, 13));
    sketch.output(sketch.op("mat_mul", OpRole::Contraction, {r, b}, {8, 8}, 13));
    options.select = Select::Estimate;
    auto made = plan(sketch, false);
    ASSERT_TRUE(made) << made.error().message;
    size_t steps = made->blocks.front().steps.size();
    EXPECT_EQ(steps, recomputed ? 2u : 3u) << op;
    bool couldBeFused = false;
    for (const RegionReport &report : made->reports)
      for (const Alternative &alternative : report.alternatives)
        couldBeFused |=
            alternative.label == "fused: exp+mat_mul by toy:interpret" && alternative.micros == 45;
    EXPECT_EQ(couldBeFused, !recomputed);
  }
}

TEST_F(PlannerTest, saysHowRegionsCouldBeSplitOrFused) {
  TableSketch sketch = twoBranches();
  options.select = Select::Estimate;
  auto made = plan(sketch, false);
  ASSERT_TRUE(made) << made.error().message;
  auto all = [&](const std::string &start) {
    std::vector<Alternative> found;
    for (const RegionReport &report : made->reports)
      for (const Alternative &alternative : report.alternatives)
        if (alternative.label.starts_with(start))
          found.push_back(alternative);
    return found;
  };
  // relu+mat_mul, and relu+mat_mul+add; each could be made of its parts.
  ASSERT_EQ(made->blocks.front().steps.size(), 2u);
  auto split = all("split: ");
  ASSERT_EQ(split.size(), 2u);
  EXPECT_EQ(split[0].label, "split: relu by toy:interpret, mat_mul by toy:interpret");
  EXPECT_EQ(split[0].micros, 6 + 25);
  EXPECT_EQ(split[0].outcome, "slower");
}

TEST_F(PlannerTest, slowPreparingIsChargedToTheRunsOfALoad) {
  TableSketch sketch;
  sketch.output(sketch.op("relu", OpRole::Pointwise, {sketch.input({4, 8})}, {4, 8}, 14));
  options.only = {"toy", "slow_prepare"};
  remember(sketch, {{"toy", 20, 1, 0}, {"slow_prepare", 10, 75, 45}});
  // (75 - 45 - 5) ms beyond what is free, for 10 us.
  for (auto [runs, kernel] : {std::pair{200, "toy"}, std::pair{2499, "toy"},
                              std::pair{2501, "slow_prepare"}, std::pair{0, "slow_prepare"}}) {
    options.preparation.runs = runs;
    auto made = plan(sketch);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(statistics.timed, 0u);
    EXPECT_EQ(kernelsOf(*made), std::vector<std::string>{std::string(kernel) + " relu_0"}) << runs;
    EXPECT_EQ(made->runsPerLoad, runs);
    bool isSlow = std::string(kernel) != "toy";
    EXPECT_EQ(preparationOf(*made).millis, isSlow ? 30 : 1);
    EXPECT_NEAR(preparationOf(*made).chargedMicros, isSlow && runs ? 25e3 / runs : 0, 1e-9);
    std::string outcome = "not mentioned";
    for (const Alternative &alternative : made->reports[0].alternatives)
      if (alternative.label == "slow_prepare:interpret")
        outcome = alternative.outcome;
    EXPECT_EQ(outcome, isSlow        ? "chosen"
                       : runs == 200 ? "faster, but prepares in 30 ms: charged 125 us"
                                     : "faster, but prepares in 30 ms: charged 10 us");
  }
}

TEST_F(PlannerTest, equalStepsShareWhatPreparingIsCharged) {
  TableSketch sketch;
  uint32_t x = sketch.input({8, 8}), w = sketch.input({8, 8});
  for (int i = 0; i < 4; ++i)
    x = sketch.op("mat_mul", OpRole::Contraction, {x, w}, {8, 8}, 13);
  sketch.output(x);
  options.only = {"toy", "slow_prepare"};
  remember(sketch, {{"toy", 20, 1, 0}, {"slow_prepare", 10, 25, 0}});
  // 20 ms beyond what is free, once for four steps of which each is faster by 10 us.
  for (auto [runs, kernel] : {std::pair{400, "toy"}, std::pair{600, "slow_prepare"}}) {
    options.preparation.runs = runs;
    auto made = plan(sketch);
    ASSERT_TRUE(made) << made.error().message;
    for (const std::string &step : kernelsOf(*made))
      EXPECT_TRUE(step.starts_with(kernel)) << step << ", " << runs;
  }
}

TEST_F(PlannerTest, stepsOfLibrariesHaveAnOwnKernelBesideThem) {
  // A toy that goes by the name of native; both have the same estimates.
  options.worker.plugins.insert(options.worker.plugins.begin(),
                                DOVETAIL_BINARY_DIR "/test/own_plugins");
  options.only = {"hungry", "native", "reference"};
  options.memory.kind = MemoryBound::Kind::None;
  for (Select select : {Select::Estimate, Select::Measure})
    for (int turn = 0; turn < 2; ++turn) {
      options.select = select;
      options.budgetSeconds = 0;
      TableSketch sketch = twoBranches();
      auto made = plan(sketch, true, true);
      ASSERT_TRUE(made) << made.error().message;
      for (const PlanStep &step : made->blocks.front().steps) {
        EXPECT_EQ(step.choice.candidate.provider, "hungry");
        ASSERT_TRUE(step.fallback) << step.label;
        EXPECT_EQ(step.fallback->candidate.provider, "native");
        EXPECT_EQ(step.fallback->providerVersion, "1.0");
        ASSERT_GE(step.fallback->kernel, 0); // it was built, and its bytes are in the plan
        EXPECT_EQ(made->kernels[size_t(step.fallback->kernel)].size(), 3u);
      }
    }
}

TEST_F(PlannerTest, anOwnKernelThatDoesNotBuildLeavesTheReference) {
  options.worker.plugins.insert(options.worker.plugins.begin(),
                                DOVETAIL_BINARY_DIR "/test/broken_plugins");
  options.only = {"hungry", "native", "reference"};
  options.memory.kind = MemoryBound::Kind::None;
  options.select = Select::Estimate;
  TableSketch sketch;
  sketch.output(sketch.op("relu", OpRole::Pointwise, {sketch.input({4, 8})}, {4, 8}, 14));
  auto made = plan(sketch, true, true);
  ASSERT_TRUE(made) << made.error().message;
  const PlanStep &step = made->blocks.front().steps.front();
  EXPECT_EQ(step.choice.candidate.provider, "hungry");
  ASSERT_TRUE(step.fallback);
  EXPECT_EQ(step.fallback->candidate.provider, "reference");
}

/// relu and exp of [N, 8], and the sum of the latter with [10, 8].
TableSketch freeRows() {
  TableSketch sketch;
  uint32_t x = sketch.input({1, 8}), y = sketch.input({10, 8});
  uint32_t r = sketch.op("relu", OpRole::Pointwise, {x}, {1, 8}, 14);
  uint32_t e = sketch.op("exp", OpRole::Pointwise, {r}, {1, 8}, 13);
  for (uint32_t value : {x, r, e})
    sketch.table.values[value].extents[0] = Extent::symbol("N");
  sketch.output(r);
  sketch.output(sketch.op("add", OpRole::Pointwise, {e, y}, {10, 8}, 14));
  sketch.table.requirements = {
      {Requirement::Relation::Equal, Extent::symbol("N"), 10, "Add 'add_2'"}};
  return sketch;
}

TEST_F(PlannerTest, freeExtentsAreTimedAtSizesThatTheModelAllows) {
  TableSketch sketch = freeRows();
  auto made = plan(sketch);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->typicalSizes, (SymbolValues{{"N", 10}}));
  EXPECT_GT(statistics.timed, 0u);
  EXPECT_EQ(statistics.estimated, 0u);
  EXPECT_EQ(statistics.failures, 0u);
  // The toy takes no extents at run time: as a library it is asked at first execution.
  bool anyLate = false;
  for (const PlanStep &step : made->blocks.front().steps) {
    EXPECT_GE(made->reports[step.report].micros, 0) << step.label;
    if (step.kind != StepKind::LateBound)
      continue;
    anyLate = true;
    EXPECT_EQ(step.lateProviders, std::vector<std::string>{"toy"});
    EXPECT_EQ(step.lateAlgorithm, "interpret");
    EXPECT_EQ(step.choice.candidate.provider, "reference");
  }
  EXPECT_TRUE(anyLate);
  auto again = plan(sketch);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(statistics.timed, 0u);
  EXPECT_EQ(kernelsOf(*made), kernelsOf(*again));
}

TEST_F(PlannerTest, typicalSizesAreTheUsers) {
  TableSketch sketch = freeRows();
  sketch.table.requirements.clear();
  options.typical = {{"N", 10}};
  auto made = plan(sketch);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->typicalSizes, options.typical);
  options.typical = {{"N", 1}}; // other sizes, other measurements
  ASSERT_TRUE(plan(sketch));
  EXPECT_GT(statistics.timed, 0u);
  options.typical = {{"Q", 12}};
  auto refused = plan(sketch);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::BadInput);
}

TEST(MeasuringOrder, goesByWhatIsAtStake) {
  auto turns = measuringOrder({{3, 1, true},     // little
                               {50, 20, true},   // most of the model
                               {500, 20, false}, // fused: after all single ops
                               {10, 1, false},
                               {4, 10, true}});
  std::vector<size_t> order;
  for (const MeasuringTurn &turn : turns)
    order.push_back(turn.problem);
  EXPECT_EQ(order, (std::vector<size_t>{1, 4, 0, 2, 3}));
  EXPECT_EQ(turns[0].budgetMillis, 400);
  EXPECT_LT(turns[2].budgetMillis, 20);
  EXPECT_GE(turns[2].budgetMillis, 10);
}

} // namespace
} // namespace dovetail::plan
