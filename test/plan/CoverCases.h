// SPDX-License-Identifier: Apache-2.0
//
// Small covers of random problems, and what any subset of options comes to: the plainest truth.
#pragma once

#include <random>
#include <set>

#include "plan/Cover.h"

namespace dovetail::plan {

inline void addOption(CoverProblem &problem, double cost, std::vector<LayoutState> needs,
                      std::vector<LayoutState> gives, uint32_t against = 0) {
  CoverOption option;
  option.cost = cost;
  option.needs = std::move(needs);
  option.gives = std::move(gives);
  option.against = against;
  problem.options.push_back(std::move(option));
}

/// Against and cost of a subset of options with its cheapest conversions; against is UINT64_MAX
/// where it is no cover that can be ordered. `solution` becomes the cover where it is given.
inline std::pair<uint64_t, double> weightOfSubset(const CoverProblem &problem, unsigned mask,
                                                  CoverSolution *cover = nullptr) {
  constexpr std::pair<uint64_t, double> kNone{UINT64_MAX, 0};
  std::set<LayoutState> given(problem.available.begin(), problem.available.end());
  std::set<LayoutState> needed(problem.required.begin(), problem.required.end());
  std::set<uint32_t> once;
  CoverSolution solution;
  std::pair<uint64_t, double> weight{0, 0};
  for (uint32_t i = 0; i < problem.options.size(); ++i) {
    if (!(mask >> i & 1))
      continue;
    solution.options.push_back(i);
    weight.first += problem.options[i].against;
    weight.second += problem.options[i].cost;
    needed.insert(problem.options[i].needs.begin(), problem.options[i].needs.end());
    for (LayoutState give : problem.options[i].gives) {
      given.insert(give);
      if (!once.insert(give.value).second)
        return kNone;
    }
  }
  for (LayoutState need : needed) {
    if (given.count(need))
      continue;
    uint32_t best = UINT32_MAX;
    for (uint32_t c = 0; c < problem.conversions.size(); ++c) {
      const CoverConversion &conversion = problem.conversions[c];
      if (conversion.value == need.value && conversion.to == need.layout &&
          given.count({conversion.value, conversion.from}) &&
          (best == UINT32_MAX || conversion.cost < problem.conversions[best].cost))
        best = c;
    }
    if (best == UINT32_MAX)
      return kNone;
    solution.conversions.push_back(best);
    weight.second += problem.conversions[best].cost;
  }
  if (!orderCover(problem, solution, nullptr))
    return kNone;
  if (cover)
    *cover = std::move(solution);
  return weight;
}

/// A small graph: every value is made of one or two before it, alone or together with its first
/// source, in two layouts; some options are not wanted; some give both.
inline CoverProblem randomGraph(std::mt19937 &random) {
  CoverProblem problem;
  auto cost = [&] { return std::uniform_real_distribution<double>(1, 10)(random); };
  auto upTo = [&](uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(0, most)(random);
  };
  uint32_t values = 4 + upTo(2);
  std::vector<std::vector<uint32_t>> sources(values);
  for (uint32_t value = 1; value < values; ++value) {
    sources[value] = {upTo(value - 1)};
    if (uint32_t other = upTo(value - 1); other != sources[value][0])
      sources[value].push_back(other);
    auto needs = [&](const std::vector<uint32_t> &of, uint32_t layouts) {
      std::vector<LayoutState> states;
      for (uint32_t source : of)
        states.push_back({source, upTo(layouts)});
      return states;
    };
    addOption(problem, 5 + cost(), needs(sources[value], 0), {{value, 0}}, upTo(3) == 0);
    addOption(problem, cost(), needs(sources[value], 1), {{value, upTo(1)}});
    uint32_t first = sources[value][0];
    if (first == 0)
      continue;
    std::set<uint32_t> fused(sources[value].begin() + 1, sources[value].end());
    fused.insert(sources[first].begin(), sources[first].end());
    if (fused.count(first))
      continue;
    std::vector<LayoutState> gives{{value, upTo(1)}};
    if (upTo(1) == 0)
      gives.push_back({first, upTo(1)});
    addOption(problem, 2 + cost(), needs({fused.begin(), fused.end()}, 1), gives, upTo(5) == 0);
  }
  problem.available = {{0, 0}};
  problem.required = {{values - 1, 0}};
  if (upTo(1) == 0)
    problem.required.push_back({1 + upTo(values - 3), 0});
  for (uint32_t value = 0; value < values; ++value)
    for (uint32_t from : {0u, 1u})
      if (upTo(9) != 0)
        problem.conversions.push_back({value, from, 1 - from, cost() / 3});
  return problem;
}

} // namespace dovetail::plan
