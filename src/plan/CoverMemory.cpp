// SPDX-License-Identifier: Apache-2.0
//
// Prices by the secant of the two covers around the bound: where they cost the same with memory at
// its price, no third one on the lower hull lies between them.
#include "plan/CoverMemory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace dovetail::plan {
namespace {

constexpr int kMostSolves = 30; ///< of one bounded problem
constexpr double kGap = 0.005;  ///< of a cover's cost, from the bound, that is good enough
constexpr int kMostPrices = 7;  ///< of one choice of caps
constexpr double kClimb = 3;    ///< to the next price while nothing fits
constexpr size_t kQuickStates = 256, kQuickRelaxedStates = 100; ///< while a price is sought
constexpr int kMostNearPrices = 4;                              ///< beside a hint
constexpr double kNearGap = 0.01; ///< of a cover's cost that is good enough beside a hint
/// By so much the free cover may be slowed down before preferences have a price, and as much is it:
/// what they are against counts for so many times its time.
constexpr double kDear = 2;
constexpr size_t kProgramOptions = 120; ///< put to the 0-1 program, at most

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
  const MemoryCaps &parts() const { return largest; }

private:
  MemoryCaps largest;
};

template <typename Function>
void forEachMemory(const CoverProblem &problem, const CoverSolution &solution,
                   const Function &function) {
  for (uint32_t option : solution.options)
    function(problem.options[option].memory);
  for (uint32_t conversion : solution.conversions)
    function(problem.conversions[conversion].memory);
}

/// A cover and what the price sees of it.
struct Priced {
  CoverSolution solution;
  double cost = 0;     ///< micros, with the price of preferences
  double bytes = 0;    ///< shared code in parts, what comes with providers left out
  uint64_t memory = 0; ///< all of it
  double price = 0;    ///< that gave it
  MemoryCaps caps;
  bool relaxed = false; ///< preferences were priced
};

class BoundedSearch {
public:
  BoundedSearch(const CoverProblem &problem, const CoverLimits &limits, uint64_t most,
                PricedCovers &known)
      : problem(problem), limits(limits), most(most), known(known) {
    auto note = [&](const CoverMemory &memory) {
      if (memory.code.key != SharedBytes::kNobody)
        ++sharers[memory.code.key];
      if (memory.process.key != SharedBytes::kNobody)
        levels[memory.process.key].push_back(memory.process.bytes);
    };
    std::map<std::pair<std::vector<LayoutState>, std::vector<LayoutState>>, uint32_t> numbers;
    for (const CoverOption &option : problem.options) {
      note(option.memory);
      serviceOf.push_back(
          numbers.try_emplace({option.needs, option.gives}, static_cast<uint32_t>(numbers.size()))
              .first->second);
    }
    services = numbers.size();
    for (const CoverConversion &conversion : problem.conversions)
      note(conversion.memory);
    for (auto &[key, sizes] : levels) {
      sizes.push_back(0);
      std::sort(sizes.begin(), sizes.end(), std::greater<>());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    }
  }

  Expected<BoundedCover> run(BoundHint *hint) {
    if (hint && hint->isKnown && nearHint(*hint)) {
      BoundedCover result{best->solution, best->memory, solves, true, true};
      result.solution.exact = false;
      result.solution.bound = 0;
      leave(*hint);
      return result;
    }
    best.reset();
    least.reset();
    solves = 0; // as without a hint
    auto free = solve(0, {}, false);
    if (!free)
      return free.takeError();
    lastResorts = lastResortsOf(free->solution);
    double bound = free->solution.bound;
    if (free->memory > most) {
      consider(*free);
      searchAll(*free);
      polish();
      if (problem.options.size() <= kProgramOptions)
        improve();
    }
    const Priced &chosen = best ? *best : free->memory <= most || !least ? *free : *least;
    BoundedCover result{chosen.solution, chosen.memory, solves, chosen.memory <= most, false};
    if (free->memory > most) {
      result.solution.bound = std::min(bound, result.solution.cost);
      result.solution.exact = isProven;
    }
    if (hint) {
      hint->isKnown = false;
      if (best)
        leave(*hint);
    }
    return result;
  }

private:
  /// First with all preferences kept. Where nothing fits then, or only what is several times
  /// slower, they have a price.
  void searchAll(const Priced &free) {
    if (hasPreferences())
      dear = kDear * free.solution.cost;
    searchCaps(&free, false);
    if (!best && hasPreferences())
      searchCaps(nullptr, true);
    if (!best)
      searchLeast();
    if (!best || best->relaxed || !hasPreferences())
      return;
    if (best->solution.cost <= dear)
      return;
    Priced strict = std::move(*best);
    best.reset();
    solves = 0;
    searchCaps(nullptr, true);
    if (!best || best->cost >= strict.cost)
      best = std::move(strict);
  }

