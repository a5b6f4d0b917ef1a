// SPDX-License-Identifier: Apache-2.0
//
// Both ends work problem by problem through the measuring worker, so that what crashes or hangs
// costs itself only.
#include "plan/TuningRun.h"

#include <algorithm>

#include "plan/Evaluations.h"
#include "plan/KernelResources.h"

namespace dovetail::plan {
namespace {

bool isInterrupted(const TuningSteps &steps) { return steps.interrupted && steps.interrupted(); }
bool isStopped(const TuningSteps &steps) {
  return isInterrupted(steps) || (steps.stop && steps.stop());
}

void tell(const TuningSteps &steps, size_t done, const Tuning &tuning) {
  if (steps.progress)
    steps.progress(done, tuning.problems.size(), summary(tuning.problems[done].posed.problem));
}

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status build(TuningProblem &problem, const Tuning &tuning, Worker &worker, PlanCache &cache) {
  std::string text = problem.posed.problem.text();
  auto keyOf = [&](const std::string &provider) {
    return PlanCache::Key{text, tuning.target.text(), provider, tuning.providers.at(provider),
                          "built to be run elsewhere"};
  };
  EvaluationOptions request;
  request.run = request.measure = false;
  request.representative = problem.posed.representative;
  for (const auto &[provider, version] : tuning.providers) {
    if (auto known = cache.find(keyOf(provider)))
      append(problem.evaluation, std::move(*known));
    else
      request.providers.push_back(provider);
  }
  if (request.providers.empty())
    return Status::success();
  auto built = worker.evaluate(problem.posed.problem, request);
  if (!built)
    return built.takeError();
  for (Trial &trial : built->trials)
    takeResources(trial.kernel, trial.candidate);
  for (const std::string &provider : request.providers)
    if (worker.asks(provider))
      cache.store(keyOf(provider), partOf(*built, provider));
  append(problem.evaluation, std::move(*built));
  return Status::success();
}

/// What became of a trial; its candidate and kernel stay.
void takeResult(Trial &to, const Trial &from) {
  to.outcome = from.outcome;
  to.detail = from.detail;
  to.micros = from.micros;
  to.low = from.low;
  to.high = from.high;
  to.takePreparation(from);
  to.maxError = from.maxError;
  to.measuredOn = from.measuredOn;
}

const Trial *findLabel(const Evaluation &evaluation, const std::string &label) {
  for (const Trial &trial : evaluation.trials)
    if (trial.candidate.label() == label)
      return &trial;
  return nullptr;
}

Status measure(TuningProblem &problem, const Tuning &tuning, Worker &worker,
               const std::vector<std::string> &providers, const TuningSteps &steps) {
  EvaluationOptions request;
  request.providers = providers;
  request.footprintBytes = tuning.footprintBytes;
  request.representative = problem.posed.representative;
  auto found = worker.evaluate(problem.posed.problem, request, problem.evaluation);
  if (!found)
    return found.takeError();
  if (isInterrupted(steps))
    return Status::success();
  for (Trial &trial : problem.evaluation.trials) {
    if (!contains(providers, trial.candidate.provider) || !trial.usable())
      continue;
    if (const Trial *result = findLabel(*found, trial.candidate.label())) {
      takeResult(trial, *result);
    } else {
      trial.outcome = TrialOutcome::Crashed;
      trial.detail = "not tried: others of its provider crashed or hung";
    }
    if (trial.outcome == TrialOutcome::Measured)
      trial.measuredOn = tuning.measuredOn;
  }
  problem.tried.insert(problem.tried.end(), providers.begin(), providers.end());
  return Status::success();
}

} // namespace

Status buildCandidates(Tuning &tuning, Worker &worker, PlanCache &cache, const TuningSteps &steps) {
  for (size_t i = 0; i < tuning.problems.size(); ++i) {
    if (isStopped(steps)) {
      tuning.problems.resize(i);
      break;
    }
    tell(steps, i, tuning);
    if (Status status = build(tuning.problems[i], tuning, worker, cache); !status)
      return status;
  }
  return Status::success();
}

Status measureCandidates(Tuning &tuning, Worker &worker, const std::vector<std::string> &providers,
                         const TuningSteps &steps, const std::function<Status()> &save) {
  for (size_t i = 0; i < tuning.problems.size() && !isStopped(steps); ++i) {
    TuningProblem &problem = tuning.problems[i];
    std::vector<std::string> missing;
    for (const std::string &provider : providers)
      if (!contains(problem.tried, provider))
        missing.push_back(provider);
    if (missing.empty())
      continue;
    tell(steps, i, tuning);
    if (Status status = measure(problem, tuning, worker, missing, steps); !status)
      return status;
    if (Status status = save(); !status)
      return status;
  }
  return Status::success();
}

void takeTimes(Tuning &tuning, Tuning other) {
  for (size_t i = 0; i < std::min(tuning.problems.size(), other.problems.size()); ++i)
    tuning.problems[i] = std::move(other.problems[i]);
}

void storeTimes(const Tuning &tuning, PlanCache &cache) {
  for (const TuningProblem &problem : tuning.problems)
    for (const std::string &provider : problem.tried)
      if (auto version = tuning.providers.find(provider); version != tuning.providers.end())
        cache.store(measuredKey(problem.posed.problem.text(), tuning.target, provider,
                                version->second, problem.posed.representative,
                                tuning.footprintBytes),
                    partOf(problem.evaluation, provider));
}

} // namespace dovetail::plan
