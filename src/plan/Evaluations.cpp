// SPDX-License-Identifier: Apache-2.0
//
// Gathers the trials of a problem provider by provider, so that a new version of one library
// measures only that one again.
#include "plan/Evaluations.h"

#include <algorithm>
#include <bit>

#include <fmt/ranges.h>

#include "plan/KernelResources.h"

namespace dovetail::plan {
namespace {

/// Values of the symbols that the problem has, as part of a key.
std::string valuesIn(const std::string &text, const SymbolValues &representative) {
  std::string values;
  for (const auto &[symbol, value] : representative)
    if (text.find(symbol) != std::string::npos)
      values += fmt::format(" {}={}", symbol, value);
  return values;
}

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

void append(Evaluation &to, Evaluation from) {
  std::move(from.trials.begin(), from.trials.end(), std::back_inserter(to.trials));
  std::move(from.refusals.begin(), from.refusals.end(), std::back_inserter(to.refusals));
}

Evaluation partOf(const Evaluation &whole, const std::string &provider) {
  Evaluation part;
  for (const Trial &trial : whole.trials)
    if (trial.candidate.provider == provider)
      part.trials.push_back(trial);
  for (const auto &refusal : whole.refusals)
    if (refusal.first == provider)
      part.refusals.push_back(refusal);
  return part;
}

PlanCache::Key measuredKey(const std::string &text, const Target &target,
                           const std::string &provider, const std::string &version,
                           const SymbolValues &representative, uint64_t footprintBytes) {
  return {text, target.text(), provider, version,
          fmt::format("measured under 2^{} bytes{}", std::bit_width(footprintBytes),
                      valuesIn(text, representative))};
}

Evaluations::Evaluations(Target target, std::map<std::string, std::string> providers,
                         PlanCache &cache, const PlannerOptions &options, uint64_t footprintBytes)
    : target(target), providers(std::move(providers)), cache(cache), options(options),
      footprintBytes(footprintBytes), worker(options.worker, target),
      start(std::chrono::steady_clock::now()) {}

bool Evaluations::budgetLeft(double share) const {
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return spent.count() < share * options.budgetSeconds && !(options.stop && options.stop());
}

const Evaluation *Evaluations::known(const std::string &text) const {
  auto found = entries.find(text);
  return found == entries.end() ? nullptr : &found->second.evaluation;
}

std::vector<std::pair<PosedProblem, const Evaluation *>> Evaluations::posed() const {
  std::vector<std::pair<PosedProblem, const Evaluation *>> all;
  for (const auto &[text, entry] : entries)
    if (auto problem = Problem::parse(text))
      all.push_back({{std::move(*problem), entry.representative}, &entry.evaluation});
  return all;
}

bool Evaluations::lacksMeasuring(const std::string &text) const {
  auto found = entries.find(text);
  return found != entries.end() && !found->second.unmeasured.empty();
}

Evaluations::Counts Evaluations::counts() const {
  Counts counts;
  for (const auto &[text, entry] : entries) {
    ++(!entry.unmeasured.empty() ? counts.estimated
       : entry.timed             ? counts.timed
                                 : counts.fromCache);
    for (const Trial &trial : entry.evaluation.trials)
      counts.failures += !trial.usable();
  }
  return counts;
}

/// Measured trials and those that were only built once chosen are kept apart.
PlanCache::Key Evaluations::keyFor(const std::string &text, const std::string &provider,
                                   const SymbolValues &representative, bool measured) const {
  const std::string &version = providers.at(provider);
  if (measured)
    return measuredKey(text, target, provider, version, representative, footprintBytes);
  return {text, target.text(), provider, version,
          "built once chosen" + valuesIn(text, representative)};
}

bool Evaluations::isKept(const std::string &provider) const {
  return worker.asks(provider) && !contains(options.forget, provider);
}

void Evaluations::store(const std::string &text, const Evaluation &evaluation,
                        const std::string &provider, const SymbolValues &representative,
                        bool measured) {
  if (isKept(provider))
    cache.store(keyFor(text, provider, representative, measured), partOf(evaluation, provider));
}

Expected<const Evaluation *> Evaluations::of(const Problem &problem,
                                             const SymbolValues &representative) {
  std::string text = problem.text();
  if (const Evaluation *evaluation = known(text))
    return evaluation;
  Entry entry;
  entry.representative = representative;
  EvaluationOptions request;
  request.build = false;
  request.representative = representative;
  for (const auto &named : providers) {
    const std::string &provider = named.first;
    auto stored = options.select == Select::Estimate
                      ? std::nullopt
                      : cache.find(keyFor(text, provider, representative, true));
    if (!stored) {
      entry.unmeasured.push_back(provider);
      stored = cache.find(keyFor(text, provider, representative, false));
    }
    if (stored)
      append(entry.evaluation, std::move(*stored));
    else
      request.providers.push_back(provider);
  }
  if (!request.providers.empty()) {
    if (options.select == Select::Replay)
      return unavailable("replay: the cache holds no measurement of {} by {} for this target and "
                         "these library versions: "
                         "{}; run once with --select=measure",
                         summary(problem), fmt::join(request.providers, ", "), text);
    auto proposed = worker.evaluate(problem, request);
    if (!proposed)
      return proposed.takeError();
    append(entry.evaluation, std::move(*proposed));
  }
  return &entries.emplace(std::move(text), std::move(entry)).first->second.evaluation;
}

Status Evaluations::measure(const Problem &problem, const SymbolValues &representative,
                            double budgetMillis) {
  std::string text = problem.text();
  auto found = entries.find(text);
  if (found == entries.end() || found->second.unmeasured.empty())
    return Status::success();
  Entry &entry = found->second;
  EvaluationOptions request;
  request.providers = entry.unmeasured;
  request.footprintBytes = footprintBytes;
  request.representative = representative;
  request.budgetMillis = budgetMillis;
  auto fresh = worker.evaluate(problem, request);
  if (!fresh)
    return fresh.takeError();
  for (Trial &trial : fresh->trials)
    for (const Trial &before : entry.evaluation.trials)
      if (before.candidate.label() == trial.candidate.label())
        trial.takePreparation(before);
  auto isFresh = [&](const std::string &provider) { return contains(entry.unmeasured, provider); };
  std::erase_if(entry.evaluation.trials,
                [&](const Trial &trial) { return isFresh(trial.candidate.provider); });
  std::erase_if(entry.evaluation.refusals,
                [&](const auto &refusal) { return isFresh(refusal.first); });
  for (const std::string &provider : entry.unmeasured)
    store(text, *fresh, provider, representative, true);
  append(entry.evaluation, std::move(*fresh));
  entry.unmeasured.clear();
  entry.timed = true;
  return Status::success();
}

Expected<std::set<std::string>> Evaluations::offered(const Problem &problem) {
  std::string text = problem.text();
  auto [found, isNew] = offers.try_emplace(text);
  if (!isNew)
    return found->second;
  std::set<std::string> &labels = found->second;
  auto note = [&](const Evaluation &evaluation) {
    for (const Trial &trial : evaluation.trials)
      labels.insert(trial.candidate.label());
  };
  EvaluationOptions request;
  request.build = false;
  auto keyOf = [&](const std::string &provider) {
    return PlanCache::Key{text, target.text(), provider, providers[provider], "offered"};
  };
  for (const auto &[provider, version] : providers) {
    if (auto stored = cache.find(keyOf(provider)))
      note(*stored);
    else
      request.providers.push_back(provider);
  }
  if (request.providers.empty() || options.select == Select::Replay)
    return labels;
  auto fresh = worker.evaluate(problem, request);
  if (!fresh)
    return fresh.takeError();
  note(*fresh);
  for (const std::string &provider : request.providers)
    if (isKept(provider))
      cache.store(keyOf(provider), partOf(*fresh, provider));
  return labels;
}

/// A kernel that keeps registers in memory loses to whatever does not, as far as is known: no
/// estimate says what it costs.
static void refuseSpills(Trial &built, const std::vector<Trial> &trials) {
  bool isReplaceable = std::any_of(trials.begin(), trials.end(), [&](const Trial &other) {
    return &other != &built && other.usable() && other.candidate.scratchBytes == 0;
  });
  if (!built.usable() || built.candidate.scratchBytes == 0 || !isReplaceable)
    return;
  built.outcome = TrialOutcome::BuildFailed;
  built.detail = fmt::format("each thread would keep {} bytes of registers in memory",
                             built.candidate.scratchBytes);
}

Status Evaluations::build(const Problem &problem, const Trial &trial,
                          const SymbolValues &representative) {
  std::string text = problem.text();
  auto found = entries.find(text);
  if (found == entries.end() || trial.built)
    return Status::success();
  EvaluationOptions request;
  request.providers = {trial.candidate.provider};
  request.algorithms = {trial.candidate.label()};
  request.measure = false;
  request.representative = representative;
  auto fresh = worker.evaluate(problem, request);
  if (!fresh)
    return fresh.takeError();
  std::vector<Trial> &trials = found->second.evaluation.trials;
  auto known = std::find_if(trials.begin(), trials.end(),
                            [&](const Trial &candidate) { return &candidate == &trial; });
  if (known == trials.end())
    return Status::success();
  known->built = true;
  known->outcome = TrialOutcome::BuildFailed;
  known->detail = "not proposed again";
  for (Trial &made : fresh->trials)
    if (made.candidate.label() == known->candidate.label() ||
        (made.candidate.algorithm.empty() && !made.usable())) {
      known->outcome = made.outcome;
      known->detail = made.detail;
      known->kernel = std::move(made.kernel);
      takeResources(known->kernel, known->candidate);
      refuseSpills(*known, trials);
      known->maxError = made.maxError;
      known->takePreparation(made);
      break;
    }
  store(text, found->second.evaluation, known->candidate.provider, representative, false);
  return Status::success();
}

} // namespace dovetail::plan
