// SPDX-License-Identifier: Apache-2.0
//
// Means of step times by problem and candidate.
#include "plan/StepTimes.h"

#include <fmt/ranges.h>

namespace dovetail::plan {
namespace {

std::pair<std::string, std::string> keyOf(const std::string &problem, const Candidate &candidate) {
  return {problem, fmt::format("{}:{} {}>{}", candidate.provider, candidate.algorithm,
                               fmt::join(candidate.inputLayouts, ","),
                               fmt::join(candidate.outputLayouts, ","))};
}

} // namespace

void StepTimes::add(const std::string &problem, const Candidate &candidate, double micros,
                    double alone) {
  Place &place = places[keyOf(problem, candidate)];
  place.micros += micros;
  ++place.count;
  if (alone <= 0)
    return;
  allMicros += micros;
  allAlone += alone;
}

double StepTimes::of(const std::string &problem, const Candidate &candidate, double alone) const {
  auto found = places.find(keyOf(problem, candidate));
  if (found != places.end())
    return found->second.micros / found->second.count;
  return allAlone > 0 ? alone * allMicros / allAlone : alone;
}

} // namespace dovetail::plan
