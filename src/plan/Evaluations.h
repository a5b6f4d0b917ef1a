// SPDX-License-Identifier: Apache-2.0
//
// Trials of problems by their text: from the cache where every provider's are known, else proposed
// by the worker and, as far as the budget goes, measured. What lies beyond the budget, and all of
// plans made by estimates, is built once chosen; what was built is remembered as well, so that
// nothing is done twice.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "device/DeviceDescription.h"
#include "plan/PlanCache.h"
#include "plan/Planner.h"

namespace dovetail::plan {

/// What trials of a provider are kept under once they are measured. Footprints of like size share
/// measurements.
PlanCache::Key measuredKey(const std::string &text, const Target &target,
                           const std::string &provider, const std::string &version,
                           const SymbolValues &representative, uint64_t footprintBytes);
/// What one provider said.
Evaluation partOf(const Evaluation &whole, const std::string &provider);
void append(Evaluation &to, Evaluation from);

class Evaluations {
public:
  Evaluations(Target target, std::map<std::string, std::string> providers, PlanCache &cache,
              const PlannerOptions &options, uint64_t footprintBytes);

  /// Trials of the problem, from the cache or proposed only. `representative` gives its symbols
  /// values for timing. The pointer stays valid.
  Expected<const Evaluation *> of(const Problem &problem, const SymbolValues &representative);
  /// Builds, checks and times what providers propose, where that is not known yet; trials that were
  /// only proposed are replaced.
  Status measure(const Problem &problem, const SymbolValues &representative, double budgetMillis);
  /// Labels of what is on offer for the problem, from the cache or asked now; nothing is built. All
  /// that a replay finds in the cache.
  Expected<std::set<std::string>> offered(const Problem &problem);
  /// Builds, and checks, a trial that was only proposed; what became of it stands in the trial
  /// afterwards.
  Status build(const Problem &problem, const Trial &trial, const SymbolValues &representative);
  const Evaluation *known(const std::string &text) const;
  /// Sizes of its symbols at which a known problem is tried.
  const SymbolValues &representativeOf(const std::string &text) const {
    return entries.at(text).representative;
  }
  /// All problems that were asked for, with what is known of each.
  std::vector<std::pair<PosedProblem, const Evaluation *>> posed() const;
  /// Whether something of a known problem was not measured yet.
  bool lacksMeasuring(const std::string &text) const;
  /// Whether less than this share of the budget is spent, and nobody said stop.
  bool budgetLeft(double share = 1) const;

  struct Counts {
    size_t timed = 0, fromCache = 0, estimated = 0, failures = 0;
  };
  /// Of the problems seen so far.
  Counts counts() const;

private:
  struct Entry {
    SymbolValues representative;
    Evaluation evaluation;
    std::vector<std::string> unmeasured; ///< providers
    bool timed = false;                  ///< in this run
  };
  PlanCache::Key keyFor(const std::string &text, const std::string &provider,
                        const SymbolValues &representative, bool measured) const;
  bool isKept(const std::string &provider) const;
  void store(const std::string &text, const Evaluation &evaluation, const std::string &provider,
             const SymbolValues &representative, bool measured);

  Target target;
  std::map<std::string, std::string> providers;
  PlanCache &cache;
  const PlannerOptions &options;
  uint64_t footprintBytes;
  Worker worker;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::set<std::string>> offers;
  std::chrono::steady_clock::time_point start;
};

/// By which trials are chosen.
struct CostModel {
  Target target; ///< the processor
  std::optional<Target> device;
  std::optional<device::DeviceDescription> description; ///< of the device

  /// Time of a trial: measured, else the provider's own estimate, else a roofline estimate.
  double of(const Trial &trial, const Problem &problem, const SymbolValues &representative) const;
  /// Of a transfer between the processor's and the device's memory.
  double ofTransfer(double bytes) const;
};

} // namespace dovetail::plan
