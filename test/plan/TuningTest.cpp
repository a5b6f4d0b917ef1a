// SPDX-License-Identifier: Apache-2.0
//
// Candidates that travel to another machine and back: the file, what is tried there, and that
// planning takes the times as measured.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <unistd.h>

#include "TableSketch.h"
#include "plan/TuningRun.h"
#include "support/File.h"

namespace dovetail::plan {
namespace {

using testing::HasSubstr;

class TuningTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / fmt::format("dovetail-tuning-test-{}", ::getpid());
    std::filesystem::create_directories(folder);
    options.worker.executable = DOVETAIL_WORKER;
    options.worker.plugins = {DOVETAIL_BINARY_DIR "/lib/dovetail",
                              DOVETAIL_BINARY_DIR "/test/planner_plugins"};
    options.worker.timeout = std::chrono::seconds(5);
    // relu(x * y) + x
    uint32_t x = sketch.input({8, 8}), y = sketch.input({8, 8});
    uint32_t product = sketch.op("mat_mul", OpRole::Contraction, {x, y}, {8, 8}, 13);
    uint32_t positive = sketch.op("relu", OpRole::Pointwise, {product}, {8, 8}, 14);
    sketch.output(sketch.op("add", OpRole::Pointwise, {positive, x}, {8, 8}, 14));
    linkUsers(sketch.table);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string file(const char *name = "candidates") const { return (folder / name).string(); }
  std::unique_ptr<PlanCache> cache(const char *name) const {
    auto opened = PlanCache::open((folder / name).string(), {});
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  std::map<std::string, std::string> versions() const {
    std::map<std::string, std::string> providers;
    for (const std::string &name : names)
      providers[name] = "1.0";
    return providers;
  }
  Worker worker() const {
    WorkerOptions given = options.worker;
    given.only = names;
    return {given, Target::host(1)};
  }
  /// What the planner asks about, built.
  Tuning exported() {
    auto remembered = cache("exporting");
    PlannerOptions estimating = options;
    estimating.select = Select::Estimate;
    estimating.only = estimating.worker.only = {"toy", "reference"};
    Planner planner(sketch.table, Target::host(1), {{"toy", "1.0"}, {"reference", "1.0"}},
                    *remembered, estimating);
    EXPECT_TRUE(planner.evaluate());
    EXPECT_TRUE(planner.choose(Prefer::Cost));
    Tuning tuning;
    tuning.model = "sketch";
    tuning.target = Target::host(1);
    tuning.footprintBytes = planner.footprintBytes();
    tuning.providers = versions();
    for (PosedProblem &posed : planner.asked())
      tuning.problems.push_back({std::move(posed), {}, {}});
    Worker building = worker();
    Status built = buildCandidates(tuning, building, *remembered, {});
    EXPECT_TRUE(built) << built.error().message;
    return tuning;
  }
  /// Through the file, then tried.
  Tuning measured(const TuningSteps &steps = {}) {
    EXPECT_TRUE(writeTuning(exported(), file()));
    auto tuning = readTuning(file());
    EXPECT_TRUE(tuning) << tuning.error().message;
    tuning->measuredOn = "the other machine";
    tuning->source = tuning->digest;
    Worker measuring = worker();
    Status status = measureCandidates(*tuning, measuring, names, steps,
                                      [&] { return writeTuning(*tuning, file("times")); });
    EXPECT_TRUE(status) << status.error().message;
    return std::move(*tuning);
  }

  std::filesystem::path folder;
  TableSketch sketch;
  PlannerOptions options;
  std::vector<std::string> names = {"toy", "reference"};
};

const Trial *trialOf(const TuningProblem &problem, const std::string &provider) {
  for (const Trial &trial : problem.evaluation.trials)
    if (trial.candidate.provider == provider)
      return &trial;
  return nullptr;
}

TEST_F(TuningTest, asksForEveryProblemAndRunsNothing) {
  Tuning tuning = exported();
  EXPECT_GE(tuning.problems.size(), 5u); // three ops, two pairs at least
  for (const TuningProblem &problem : tuning.problems) {
    const Trial *toy = trialOf(problem, "toy");
    ASSERT_TRUE(toy) << problem.posed.problem.text();
    EXPECT_TRUE(toy->built);
    EXPECT_EQ(toy->outcome, TrialOutcome::Checked) << toy->detail;
    EXPECT_LT(toy->micros, 0);
    EXPECT_TRUE(problem.tried.empty());
  }
  EXPECT_EQ(tuning.counts().timed, 0u);
}

TEST_F(TuningTest, whatFailsToRunIsBuiltAllTheSame) {
  names = {"toy", "crash_run", "reference"};
  Tuning tuning = exported();
  const Trial *crashing = trialOf(tuning.problems.front(), "crash_run");
  ASSERT_TRUE(crashing);
  EXPECT_TRUE(crashing->usable()) << crashing->detail;
}

TEST_F(TuningTest, theFileHoldsAll) {
  Tuning tuning = exported();
  tuning.problems[0].evaluation.trials[0].kernel = {1, 2, 3};
  tuning.problems[1].evaluation.trials[0].kernel = {4, 5};
  tuning.problems[0].posed.representative = {{"N", 3}};
  ASSERT_TRUE(writeTuning(tuning, file()));
  auto read = readTuning(file());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->target.text(), tuning.target.text());
  EXPECT_EQ(read->footprintBytes, tuning.footprintBytes);
  EXPECT_EQ(read->providers, tuning.providers);
  ASSERT_EQ(read->problems.size(), tuning.problems.size());
  EXPECT_EQ(read->problems[0].posed.representative, tuning.problems[0].posed.representative);
  for (size_t i = 0; i < tuning.problems.size(); ++i) {
    const auto &before = tuning.problems[i], &after = read->problems[i];
    EXPECT_EQ(after.posed.problem.text(), before.posed.problem.text());
    ASSERT_EQ(after.evaluation.trials.size(), before.evaluation.trials.size());
    for (size_t k = 0; k < before.evaluation.trials.size(); ++k) {
      EXPECT_EQ(after.evaluation.trials[k].kernel, before.evaluation.trials[k].kernel);
      EXPECT_EQ(after.evaluation.trials[k].candidate.label(),
                before.evaluation.trials[k].candidate.label());
    }
  }
  EXPECT_EQ(read->digest.size(), 32u);
}

TEST_F(TuningTest, aDamagedFileIsRefused) {
  ASSERT_TRUE(writeTuning(exported(), file()));
  const std::string whole = *readFile(file());
  auto refuses = [&](const std::string &content, const char *says) {
    ASSERT_TRUE(writeFile(file("damaged"), content));
    auto read = readTuning(file("damaged"));
    ASSERT_FALSE(read) << says;
    EXPECT_EQ(read.error().kind, ErrorKind::BadInput);
    EXPECT_THAT(read.error().message, HasSubstr(says));
    EXPECT_THAT(read.error().message, HasSubstr("damaged: "));
  };
  refuses("", "holds no candidates");
  refuses("something else entirely", "holds no candidates");
  std::string other = whole;
  other[8] = 77;
  refuses(other, "format version 77, this is version 1");
  for (size_t length : {size_t(20), size_t(63), size_t(64), whole.size() / 2, whole.size() - 1})
    refuses(whole.substr(0, length), length < 64 ? "cut short" : "bytes instead of");
  refuses(whole + "x", "bytes instead of");
  for (size_t at = 16; at < whole.size(); at += 1 + at / 7) {
    other = whole;
    other[at] = static_cast<char>(other[at] ^ 0x20);
    refuses(other, "altered or is damaged");
  }
}

TEST_F(TuningTest, candidatesThatCannotBeAreRefused) {
  const Tuning good = exported();
  auto refuses = [&](auto change, const char *says) {
    Tuning bad = good;
    auto usable = std::find_if(bad.problems[0].evaluation.trials.begin(),
                               bad.problems[0].evaluation.trials.end(),
                               [](const Trial &trial) { return trial.usable(); });
    change(*usable);
    ASSERT_TRUE(writeTuning(bad, file()));
    auto read = readTuning(file());
    ASSERT_FALSE(read) << says;
    EXPECT_THAT(read.error().message, HasSubstr(says));
  };
  refuses([](Trial &trial) { trial.candidate.inputLayouts.clear(); }, "number of layouts");
  refuses([](Trial &trial) { trial.candidate.outputLayouts = {"cab"}; }, "does not fit rank");
  refuses([](Trial &trial) { trial.candidate.memory = DVT_MEMORY_DEVICE; }, "other memory");
  refuses([](Trial &trial) { trial.micros = 3; }, "does not fit its outcome");
  refuses([](Trial &trial) { trial.candidate.algorithm = "two words"; }, "no name");
}

TEST_F(TuningTest, measuresWhatRunsAndKeepsWhatDoesNot) {
  names = {"toy", "crash_run", "wrong_result", "reference"};
  Tuning tuning = measured();
  for (const TuningProblem &problem : tuning.problems) {
    EXPECT_EQ(problem.tried, names);
    const Trial *toy = trialOf(problem, "toy");
    ASSERT_TRUE(toy);
    EXPECT_EQ(toy->outcome, TrialOutcome::Measured) << toy->detail;
    EXPECT_GE(toy->micros, 0);
    EXPECT_EQ(toy->measuredOn, "the other machine");
    const Trial *crashing = trialOf(problem, "crash_run"),
                *wrong = trialOf(problem, "wrong_result");
    ASSERT_TRUE(crashing && wrong);
    EXPECT_EQ(crashing->outcome, TrialOutcome::Crashed);
    EXPECT_EQ(wrong->outcome, TrialOutcome::WrongResult);
    EXPECT_TRUE(wrong->measuredOn.empty());
  }
  auto kept = readTuning(file("times"));
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->counts().timed, tuning.counts().timed);
}

