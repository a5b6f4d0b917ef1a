// SPDX-License-Identifier: Apache-2.0
//
// The last word in choosing: the whole model timed under the mixed, the library-first and the
// native-first plan, run in turns. What their steps took at their places goes back to the planner,
// whose refined plans challenge the best so far; who wins has to stand up to the first ones in the
// end (plan/Championship.h). Also the text of a plan.
#pragma once

#include <memory>
#include <vector>

#include "driver/Compiler.h"
#include "runtime/Session.h"

namespace dovetail {

/// Times plans of the same model in this process, interleaved; medians in microseconds go into
/// Plan::timings of the returned one. Models with symbols or control flow are not timed: the mixed
/// plan is taken.
/// Remembered in the cache.
Expected<Plan> chooseByWholeModel(plan::Planner &planner, std::shared_ptr<const PluginSet> plugins,
                                  plan::PlanCache &cache, const CompileOptions &options);

/// Binds seeded noise of the planned extents to every input of a session that has none. `memory`
/// holds the bytes. BadInput where an extent is symbolic: names the input and asks for --dim or the
/// input itself.
Status bindNoise(Session &session, const Plan &plan, const std::vector<bool> &bound,
                 std::vector<std::shared_ptr<void>> &memory, const SymbolValues &dims);

/// A plan as text: values, steps, kernels, memory. The same plan gives the same text.
std::string planText(const Plan &plan);

} // namespace dovetail
