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

  Expected<Plan> plan(TableSketch &sketch, bool cached = true) {
    linkUsers(sketch.table);
    std::map<std::string, std::string> providers;
    for (const std::string &name : options.only)
      providers[name] = "1.0";
    options.worker.only = options.only;
    auto cache = PlanCache::open(cached ? folder.string() : "", {});
    if (!cache)
      return cache.takeError();
    Planner planner(sketch.table, Target::host(1), providers, **cache, options);
    if (Status status = planner.evaluate(); !status)
      return status.takeError();
    auto plan = planner.choose(Prefer::Cost);
    statistics = planner.statistics();
    return plan;
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
