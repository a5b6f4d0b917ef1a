// SPDX-License-Identifier: Apache-2.0
//
// The greedy cover: tree costs by dynamic programming over states, then needed states satisfied
// from the outputs backwards with the cheapest producer. Also the ordering of a cover.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "plan/Cover.h"

namespace dovetail::plan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAgainst = 1e5; // micros that one of CoverOption::against weighs here

/// How a state comes to be most cheaply.
struct Origin {
  double cost = kInfinity;
  int64_t option = -1, conversion = -1; // both -1: available
};

class Greedy {
public:
  explicit Greedy(const CoverProblem &problem) : problem(problem) {
    for (LayoutState state : problem.available)
      origins[state].cost = 0;
    std::set<uint32_t> consumersOf;
    for (const CoverOption &option : problem.options)
      for (LayoutState need : option.needs)
        ++users[need.value];
  }

  /// Bellman-Ford over states: costs only fall, few rounds suffice since options are in rough
  /// topological order.
  void relax() {
    bool changed = true;
    for (int round = 0; changed && round < 200; ++round) {
      changed = false;
      for (uint32_t i = 0; i < problem.options.size(); ++i) {
        const CoverOption &option = problem.options[i];
        double cost = option.cost + kAgainst * option.against;
        for (LayoutState need : option.needs)
          cost += costOf(need);
        if (!(cost < kInfinity))
          continue;
        cost /= static_cast<double>(std::max<size_t>(1, option.gives.size()));
        for (LayoutState give : option.gives)
          changed |= improve(give, {cost, i, -1});
      }
      for (uint32_t i = 0; i < problem.conversions.size(); ++i) {
        const CoverConversion &conversion = problem.conversions[i];
        auto from = origins.find({conversion.value, conversion.from});
        if (from != origins.end() && from->second.conversion < 0 && from->second.cost < kInfinity)
          changed |= improve({conversion.value, conversion.to},
                             {from->second.cost + conversion.cost, -1, i});
      }
    }
  }

  Expected<CoverSolution> collect() {
    CoverSolution solution;
    std::set<uint32_t> options, conversions;
    std::set<LayoutState> have(problem.available.begin(), problem.available.end());
    std::vector<LayoutState> open = problem.required;
    while (!open.empty()) {
      LayoutState state = open.back();
      open.pop_back();
      if (have.count(state))
        continue;
      auto origin = origins.find(state);
      if (origin == origins.end() || !(origin->second.cost < kInfinity))
        return internalError("no kernel gives value {} in layout {}", state.value, state.layout);
      have.insert(state);
      if (origin->second.conversion >= 0) {
        uint32_t index = static_cast<uint32_t>(origin->second.conversion);
        conversions.insert(index);
        open.push_back({state.value, problem.conversions[index].from});
      } else if (origin->second.option >= 0) {
        uint32_t index = static_cast<uint32_t>(origin->second.option);
        options.insert(index);
        for (LayoutState need : problem.options[index].needs)
          open.push_back(need);
        for (LayoutState give : problem.options[index].gives)
          have.insert(give);
      }
    }
    solution.options.assign(options.begin(), options.end());
    solution.conversions.assign(conversions.begin(), conversions.end());
    for (uint32_t option : solution.options) {
      solution.cost += problem.options[option].cost;
      solution.against += problem.options[option].against;
    }
    for (uint32_t conversion : solution.conversions)
      solution.cost += problem.conversions[conversion].cost;
    if (!orderCover(problem, solution, nullptr))
      return internalError("the greedy cover has a circle");
    return solution;
  }

private:
  double costOf(LayoutState state) const {
    auto origin = origins.find(state);
    if (origin == origins.end())
      return kInfinity;
    auto count = users.find(state.value);
    return origin->second.cost /
           std::sqrt(static_cast<double>(count == users.end() ? 1 : count->second));
  }
  bool improve(LayoutState state, Origin candidate) {
    Origin &known = origins[state];
    if (!(candidate.cost < known.cost * (1 - 1e-12)))
      return false;
    known = candidate;
    return true;
  }

  const CoverProblem &problem;
  std::map<LayoutState, Origin> origins;
  std::map<uint32_t, unsigned> users;
};

} // namespace

Expected<CoverSolution> solveCoverGreedily(const CoverProblem &problem) {
  Greedy greedy(problem);
  greedy.relax();
  return greedy.collect();
}

bool orderCover(const CoverProblem &problem, CoverSolution &solution,
                std::vector<uint32_t> *circle) {
  std::set<LayoutState> have(problem.available.begin(), problem.available.end());
  std::map<uint32_t, std::vector<uint32_t>> conversionsFrom; // value -> conversions
  for (uint32_t index : solution.conversions)
    conversionsFrom[problem.conversions[index].value].push_back(index);
  auto spread = [&](uint32_t value) {
    for (uint32_t index : conversionsFrom[value]) {
      const CoverConversion &conversion = problem.conversions[index];
      if (have.count({value, conversion.from}))
        have.insert({value, conversion.to});
    }
  };
  for (LayoutState state : problem.available)
    spread(state.value);
  std::vector<uint32_t> waiting = solution.options, ordered;
  std::sort(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    std::vector<uint32_t> still;
    for (uint32_t index : waiting) {
      const CoverOption &option = problem.options[index];
      bool ready = std::all_of(option.needs.begin(), option.needs.end(),
                               [&](LayoutState need) { return have.count(need) != 0; });
      if (!ready) {
        still.push_back(index);
        continue;
      }
      ordered.push_back(index);
      for (LayoutState give : option.gives)
        have.insert(give);
      for (LayoutState give : option.gives)
        spread(give.value);
    }
    if (still.size() == waiting.size()) {
      if (circle)
        *circle = still;
      return false;
    }
    waiting = std::move(still);
  }
  solution.options = std::move(ordered);
  return true;
}

} // namespace dovetail::plan
