// SPDX-License-Identifier: Apache-2.0
//
// Prices by the secant of the two covers around the bound: where they cost the same with memory at
// its price, no third one on the lower hull lies between them.
#include "plan/CoverMemory.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dovetail::plan {
namespace {

constexpr int kMostSolves = 40;         ///< of one bounded problem
constexpr double kGap = 0.005;          ///< of a cover's cost, from the bound, that is good enough
constexpr int kMostPrices = 10;         ///< of one choice of caps
constexpr size_t kProgramOptions = 120; ///< put to the 0-1 program, at most

using Caps = std::map<uint32_t, uint64_t>; ///< by key: what comes with a provider, at most

/// Adds what is shared, the largest of each key.
class SharedSum {
public:
  void add(const SharedBytes &part) {
    if (part.key != SharedBytes::kNobody)
      largest[part.key] = std::max(largest[part.key], part.bytes);
  }
  uint64_t sum() const {
    uint64_t bytes = 0;
    for (const auto &[key, part] : largest)
      bytes += part;
    return bytes;
  }
  const Caps &parts() const { return largest; }

private:
  Caps largest;
};

template <typename Function>
void forEachMemory(const CoverProblem &problem, const CoverSolution &solution,
                   const Function &function) {
  for (uint32_t option : solution.options)
    function(problem.options[option].memory);
  for (uint32_t conversion : solution.conversions)
    function(problem.conversions[conversion].memory);
}

std::pair<uint64_t, double> weightOf(const CoverSolution &solution) {
  return {solution.against, solution.cost};
}

/// A cover and what the price sees of it.
struct Priced {
  CoverSolution solution;
  double cost = 0;     ///< micros, with what preferences weigh where memory overrules them
  double bytes = 0;    ///< shared code in parts, what comes with providers left out
  uint64_t memory = 0; ///< all of it
};

class BoundedSearch {
public:
  BoundedSearch(const CoverProblem &problem, const CoverLimits &limits, uint64_t most)
      : problem(problem), limits(limits), most(most) {
    auto note = [&](const CoverMemory &memory) {
      if (memory.code.key != SharedBytes::kNobody)
        ++sharers[memory.code.key];
      if (memory.process.key != SharedBytes::kNobody)
        levels[memory.process.key].push_back(memory.process.bytes);
    };
    for (const CoverOption &option : problem.options)
      note(option.memory);
    for (const CoverConversion &conversion : problem.conversions)
      note(conversion.memory);
    for (auto &[key, sizes] : levels) {
      sizes.push_back(0);
      std::sort(sizes.begin(), sizes.end(), std::greater<>());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    }
  }

  Expected<BoundedCover> run() {
    auto free = solve(0, {}, false);
    if (!free)
      return free.takeError();
    lastResorts = lastResortsOf(free->solution);
    unitOfPreference = std::max(1.0, free->solution.cost);
    double bound = free->solution.bound;
    if (free->memory > most) {
      for (bool relaxed : {false, true})
        if (!best && (!relaxed || hasPreferences()))
          searchCaps(relaxed);
      if (problem.options.size() <= kProgramOptions)
        improve();
    }
    const Priced &chosen = best ? *best : free->memory <= most || !least ? *free : *least;
    BoundedCover result{chosen.solution, chosen.memory, solves, chosen.memory <= most};
    if (free->memory > most) {
      result.solution.bound = std::min(bound, result.solution.cost);
      result.solution.exact = isProven;
    }
    return result;
  }

private:
  bool hasPreferences() const {
    return std::any_of(problem.options.begin(), problem.options.end(),
                       [](const CoverOption &option) { return option.preference > 0; });
  }

  double pricedBytes(const CoverMemory &memory) const {
    double bytes = static_cast<double>(memory.bytes);
    if (memory.code.key != SharedBytes::kNobody)
      bytes += static_cast<double>(memory.code.bytes) / sharers.at(memory.code.key);
    return bytes;
  }

