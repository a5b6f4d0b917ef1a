// SPDX-License-Identifier: Apache-2.0
//
// Providers that crash, hang, lie or write where they must not cost their own candidates and
// nothing else: the worker comes back with the trials of the others and a reason for each.
#include <algorithm>

#include <gtest/gtest.h>

#include "plan/Worker.h"

namespace dovetail::plan {
namespace {

const char *const kRelu = "problem(%0: f32[4,8]) %1: f32[4,8] = relu@14(%0) return(%1)";

WorkerOptions workerOptions() {
  WorkerOptions options;
  options.executable = DOVETAIL_WORKER;
  options.plugins = {DOVETAIL_BINARY_DIR "/lib/dovetail",
                     DOVETAIL_BINARY_DIR "/test/planner_plugins"};
  options.timeout = std::chrono::seconds(5);
  return options;
}

Expected<Evaluation> evaluate(Worker &worker, std::vector<std::string> providers,
                              const char *text = kRelu) {
  auto problem = Problem::parse(text);
  if (!problem)
    return problem.takeError();
  EvaluationOptions request;
  request.providers = std::move(providers);
  request.budgetMillis = 5;
  return worker.evaluate(*problem, request);
}

const Trial *trialOf(const Evaluation &evaluation, const std::string &provider) {
  auto found =
      std::find_if(evaluation.trials.begin(), evaluation.trials.end(),
                   [&](const Trial &trial) { return trial.candidate.provider == provider; });
  return found == evaluation.trials.end() ? nullptr : &*found;
}

struct Fault {
  const char *provider;
  TrialOutcome outcome;
  const char *detail;
  const char *algorithm;
};

void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.provider; }

class WorkerFault : public ::testing::TestWithParam<Fault> {};

TEST_P(WorkerFault, costsItsOwnCandidatesOnly) {
  const Fault &fault = GetParam();
  WorkerOptions options = workerOptions();
  options.only = {"toy", fault.provider};
  Worker worker(options, Target::host(1));
  auto evaluation = evaluate(worker, {"toy", fault.provider, "reference"});
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  const Trial *failed = trialOf(*evaluation, fault.provider);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->outcome, fault.outcome) << outcomeName(failed->outcome);
  EXPECT_NE(failed->detail.find(fault.detail), std::string::npos) << failed->detail;
  EXPECT_EQ(failed->candidate.algorithm, fault.algorithm);
  const Trial *good = trialOf(*evaluation, "toy");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->outcome, TrialOutcome::Measured) << good->detail;
  EXPECT_TRUE(trialOf(*evaluation, "reference"));
}

INSTANTIATE_TEST_SUITE_P(
    Worker, WorkerFault,
    ::testing::Values(
        Fault{"crash_propose", TrialOutcome::Crashed, "in phase 'propose'", ""},
        Fault{"crash_compile", TrialOutcome::Crashed, "in phase 'compile'", "interpret"},
        Fault{"crash_run", TrialOutcome::Crashed, "in phase 'run'", "interpret"},
        Fault{"hang_propose", TrialOutcome::Timeout, "hung", ""},
        Fault{"hang_run", TrialOutcome::Timeout, "hung", "interpret"},
        Fault{"fail_run", TrialOutcome::RunFailed, "always fails", "interpret"},
        Fault{"wrong_result", TrialOutcome::WrongResult, "differs from the reference", "interpret"},
        Fault{"out_of_bounds", TrialOutcome::OutOfBounds, "wrote beside", "interpret"}),
    [](const auto &info) { return std::string(info.param.provider); });

TEST(Worker, doesNotAskForEverAProviderThatFallsWhileItProposes) {
  WorkerOptions options = workerOptions();
  options.only = {"toy", "crash_propose"};
  Worker worker(options, Target::host(1));
  for (int i = 0; i < 5; ++i) {
    auto evaluation = evaluate(worker, {"toy", "crash_propose"});
    ASSERT_TRUE(evaluation) << evaluation.error().message;
    const Trial *failed = trialOf(*evaluation, "crash_propose");
    ASSERT_TRUE(failed);
    EXPECT_FALSE(failed->usable());
    EXPECT_TRUE(trialOf(*evaluation, "toy"));
  }
  EXPECT_EQ(worker.replacements(), 3u);
  EXPECT_FALSE(worker.asks("crash_propose"));
  EXPECT_TRUE(worker.asks("toy"));
}

