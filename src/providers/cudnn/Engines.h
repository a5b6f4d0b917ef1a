// SPDX-License-Identifier: Apache-2.0
//
// The ways cuDNN has for a graph on a device that need not be here: engines with settings of their
// knobs, as its heuristics rank them. Each has a name made of the engine and the settings, from
// which it is found again in another process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "providers/cudnn/Graph.h"

namespace dovetail::cudnn {

/// The device's properties as the library wants them; what is wrong with them is in `backend`.
Object deviceProperties(Backend &backend, const std::string &json);

struct Engine {
  int64_t index = 0;                ///< the library's number for it
  std::map<int64_t, int64_t> knobs; ///< setting by kind of knob
  uint64_t workspaceBytes = 0;
  bool compiles = false; ///< its kernel is made by the library's run-time compiler
  bool usesMatrixUnits = false;
  bool isDeterministic = true;
  std::string numerics; ///< class of rounding: "f32", "tf32", "f16-winograd"...

  /// "eng67:k2=1:k13=0", stable for one version of the library.
  std::string name() const;
};

/// Engine and knobs of a name as Engine::name gives it; nothing where it is no such name.
std::optional<Engine> parseEngine(std::string_view name);

/// All that the heuristics offer for `graph`, best first, each once. Empty with the reason in
/// `backend` where the library refuses the graph. `type` is that of the problem's elements;
/// `contracts` tells whether there is anything for matrix units.
std::vector<Engine> findEngines(Backend &backend, const OperationGraph &graph, const Object &device,
                                dvt_type type, bool contracts);

/// The plan for `engine`, its kernel compiled where it has to be: JSON.
std::string makePlan(Backend &backend, const OperationGraph &graph, const Object &device,
                     const Engine &engine);

} // namespace dovetail::cudnn
