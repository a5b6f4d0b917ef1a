// SPDX-License-Identifier: Apache-2.0
//
// Looks through all that is left at each turn: a turn takes far longer than that.
#include "plan/SharedTurns.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dovetail::plan {

void SharedTurns::add(double cost, std::vector<size_t> parties) {
  for (size_t party : parties)
    spent.resize(std::max(spent.size(), party + 1), 0);
  works.push_back({cost, std::move(parties)});
}

std::optional<size_t> SharedTurns::next(double now) {
  std::vector<double> had = spent;
  for (const Work &work : works)
    if (work.isTaken && !work.isDone)
      for (size_t party : work.parties)
        had[party] += (now - work.begun) / static_cast<double>(work.parties.size());
  std::optional<size_t> best;
  auto least = std::tuple(std::numeric_limits<double>::infinity(), 0.0);
  for (size_t i = 0; i < works.size(); ++i) {
    const Work &work = works[i];
    if (work.isTaken)
      continue;
    double hadLeast = std::numeric_limits<double>::infinity();
    for (size_t party : work.parties)
      hadLeast = std::min(hadLeast, had[party]);
    if (auto rank = std::tuple(hadLeast, work.cost); !best || rank < least) {
      best = i;
      least = rank;
    }
  }
  if (best) {
    works[*best].isTaken = true;
    works[*best].begun = now;
  }
  return best;
}

void SharedTurns::spend(size_t work, double seconds) {
  const std::vector<size_t> &parties = works[work].parties;
  works[work].isDone = true;
  for (size_t party : parties)
    spent[party] += seconds / static_cast<double>(parties.size());
}

} // namespace dovetail::plan
