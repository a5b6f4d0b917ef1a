// SPDX-License-Identifier: Apache-2.0
//
// Trials of problems by their text: from the cache where every provider's are known, else from the
// worker. Within a budget; beyond it, and where plans are made by estimates, candidates are only
// proposed, and built once chosen.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "plan/PlanCache.h"
#include "plan/Planner.h"

namespace dovetail::plan {

class Evaluations {
public:
  Evaluations(Target target, std::map<std::string, std::string> providers, PlanCache &cache,
              const PlannerOptions &options, uint64_t footprintBytes);

  /// Trials of the problem, evaluated now if need be. `representative` gives its symbols values for
  /// timing.
  Expected<const Evaluation *> of(const Problem &problem, const SymbolValues &representative);
  /// Builds, and checks, a trial that was only proposed; what became of it stands in the trial
  /// afterwards.
  Status build(const Problem &problem, const Trial &trial, const SymbolValues &representative);
  const Evaluation *known(const std::string &text) const;
  bool budgetLeft() const;

  size_t fromCache = 0, failures = 0;

private:
  Target target;
  std::map<std::string, std::string> providers;
  PlanCache &cache;
  const PlannerOptions &options;
  uint64_t footprintBytes;
  Worker worker;
  std::map<std::string, Evaluation> evaluations;
  std::chrono::steady_clock::time_point start;
};

/// Time of a trial by which it is chosen: measured, else the provider's own estimate, else a
/// roofline estimate.
double costOf(const Trial &trial, const Problem &problem, const Target &target,
              const SymbolValues &representative);

} // namespace dovetail::plan
