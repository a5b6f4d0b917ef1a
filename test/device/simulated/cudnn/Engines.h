// SPDX-License-Identifier: Apache-2.0
//
// The engines that the double has, by numbers of its own. All compute alike, but for the class of
// rounding that their notes state.
#pragma once

#include "Objects.h"

namespace cudnn_double {

struct Engine {
  std::set<int> numericalNotes, behaviorNotes;
  Rounding rounding;
};

/// What the heuristics of a mode find for a graph, best first; none with `reason` where no engine
/// takes it.
std::vector<Settings> enginesFor(const api::Graph &graph, api::HeuristicMode mode,
                                 std::string &reason);
/// Nothing with `reason` where there is no such engine for the graph, or no such knob or setting.
std::optional<Engine> findEngine(const api::Graph &graph, const Settings &settings,
                                 std::string &reason);
/// That an engine takes with these settings, in bytes.
uint64_t workspaceOf(const api::Graph &graph, const Settings &settings);

} // namespace cudnn_double