  /// What one provider brings may be less than what it saves.
  void searchLeast() {
    const double dearest = dearestFor(*least);
    MemoryCaps caps;
    for (const auto &[key, sizes] : levels)
      caps[key] = 0;
    for (const auto &[key, sizes] : levels)
      for (uint64_t size : sizes) {
        if (size == 0)
          continue;
        MemoryCaps one = caps;
        one[key] = size;
        if (auto thrifty = solve(dearest, one, hasPreferences()))
          consider(*thrifty);
      }
  }

  void leave(BoundHint &hint) const {
    hint = {true, best->price, best->caps, best->relaxed, lastResorts};
  }

  /// Whether a cover within the bound was found near the price of the hint, and little can be won.
  bool nearHint(const BoundHint &hint) {
    lastResorts = hint.lastResorts;
    std::optional<Priced> low, high; // beyond the bound, and within it
    double price = hint.price;
    for (int i = 0; i < kMostNearPrices; ++i) {
      auto cover = solve(price, hint.caps, hint.overrules);
      if (!cover)
        return false;
      consider(*cover);
      if (cover->memory <= most && gainOf(*cover) <= kNearGap * cover->cost)
        return best.has_value();
      if (price == 0)
        break; // it was found without one, and no other follows from that
      (cover->memory <= most ? high : low) = std::move(*cover);
      if (low && high && low->bytes > high->bytes && high->cost > low->cost)
        price = (high->cost - low->cost) / (low->bytes - high->bytes);
      else
        price = high ? price / 2 : 2 * price;
    }
    return best.has_value();
  }

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
    return option.cost * (relaxed && option.preference > 0 ? kDear : 1);
  }

  static bool isWithin(const CoverMemory &memory, const MemoryCaps &caps) {
    auto cap = caps.find(memory.process.key);
    return cap == caps.end() || memory.process.bytes <= cap->second;
  }

  /// The cheapest cover with memory at `price` micros for a byte.
  Expected<Priced> solve(double price, const MemoryCaps &caps, bool relaxed) {
    ++solves;
    const bool isQuick =
        (price > 0 || !caps.empty()) && !isThorough && problem.options.size() > kProgramOptions;
    const PricedCovers::Key key{price, effectOf(caps), relaxed, isQuick};
    auto found = known.covers.find(key);
    if (found == known.covers.end()) {
      auto solved = solveAnew(price, caps, relaxed, isQuick);
      if (!solved)
        return solved.takeError();
      found = known.covers.emplace(key, std::move(*solved)).first;
    }
    Priced priced = pricedAs(found->second, relaxed);
    priced.price = price;
    priced.caps = caps;
    priced.relaxed = relaxed;
    return priced;
  }

  /// Without those that exclude nothing.
  MemoryCaps effectOf(const MemoryCaps &caps) const {
    MemoryCaps effect;
    for (const auto &[key, most] : caps)
      if (auto sizes = levels.find(key); sizes != levels.end() && most < sizes->second.front())
        effect.emplace(key, most);
    return effect;
  }

  Expected<CoverSolution> solveAnew(double price, const MemoryCaps &caps, bool relaxed,
                                    bool isQuick) {
    CoverProblem part;
    part.available = problem.available;
    part.required = problem.required;
    part.ranks = problem.ranks;
    std::vector<uint32_t> options, conversions; // numbers in the whole problem
    // Of those that serve alike only the cheapest matters.
    constexpr size_t kNowhere = SIZE_MAX;
    std::vector<size_t> placeOf(services, kNowhere);
    for (uint32_t i = 0; i < problem.options.size(); ++i) {
      const CoverOption &option = problem.options[i];
      if (!isWithin(option.memory, caps))
        continue;
      CoverOption priced;
      priced.cost = pricedCost(option, relaxed) + price * pricedBytes(option.memory);
      priced.against = option.against - (relaxed ? option.preference : 0);
      size_t &place = placeOf[serviceOf[i]];
      if (place == kNowhere) {
        place = options.size();
        priced.needs = option.needs;
        priced.gives = option.gives;
        part.options.push_back(std::move(priced));
        options.push_back(i);
      } else if (CoverOption &other = part.options[place];
                 std::make_pair(priced.against, priced.cost) <
                 std::make_pair(other.against, other.cost)) {
        other.cost = priced.cost;
        other.against = priced.against;
        options[place] = i;
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
    CoverLimits effort = limits;
    if (isQuick) {
      effort.maxStates = std::min(effort.maxStates, kQuickStates);
      effort.relaxedStates = std::min(effort.relaxedStates, kQuickRelaxedStates);
    }
    auto solved = solveCover(part, effort);
    if (!solved)
      return solved;
    CoverSolution whole;
    whole.exact = solved->exact;
    whole.bound = solved->bound;
    for (uint32_t index : solved->options) {
      const CoverOption &option = problem.options[options[index]];
      whole.options.push_back(options[index]);
      whole.cost += option.cost;
      whole.against += option.against;
    }
    for (uint32_t index : solved->conversions) {
      whole.conversions.push_back(conversions[index]);
      whole.cost += problem.conversions[conversions[index]].cost;
    }
    std::sort(whole.conversions.begin(), whole.conversions.end());
    return whole;
  }

  Priced pricedAs(const CoverSolution &solution, bool relaxed) const {
    Priced priced;
    priced.solution = solution;
    for (uint32_t index : solution.options) {
      const CoverOption &option = problem.options[index];
      priced.cost += pricedCost(option, relaxed);
      priced.bytes += pricedBytes(option.memory);
    }
    for (uint32_t index : solution.conversions) {
      priced.cost += problem.conversions[index].cost;
      priced.bytes += pricedBytes(problem.conversions[index].memory);
    }
    priced.memory = memoryOf(problem, solution);
    return priced;
  }

  std::pair<uint64_t, double> weightOf(const Priced &cover) const {
    if (cover.relaxed)
      return {lastResortsOf(cover.solution), cover.cost};
    return {cover.solution.against, cover.solution.cost};
  }

  void consider(const Priced &cover) {
    bool isSound = cover.memory <= most && lastResortsOf(cover.solution) <= lastResorts;
    if (isSound && (!best || weightOf(cover) < weightOf(*best)))
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

  /// What providers may take once, and what a cover takes of it at least that does not keep to the
  /// next smaller choice.
  struct Choice {
    MemoryCaps caps;
    uint64_t least = 0;
  };
  /// A choice, and the cheapest cover of any memory that keeps to it.
  struct Level {
    Choice choice;
    Priced low;
  };

  /// From as much of what providers bring as the bound lets in, what saves most time for its bytes
  /// before other things, down to nothing: covers without a price, until one fits. Then from there
  /// on up again with a price, as what was found below shows how little is to be gained above.
  void searchCaps(const Priced *wider, bool relaxed) {
    std::vector<Choice> choices = choicesByGain(relaxed);
    std::vector<Level> open;
    while (!choices.empty() && solves < kMostSolves) {
      Choice choice = std::move(choices.back());
      choices.pop_back();
      auto low = lowestOf(choice.caps, open.empty() ? wider : &open.back().low, relaxed);
      if (!low)
        break; // what is left covers nothing
      consider(*low);
      if (low->memory <= most)
        break;
      open.push_back({std::move(choice), std::move(*low)});
    }
    double price = 0;
    for (auto level = open.rbegin(); level != open.rend() && solves < kMostSolves; ++level)
      searchPrice(*level, relaxed, price);
  }

  /// The cheapest cover of any memory within the caps, where `wider` is that of wider ones.
  std::optional<Priced> lowestOf(const MemoryCaps &caps, const Priced *wider, bool relaxed) {
    auto keepsTo = [&](const CoverSolution &solution) {
      bool keeps = true;
      forEachMemory(problem, solution,
                    [&](const CoverMemory &memory) { keeps &= isWithin(memory, caps); });
      return keeps;
    };
    if (wider && keepsTo(wider->solution)) {
      Priced same = *wider;
      same.caps = caps;
      return same;
    }
    auto found = solve(0, caps, relaxed);
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }

  /// Whether covers that are against as much as `cover` at least, and cost `cost` at least, cannot
  /// be better than what was found by more than the gap.
  bool isHopeless(const Priced &cover, double cost) const {
    if (!best)
      return false;
    const double slack = problem.options.size() > kProgramOptions ? kGap : 0;
    const auto weight = weightOf(cover), found = weightOf(*best);
    double least = found.second * (1 - slack);
    if (!cover.relaxed)
      least = std::min(least, dear);
    return weight.first > found.first || (weight.first == found.first && cost >= least);
  }

  /// Choices of which each lets in more than those before it, from nothing on.
  std::vector<Choice> choicesByGain(bool relaxed) const {
    struct Step {
      uint32_t key;
      size_t level; ///< in `levels`
      double gain;  ///< micros, over the next lower level
      uint64_t bytes;
    };
    std::vector<Step> steps;
    for (const auto &[key, sizes] : levels)
      for (size_t level = 0; level + 1 < sizes.size(); ++level)
        steps.push_back({key, level, gainOf(key, sizes[level + 1], sizes[level], relaxed),
                         sizes[level] - sizes[level + 1]});
    std::stable_sort(steps.begin(), steps.end(), [](const Step &one, const Step &other) {
      return one.gain / double(one.bytes) > other.gain / double(other.bytes);
    });
    MemoryCaps caps;
    for (const auto &[key, sizes] : levels)
      caps[key] = 0;
    std::vector<Choice> choices{{caps}};
    uint64_t sum = 0;
    for (const Step &step : steps) {
      const std::vector<uint64_t> &sizes = levels.at(step.key);
      const uint64_t to = sizes[step.level], from = caps[step.key];
      if (to <= from || sum + to - from > most)
        continue;
      sum += to - from;
      caps[step.key] = to;
      choices.push_back(
          {caps, *std::prev(std::lower_bound(sizes.begin(), sizes.end(), from, std::greater<>()))});
    }
    return choices;
  }

  /// How much sooner values are made where a provider may take `more` in place of `less`: of the
  /// quickest option for each, whatever it needs.
  double gainOf(uint32_t key, uint64_t less, uint64_t more, bool relaxed) const {
    std::map<std::vector<LayoutState>, std::pair<double, double>> quickest; // with less, with more
    constexpr double kNever = std::numeric_limits<double>::infinity();
    for (const CoverOption &option : problem.options) {
      auto &[withLess, withMore] =
          quickest.try_emplace(option.gives, std::pair(kNever, kNever)).first->second;
      const SharedBytes &process = option.memory.process;
      // Going against what counts before all cost is a loss whatever it takes.
      const double cost =
          pricedCost(option, relaxed) + 1e4 * (option.against - (relaxed ? option.preference : 0));
      if (process.key != key || process.bytes <= less)
        withLess = std::min(withLess, cost);
      if (process.key != key || process.bytes <= more)
        withMore = std::min(withMore, cost);
    }
    double gain = 0;
    for (const auto &[gives, costs] : quickest)
      if (costs.second < kNever)
        gain += std::min(costs.first, 1e6 + costs.second) - costs.second;
    return gain;
  }

  /// A price with which memory comes first: a thousandth of it weighs more than all time.
  static double dearestFor(const Priced &cover) {
    return 1e3 * (1 + cover.cost) / (1 + cover.bytes);
  }

  /// What a cover could cost less at most that fits and has as much of what is shared.
  double gainOf(const Priced &cover) const {
    return cover.price * (double(most) - double(cover.memory));
  }

  /// Seeks the price at which memory is within the bound, from `price` on where that is known, and
  /// leaves there the last that was tried.
  void searchPrice(const Level &level, bool relaxed, double &price) {
    Priced low = level.low;
    if (isHopeless(low, weightOf(low).second))
      return;
    std::optional<Priced> high;
    auto first = [&] {
      if (price > 0)
        return price;
      // What was found below keeps to these caps, too.
      const bool isAlike =
          best && best->relaxed == relaxed && weightOf(*best).first == weightOf(low).first;
      return isAlike ? (best->cost - low.cost) / double(low.memory - best->memory)
                     : dearestFor(low);
    };
    auto between = [&] { return (high->cost - low.cost) / (low.bytes - high->bytes); };
    double next = first();
    for (int i = 0; i < kMostPrices && solves < kMostSolves && next > 0; ++i) {
      auto middle = solve(next, level.choice.caps, relaxed);
      if (!middle)
        break;
      price = next;
      consider(*middle);
      // No cover within the bound that does not keep to the next smaller choice costs less than
      // this, shared code aside.
      const double bound =
          middle->cost + price * (middle->bytes - double(most - level.choice.least));
      if (isHopeless(*middle, bound))
        break;
      const bool isEnd = high && middle->cost + price * middle->bytes >=
                                     (low.cost + price * low.bytes) * (1 - 1e-9);
      if (middle->memory <= most)
        high = std::move(*middle);
      else
        low = std::move(*middle);
      if (isEnd ||
          (high && problem.options.size() > kProgramOptions && gainOf(*high) <= kGap * high->cost))
        break;
      if (high)
        next = low.bytes > high->bytes ? between() : 0;
      else
        next = price < dearestFor(low) ? std::min(kClimb * price, dearestFor(low)) : 0;
    }
  }

  /// Solves with full effort at the price that gave the best cover.
  void polish() {
    if (!best)
      return;
    isThorough = true;
    const double price = best->price;
    const MemoryCaps caps = best->caps;
    if (auto cover = solve(price, caps, best->relaxed))
      consider(*cover);
    isThorough = false;
  }

  void improve() {
    if (best && best->relaxed)
      return; // the program knows preferences without a price only
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
  PricedCovers &known;
  std::vector<uint32_t> serviceOf; ///< of each option: what it needs and gives
  size_t services = 0;
  std::map<uint32_t, double> sharers;               ///< by key of code
  std::map<uint32_t, std::vector<uint64_t>> levels; ///< by key: sizes, the largest first, 0 last
  uint64_t lastResorts = 0;                         ///< of the cheapest cover of any memory
  double dear = std::numeric_limits<double>::infinity(); ///< beyond it preferences have a price
  int solves = 0;
  bool isProven = false, isThorough = false;
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

void PricedCovers::begin(const CoverProblem &of, const CoverLimits &within) {
  if (of == problem && within == limits)
    return;
  problem = of;
  limits = within;
  covers.clear();
}

Expected<BoundedCover> solveCoverWithin(const CoverProblem &problem, const CoverLimits &limits,
                                        uint64_t mostBytes, BoundHint *hint, PricedCovers *known) {
  PricedCovers own;
  PricedCovers &covers = known ? *known : own;
  covers.begin(problem, limits);
  return BoundedSearch(problem, limits, mostBytes, covers).run(hint);
}

} // namespace dovetail::plan