TEST_F(TuningTest, goesOnWhereItWasStopped) {
  size_t begun = 0;
  TuningSteps steps;
  steps.progress = [&](size_t, size_t, const std::string &) { ++begun; };
  steps.interrupted = [&] { return begun == 2; };
  Tuning tuning = measured(steps); // while the second was at work, which does not count
  EXPECT_EQ(tuning.counts().tried, 1u);
  auto kept = readTuning(file("times"));
  ASSERT_TRUE(kept) << kept.error().message;
  takeTimes(tuning, std::move(*kept));
  Worker measuring = worker();
  begun = 0;
  steps.interrupted = {};
  ASSERT_TRUE(measureCandidates(tuning, measuring, names, steps, [] { return Status(); }));
  EXPECT_EQ(begun, tuning.problems.size() - 1);
  EXPECT_EQ(tuning.counts().tried, tuning.problems.size());
}

TEST_F(TuningTest, keepsTheProblemInWhichTheBudgetEnded) {
  size_t begun = 0;
  TuningSteps steps;
  steps.progress = [&](size_t, size_t, const std::string &) { ++begun; };
  steps.stop = [&] { return begun == 2; };
  EXPECT_EQ(measured(steps).counts().tried, 2u);
}

TEST_F(TuningTest, planningTakesTheTimesAsMeasured) {
  Tuning tuning = measured();
  auto importing = cache("importing");
  storeTimes(tuning, *importing);
  options.select = Select::Replay; // whatever the cache lacked would be an error
  options.only = options.worker.only = names;
  Planner planner(sketch.table, Target::host(1), versions(), *importing, options);
  Status status = planner.evaluate();
  ASSERT_TRUE(status) << status.error().message;
  auto plan = planner.choose(Prefer::Cost);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->selection, "replay, with times of the other machine");
  EXPECT_EQ(planner.statistics().fromCache, planner.statistics().problems);
  for (const PlanStep &step : plan->blocks[0].steps) {
    EXPECT_EQ(step.choice.candidate.provider, "toy");
    EXPECT_GE(plan->reports[step.report].micros, 0);
  }
}

TEST_F(TuningTest, whatWasNotTriedIsNotTakenAsMeasured) {
  Tuning tuning = exported();
  auto importing = cache("importing");
  storeTimes(tuning, *importing);
  options.select = Select::Replay;
  options.only = options.worker.only = names;
  Planner planner(sketch.table, Target::host(1), versions(), *importing, options);
  EXPECT_FALSE(planner.evaluate());
}

} // namespace
} // namespace dovetail::plan
