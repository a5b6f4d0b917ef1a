// SPDX-License-Identifier: Apache-2.0
//
// Remembers trials: (problem, target, provider and its version) -> candidates, figures and kernel
// bytes, in SQLite. A second start measures nothing. One that cannot be opened for writing is an
// error; one that fails later is reported once and remembers nothing more. A corrupt one is set
// aside, never trusted; one of a newer version is left alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/Trial.h"
#include "support/Log.h"

namespace dovetail::plan {

class PlanCache {
public:
  /// Opens or creates `folder`/plans.sqlite. An empty folder name: a cache that remembers nothing.
  static Expected<std::unique_ptr<PlanCache>> open(const std::string &folder, Log log);
  ~PlanCache();
  PlanCache(const PlanCache &) = delete;

  struct Key {
    std::string problem, target, provider, version;
    std::string mode; ///< how it was evaluated: footprint class, measured or checked only
  };
  std::optional<Evaluation> find(const Key &key);
  void store(const Key &key, const Evaluation &evaluation);

private:
  PlanCache();
  struct State;
  std::unique_ptr<State> state;
};

} // namespace dovetail::plan