  double pricedCost(const CoverOption &option, bool relaxed) const {
    return option.cost + (relaxed ? unitOfPreference * option.preference : 0);
  }

  static bool isWithin(const CoverMemory &memory, const Caps &caps) {
    auto cap = caps.find(memory.process.key);
    return cap == caps.end() || memory.process.bytes <= cap->second;
  }

  /// The cheapest cover with memory at `price` micros for a byte.
  Expected<Priced> solve(double price, const Caps &caps, bool relaxed) {
    ++solves;
    CoverProblem part;
    part.available = problem.available;
    part.required = problem.required;
    part.ranks = problem.ranks;
    std::vector<uint32_t> options, conversions; // numbers in the whole problem
    // Of those that serve alike only the cheapest matters.
    std::map<std::pair<std::vector<LayoutState>, std::vector<LayoutState>>, size_t> alike;
    for (uint32_t i = 0; i < problem.options.size(); ++i) {
      const CoverOption &option = problem.options[i];
      if (!isWithin(option.memory, caps))
        continue;
      CoverOption priced;
      priced.cost = pricedCost(option, relaxed) + price * pricedBytes(option.memory);
      priced.against = option.against - (relaxed ? option.preference : 0);
      auto [known, isNew] = alike.try_emplace({option.needs, option.gives}, options.size());
      if (isNew) {
        priced.needs = option.needs;
        priced.gives = option.gives;
        part.options.push_back(std::move(priced));
        options.push_back(i);
      } else if (CoverOption &other = part.options[known->second];
                 std::make_pair(priced.against, priced.cost) <
                 std::make_pair(other.against, other.cost)) {
        other.cost = priced.cost;
        other.against = priced.against;
        options[known->second] = i;
      }
    }
    for (uint32_t i = 0; i < problem.conversions.size(); ++i) {
      CoverConversion conversion = problem.conversions[i];
      if (!isWithin(conversion.memory, caps))
        continue;
      conversion.cost += price * pricedBytes(conversion.memory);
      part.conversions.push_back(conversion);
      conversions.push_back(i);
    }
    auto solved = solveCover(part, limits);
    if (!solved)
      return solved.takeError();
    return translate(*solved, options, conversions, relaxed);
  }

  Priced translate(const CoverSolution &from, const std::vector<uint32_t> &options,
                   const std::vector<uint32_t> &conversions, bool relaxed) const {
    Priced priced;
    CoverSolution &to = priced.solution;
    to.exact = from.exact;
    to.bound = from.bound;
    for (uint32_t index : from.options) {
      const CoverOption &option = problem.options[options[index]];
      to.options.push_back(options[index]);
      to.cost += option.cost;
      to.against += option.against;
      priced.cost += pricedCost(option, relaxed);
      priced.bytes += pricedBytes(option.memory);
    }
    for (uint32_t index : from.conversions) {
      const CoverConversion &conversion = problem.conversions[conversions[index]];
      to.conversions.push_back(conversions[index]);
      to.cost += conversion.cost;
      priced.cost += conversion.cost;
      priced.bytes += pricedBytes(conversion.memory);
    }
    std::sort(to.conversions.begin(), to.conversions.end());
    priced.memory = memoryOf(problem, to);
    return priced;
  }

  void consider(const Priced &cover) {
    bool isSound = cover.memory <= most && lastResortsOf(cover.solution) <= lastResorts;
    if (isSound && (!best || weightOf(cover.solution) < weightOf(best->solution)))
      best = cover;
    auto rank = [&](const Priced &of) {
      return std::make_tuple(lastResortsOf(of.solution), of.memory, of.cost);
    };
    if (!least || rank(cover) < rank(*least))
      least = cover;
  }

  /// What no bound overrules.
  uint64_t lastResortsOf(const CoverSolution &solution) const {
    uint64_t sum = solution.against;
    for (uint32_t option : solution.options)
      sum -= problem.options[option].preference;
    return sum;
  }

