// SPDX-License-Identifier: Apache-2.0
//
// Sharing as in the runtime: kernels of equal problems are prepared once, but for their constants.
#include "artifact/PlanPreparation.h"

#include <set>
#include <string>

namespace dovetail {

PlanPreparation preparationOf(const Plan &plan) {
  PlanPreparation sum;
  const PreparationPrice price{plan.runsPerLoad};
  std::set<std::string> seen;
  for (const PlanBlock &block : plan.blocks)
    for (const PlanStep &step : block.steps) {
      if (step.kind != StepKind::Kernel && step.kind != StepKind::LateBound)
        continue;
      const Candidate &candidate = step.choice.candidate;
      if (candidate.memory == DVT_MEMORY_DEVICE ||
          !seen.insert(candidate.label() + " " + std::to_string(step.problem)).second)
        continue;
      ++sum.kernels;
      double millis =
          step.report < plan.reports.size() ? plan.reports[step.report].prepareMillis : -1;
      if (millis < 0) {
        ++sum.unknown;
        continue;
      }
      sum.millis += millis;
      sum.chargedMicros += price.of(millis);
    }
  return sum;
}

} // namespace dovetail
