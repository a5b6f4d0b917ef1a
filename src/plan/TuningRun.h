// SPDX-License-Identifier: Apache-2.0
//
// The three legs of a tuning: candidates are built here, run there, and what they took there goes
// into the plan cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/Tuning.h"

namespace dovetail::plan {

struct TuningSteps {
  /// Before each problem; may be empty.
  std::function<void(size_t done, size_t total, const std::string &what)> progress;
  /// Polled between problems: true ends with what is there; may be empty.
  std::function<bool()> stop;
  /// The same, and what became of the problem at hand is not believed: the worker may have been
  /// told to end, too.
  std::function<bool()> interrupted;
};

/// Compiles what every provider offers for the problems; runs nothing. From the cache where that
/// was done before, which remembers it. Problems that `stop` left out are taken out.
Status buildCandidates(Tuning &tuning, Worker &worker, PlanCache &cache, const TuningSteps &steps);

/// Runs, checks and times the candidates of these providers where that was not done yet, on the
/// target's device or, for the processor, here. `save` is called after each problem.
Status measureCandidates(Tuning &tuning, Worker &worker, const std::vector<std::string> &providers,
                         const TuningSteps &steps, const std::function<Status()> &save);

/// Takes over what `other`, another state of the same export, has measured.
void takeTimes(Tuning &tuning, Tuning other);

/// Puts what was tried into the cache, where planning finds it as measured.
void storeTimes(const Tuning &tuning, PlanCache &cache);

} // namespace dovetail::plan
