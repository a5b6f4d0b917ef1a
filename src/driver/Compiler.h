// SPDX-License-Identifier: Apache-2.0
//
// The one function that lists the stages: import, graph, plan. Just-in-time runs and ahead-of-time
// compilation both call it; the command line and the C API fill the same options.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "driver/Environment.h"
#include "plan/Planner.h"
#include "plan/Tuning.h"
#include "support/Expected.h"
#include "support/Plugin.h"

namespace dovetail {

struct CompileOptions {
  Environment environment;
  Target target;                ///< the processor
  std::optional<Target> device; ///< to run on, beside the processor
  plan::PlannerOptions planner;
  plan::Prefer prefer = plan::Prefer::Cost;
  std::string cacheFolder; ///< of the plan cache; empty: none
  SymbolValues dims;
  std::vector<std::string> states;                          ///< as findStates takes them
  std::map<std::string, std::vector<int64_t>> inputExtents; ///< fixed extents of whole inputs
  std::map<std::string, dvt_type> inputTypes; ///< of what will be given; wrong ones are refused
  bool timeWholeModel =
      true;              ///< let the mixed plan prove itself against library-first and native-first
  std::string stopAfter; ///< "import", "graph", "regions", "plan" or empty
  std::vector<std::string> dumps; ///< stages whose result is handed to `dump`
  std::function<void(const std::string &stage, const std::string &text)> dump;
  Log log;
};

/// Stages that stopAfter and dumps may name.
const std::vector<std::string> &stageNames();

struct Compilation {
  Plan plan; ///< no blocks where it stopped earlier
  plan::Planner::Statistics statistics;
};

Expected<Compilation> compileModel(const std::string &path, const CompileOptions &options,
                                   std::shared_ptr<const PluginSet> plugins);

/// All problems that compiling the model poses to providers, each once; nothing is chosen.
Expected<std::vector<plan::PosedProblem>>
problemsOf(const std::string &path, const CompileOptions &options, const PluginSet &plugins);

/// All that compiling the model would measure for its device, or without one for the processor, if
/// it could: conversions that plans by any preference want included. Candidates are still to be
/// built. Providers that lack their compiler here are left out.
Expected<plan::Tuning> tuningOf(const std::string &path, const CompileOptions &options,
                                const PluginSet &plugins);

} // namespace dovetail