  /// Tries all that providers may take once, from everything downwards.
  void searchCaps(bool relaxed) {
    std::vector<Caps> all{{}};
    for (const auto &[key, sizes] : levels) {
      std::vector<Caps> longer;
      for (const Caps &caps : all)
        for (uint64_t size : sizes) {
          longer.push_back(caps);
          longer.back()[key] = size;
        }
      constexpr size_t kMostChoices = 64;
      if (longer.size() > kMostChoices)
        break;
      all = std::move(longer);
    }
    auto sum = [](const Caps &caps) {
      uint64_t bytes = 0;
      for (const auto &[key, size] : caps)
        bytes += size;
      return bytes;
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const Caps &a, const Caps &b) { return sum(a) > sum(b); });
    // Where little of the bound is at stake, the first choice is as good as any.
    const uint64_t atStake = most / 16;
    for (const Caps &caps : all)
      if (solves < kMostSolves && (!best || sum(all.front()) - sum(caps) >= atStake))
        searchPrice(caps, relaxed);
  }

  void searchPrice(const Caps &caps, bool relaxed) {
    auto low = solve(0, caps, relaxed);
    if (!low)
      return; // what is left covers nothing
    consider(*low);
    bool isBetter = !best || weightOf(low->solution) < weightOf(best->solution);
    if (low->memory <= most || !isBetter)
      return;
    // Memory first: a thousandth of it weighs more than all time.
    double dearest = 1e3 * (1 + low->cost) / (1 + low->bytes);
    auto high = solve(dearest, caps, relaxed);
    if (!high)
      return;
    consider(*high);
    if (high->memory > most)
      return;
    for (int i = 0; i < kMostPrices && solves < kMostSolves; ++i) {
      double saved = low->bytes - high->bytes, price = (high->cost - low->cost) / saved;
      if (!(saved > 0) || !(price > 0))
        break;
      auto middle = solve(price, caps, relaxed);
      if (!middle)
        break;
      consider(*middle);
      // No cover within the bound costs less than this, shared code aside.
      double bound = middle->cost + price * (middle->bytes - double(most));
      double ends = low->cost + price * low->bytes;
      if (middle->cost + price * middle->bytes >= ends * (1 - 1e-9))
        break;
      (middle->memory <= most ? high : low) = std::move(middle);
      if (problem.options.size() > kProgramOptions && high->cost - bound <= kGap * high->cost)
        break;
    }
  }

  void improve() {
    CoverLimits program = limits;
    program.maxNodes = std::max<int64_t>(limits.maxNodes, 200);
    program.relativeGap = 1e-7;
    auto found = solveWithinByProgram(problem, program, most, best ? &best->solution : nullptr);
    if (!found || lastResortsOf(*found) > lastResorts)
      return;
    isProven = found->exact;
    if (!best)
      best.emplace();
    best->memory = memoryOf(problem, *found);
    best->solution = std::move(*found);
  }

  const CoverProblem &problem;
  const CoverLimits &limits;
  const uint64_t most;
  std::map<uint32_t, double> sharers;               ///< by key of code
  std::map<uint32_t, std::vector<uint64_t>> levels; ///< by key: sizes, the largest first, 0 last
  double unitOfPreference = 1;                      ///< micros
  uint64_t lastResorts = 0;                         ///< of the cheapest cover of any memory
  int solves = 0;
  bool isProven = false;
  std::optional<Priced> best;  ///< that fits
  std::optional<Priced> least; ///< of memory
};

} // namespace

uint64_t memoryOf(const CoverProblem &problem, const CoverSolution &solution) {
  uint64_t own = 0;
  SharedSum code, process;
  forEachMemory(problem, solution, [&](const CoverMemory &memory) {
    own += memory.bytes;
    code.add(memory.code);
    process.add(memory.process);
  });
  return own + code.sum() + process.sum();
}

Expected<BoundedCover> solveCoverWithin(const CoverProblem &problem, const CoverLimits &limits,
                                        uint64_t mostBytes) {
  return BoundedSearch(problem, limits, mostBytes).run();
}

} // namespace dovetail::plan
