// SPDX-License-Identifier: Apache-2.0
//
// Orders problems by what is at stake.
#include "plan/MeasuringOrder.h"

#include <algorithm>

namespace dovetail::plan {

std::vector<MeasuringTurn> measuringOrder(const std::vector<ProblemShare> &shares) {
  constexpr double kMostMillis = 400, kLeastMillis = 10, kMillisOfWhole = 4000;
  auto stake = [&](size_t i) {
    return shares[i].micros * static_cast<double>(shares[i].occurrences);
  };
  double whole = 0;
  for (size_t i = 0; i < shares.size(); ++i)
    whole += shares[i].single ? stake(i) : 0;
  std::vector<MeasuringTurn> turns;
  for (size_t i = 0; i < shares.size(); ++i) {
    double share = whole > 0 ? stake(i) / whole : 1;
    turns.push_back({i, std::clamp(share * kMillisOfWhole, kLeastMillis, kMostMillis)});
  }
  std::stable_sort(turns.begin(), turns.end(), [&](const MeasuringTurn &a, const MeasuringTurn &b) {
    if (shares[a.problem].single != shares[b.problem].single)
      return shares[a.problem].single;
    return stake(a.problem) > stake(b.problem);
  });
  return turns;
}

} // namespace dovetail::plan
