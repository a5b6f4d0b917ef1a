// SPDX-License-Identifier: Apache-2.0
//
// In which order problems are measured beyond those of the most promising plan, and how long each:
// data in, data out. Single ops come before fused regions, since with them a plan exists; among
// each the first is where most time is at
// stake, its estimated time by how often the model has it. A problem that the model spends little
// time in is timed briefly: knowing it better would change nothing.
#pragma once

#include <cstddef>
#include <vector>

namespace dovetail::plan {

struct ProblemShare {
  double micros = 0;      ///< estimate for one run
  size_t occurrences = 1; ///< regions of the model that have this problem
  bool single = true;     ///< one op
};

struct MeasuringTurn {
  size_t problem = 0; ///< index of the share
  double budgetMillis = 0;
};

/// A turn for each share. Ties fall to the lower index.
std::vector<MeasuringTurn> measuringOrder(const std::vector<ProblemShare> &shares);

} // namespace dovetail::plan
