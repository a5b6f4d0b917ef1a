// SPDX-License-Identifier: Apache-2.0
//
// Turns for work that several parties want while time is short. The party that has had least time
// is next, with what costs it least; so each gets a fair share, and gets most done with it. Work
// that several want is done once, and its time is split among them. Data in, data out.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace dovetail::plan {

class SharedTurns {
public:
  /// Work for `parties`, at least one, each named once; `cost` is an estimate in any unit. Works
  /// are numbered from 0 as they are added.
  void add(double cost, std::vector<size_t> parties);
  /// The next work, which is then taken; nothing where none is left. Ties fall to the lower number.
  /// Work under way counts by what it has taken until `now`, in seconds.
  std::optional<size_t> next(double now = 0);
  /// What the work took.
  void spend(size_t work, double seconds);

private:
  struct Work {
    double cost;
    std::vector<size_t> parties;
    bool isTaken = false, isDone = false;
    double begun = 0; ///< seconds
  };
  std::vector<Work> works;
  std::vector<double> spent; ///< seconds, by party
};

} // namespace dovetail::plan