TEST(Worker, proposesWithoutBuilding) {
  WorkerOptions options = workerOptions();
  options.only = {"toy", "crash_compile"};
  Worker worker(options, Target::host(1));
  auto problem = Problem::parse(kRelu);
  ASSERT_TRUE(problem);
  EvaluationOptions request;
  request.build = false;
  auto evaluation = worker.evaluate(*problem, request);
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  EXPECT_EQ(worker.replacements(), 0u);
  const Trial *proposed = trialOf(*evaluation, "crash_compile");
  ASSERT_TRUE(proposed);
  EXPECT_FALSE(proposed->built);
  EXPECT_EQ(proposed->candidate.estimateMicros, 6);
}

TEST(Worker, tellsWhatItIsAt) {
  WorkerOptions options = workerOptions();
  options.only = {"toy"};
  std::vector<std::string> told;
  options.report = [&](const std::string &label, const char *phase) {
    told.push_back(label + " " + phase);
  };
  Worker worker(options, Target::host(1));
  auto evaluation = evaluate(worker, {"toy"});
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  const Trial *toy = trialOf(*evaluation, "toy");
  ASSERT_TRUE(toy);
  auto at = [&](const std::string &what) {
    return std::find(told.begin(), told.end(), what) - told.begin();
  };
  const auto end = static_cast<std::ptrdiff_t>(told.size());
  const std::string label = toy->candidate.label();
  EXPECT_LT(at("toy: propose"), at(label + " compile"));
  EXPECT_LT(at(label + " compile"), at(label + " time"));
  EXPECT_LT(at(label + " time"), end);
}

TEST(Worker, takesTheTruthOfConversionsFromTheirLayout) {
  // The only candidates are in layouts that are not row-major, the reference's included.
  WorkerOptions options = workerOptions();
  options.only = {"blocked"};
  Worker worker(options, Target::host(1));
  auto evaluation = evaluate(worker, {"blocked", "reference"},
                             "problem(%0: f32[1,6,2,3]) %1: f32[1,6,2,3] = dvt_reorder@1(%0) "
                             "{dst_layout=\"acdb\", src_layout=\"aBcd4b\"} return(%1)");
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  const Trial *trial = trialOf(*evaluation, "blocked");
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->outcome, TrialOutcome::Measured) << trial->detail;
  EXPECT_TRUE(trialOf(*evaluation, "reference"));
}

TEST(Worker, tellsPreparingFromPacking) {
  WorkerOptions options = workerOptions();
  options.only = {"toy", "slow_prepare"};
  Worker worker(options, Target::host(1));
  auto evaluation = evaluate(worker, {"toy", "slow_prepare"});
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  const Trial *slow = trialOf(*evaluation, "slow_prepare");
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->outcome, TrialOutcome::Measured) << slow->detail;
  EXPECT_GE(slow->prepareMillis, 60);
  EXPECT_EQ(slow->packingMillis, 30);
  EXPECT_DOUBLE_EQ(slow->preparationMillis(), slow->prepareMillis - 30);
  const Trial *toy = trialOf(*evaluation, "toy");
  ASSERT_TRUE(toy);
  EXPECT_EQ(toy->packingMillis, 0);
  EXPECT_GT(toy->preparationMillis(), 0);
}

TEST(Trial, keepsTheLeastPreparationThatWasSeen) {
  Trial trial, other;
  EXPECT_EQ(trial.preparationMillis(), -1);
  other.prepareMillis = 12;
  other.packingMillis = 2;
  trial.takePreparation(other);
  EXPECT_EQ(trial.preparationMillis(), 10);
  other.prepareMillis = 13; // with more packing and less of the rest
  other.packingMillis = 5;
  trial.takePreparation(other);
  EXPECT_EQ(trial.preparationMillis(), 8);
  EXPECT_EQ(trial.prepareMillis, 13);
  other.packingMillis = 0;
  trial.takePreparation(other);
  trial.takePreparation(Trial());
  EXPECT_EQ(trial.preparationMillis(), 8);
}

TEST(Worker, saysThatItCannotBeStarted) {
  WorkerOptions options = workerOptions();
  options.executable = "/no/such/worker";
  Worker worker(options, Target::host(1));
  auto evaluation = evaluate(worker, {"toy"});
  ASSERT_FALSE(evaluation);
  EXPECT_EQ(evaluation.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(evaluation.error().message.find("/no/such/worker"), std::string::npos);
}

} // namespace
} // namespace dovetail::plan
