// SPDX-License-Identifier: Apache-2.0
//
// A plan for people and for programs.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "artifact/Plan.h"
#include "runtime/Model.h"

namespace dovetail::cli {

/// `states` may be empty: then nothing is said about what runs in place of what was planned.
nlohmann::json explainJson(const Plan &plan, const std::vector<StepState> &states);
/// `everything`: all alternatives and the text of each problem.
void printExplanation(const Plan &plan, const std::vector<StepState> &states, bool everything);

} // namespace dovetail::cli
