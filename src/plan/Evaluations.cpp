// SPDX-License-Identifier: Apache-2.0
//
// Gathers the trials of a problem provider by provider, so that a new version of one library
// measures only that one again.
#include "plan/Evaluations.h"

#include <algorithm>
#include <bit>

#include <fmt/ranges.h>

namespace dovetail::plan {

Evaluations::Evaluations(Target target, std::map<std::string, std::string> providers,
                         PlanCache &cache, const PlannerOptions &options, uint64_t footprintBytes)
    : target(target), providers(std::move(providers)), cache(cache), options(options),
      footprintBytes(footprintBytes), worker(options.worker, target),
      start(std::chrono::steady_clock::now()) {}

bool Evaluations::budgetLeft() const {
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return spent.count() < options.budgetSeconds && !(options.stop && options.stop());
}

const Evaluation *Evaluations::known(const std::string &text) const {
  auto found = evaluations.find(text);
  return found == evaluations.end() ? nullptr : &found->second;
}

Expected<const Evaluation *> Evaluations::of(const Problem &problem,
                                             const SymbolValues &representative) {
  std::string text = problem.text();
  if (const Evaluation *evaluation = known(text))
    return evaluation;
  EvaluationOptions request;
  request.measure = options.select != Select::Estimate;
  request.footprintBytes = footprintBytes;
  request.representative = representative;
  std::string values;
  for (const auto &[symbol, value] : representative)
    if (text.find(symbol) != std::string::npos)
      values += fmt::format(" {}={}", symbol, value);
  auto keyFor = [&](const std::string &provider, const std::string &version) {
    // Footprints of like size share measurements.
    std::string mode = request.measure ? fmt::format("measured under 2^{} bytes{}",
                                                     std::bit_width(footprintBytes), values)
                                       : "checked" + values;
    return PlanCache::Key{text, target.text(), provider, version, mode};
  };
  Evaluation all;
  for (const auto &[provider, version] : providers) {
    if (auto stored = cache.find(keyFor(provider, version))) {
      std::move(stored->trials.begin(), stored->trials.end(), std::back_inserter(all.trials));
      std::move(stored->refusals.begin(), stored->refusals.end(), std::back_inserter(all.refusals));
    } else {
      request.providers.push_back(provider);
    }
  }
  if (request.providers.empty()) {
    ++fromCache;
  } else if (options.select == Select::Replay) {
    return unavailable("replay: the cache holds no measurement of {} by {} for this target and "
                       "these library versions: "
                       "{}; run once with --select=measure",
                       summary(problem), fmt::join(request.providers, ", "), text);
  } else {
    bool withinBudget = budgetLeft();
    request.build = withinBudget && options.select != Select::Estimate;
    auto fresh = worker.evaluate(problem, request);
    if (!fresh)
      return fresh.takeError();
    for (const std::string &provider : request.providers) {
      Evaluation part;
      for (const Trial &trial : fresh->trials)
        if (trial.candidate.provider == provider)
          part.trials.push_back(trial);
      for (const auto &refusal : fresh->refusals)
        if (refusal.first == provider)
          part.refusals.push_back(refusal);
      bool kept = worker.asks(provider) && std::find(options.forget.begin(), options.forget.end(),
                                                     provider) == options.forget.end();
      if (request.build && kept)
        cache.store(keyFor(provider, providers[provider]), part);
    }
    std::move(fresh->trials.begin(), fresh->trials.end(), std::back_inserter(all.trials));
    std::move(fresh->refusals.begin(), fresh->refusals.end(), std::back_inserter(all.refusals));
  }
  for (const Trial &trial : all.trials)
    failures += !trial.usable();
  return &evaluations.emplace(std::move(text), std::move(all)).first->second;
}

Status Evaluations::build(const Problem &problem, const Trial &trial,
                          const SymbolValues &representative) {
  auto found = evaluations.find(problem.text());
  if (found == evaluations.end() || trial.built)
    return Status::success();
  EvaluationOptions request;
  request.providers = {trial.candidate.provider};
  request.algorithms = {trial.candidate.label()};
  request.measure = false;
  request.representative = representative;
  auto fresh = worker.evaluate(problem, request);
  if (!fresh)
    return fresh.takeError();
  for (Trial &known : found->second.trials) {
    if (&known != &trial)
      continue;
    known.built = true;
    known.outcome = TrialOutcome::BuildFailed;
    known.detail = "not proposed again";
    for (Trial &made : fresh->trials)
      if (made.candidate.label() == known.candidate.label()) {
        known.outcome = made.outcome;
        known.detail = made.detail;
        known.kernel = std::move(made.kernel);
        known.maxError = made.maxError;
        break;
      }
    failures += !known.usable();
  }
  return Status::success();
}

} // namespace dovetail::plan
