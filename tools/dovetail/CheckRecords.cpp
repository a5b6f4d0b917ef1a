// SPDX-License-Identifier: Apache-2.0
//
// One row of the plan cache for each problem and provider.
#include "CheckRecords.h"

#include <algorithm>

#include "plan/Evaluations.h"

namespace dovetail::cli {

std::string identityOf(const plan::PosedProblem &posed) {
  std::string text = posed.problem.text();
  if (posed.problem.hasSymbols())
    for (const auto &[symbol, value] : posed.representative)
      if (text.find(symbol) != std::string::npos)
        text += fmt::format(" {}={}", symbol, value);
  return text;
}

CheckRecords::CheckRecords(std::unique_ptr<plan::PlanCache> cache, const Target &target,
                           std::map<std::string, std::string> versions,
                           const std::string &referenceVersion)
    : cache(std::move(cache)), target(target.text()), versions(std::move(versions)),
      mode("compared with reference " + referenceVersion) {}

plan::PlanCache::Key CheckRecords::keyOf(const plan::PosedProblem &posed,
                                         const std::string &provider) const {
  return {identityOf(posed), target, provider, versions.at(provider), mode};
}

plan::Evaluation CheckRecords::find(const plan::PosedProblem &posed,
                                    std::vector<std::string> &missing) {
  plan::Evaluation known;
  for (const auto &entry : versions)
    if (auto part = cache->find(keyOf(posed, entry.first)))
      plan::append(known, std::move(*part));
    else
      missing.push_back(entry.first);
  return known;
}

void CheckRecords::store(const plan::PosedProblem &posed, const plan::Evaluation &evaluation,
                         const std::vector<std::string> &providers) {
  for (const std::string &provider : providers) {
    plan::Evaluation part = plan::partOf(evaluation, provider);
    // What ran while there was no truth to compare it with is not known to be right.
    bool isRight =
        std::all_of(part.trials.begin(), part.trials.end(), [](const plan::Trial &trial) {
          bool ran = trial.prepareMillis > 0; // kernels of unknown extents are only built
          return trial.usable() &&
                 (trial.compared || !ran || trial.candidate.provider == "reference");
        });
    if (!isRight)
      continue;
    for (plan::Trial &trial : part.trials)
      trial.kernel.clear();
    cache->store(keyOf(posed, provider), part);
  }
}

} // namespace dovetail::cli
