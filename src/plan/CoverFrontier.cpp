// SPDX-License-Identifier: Apache-2.0
//
// The exact cover by dynamic programming. Values are visited from the outputs backwards, each after
// all that is made of it. What has been decided so far matters to the rest only through the
// frontier: which earlier values are needed in which layouts, and which of them an option that was
// taken gives along with a later one. Of all decisions that lead to the same frontier the cheapest
// is kept. Where a model narrows to one value, so does the frontier, to a state for each layout of
// it: pieces between such values are solved apart without anyone looking for them.
//
// States are dropped that another one beats even after converting everything it needs otherwise,
// and those whose rest, estimated from below, makes them dearer than an answer that is known. Such
// an answer comes from a first visit that keeps few states. The visit goes deep before it goes
// wide, so that branches do not multiply each other.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "plan/Cover.h"

namespace dovetail::plan {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Cost {
  int64_t against = 0;
  double micros = 0;
  friend bool operator<(const Cost &a, const Cost &b) {
    return a.against != b.against ? a.against < b.against : a.micros < b.micros;
  }
  friend Cost operator+(const Cost &a, const Cost &b) {
    return {a.against + b.against, a.micros + b.micros};
  }
  friend Cost operator-(const Cost &a, const Cost &b) {
    return {a.against - b.against, a.micros - b.micros};
  }
};

/// One thing the rest must know, ordered by the position at which it matters. A key is a state of
/// the frontier: facts in descending order.
using Fact = uint64_t;
using Key = std::vector<Fact>;
enum class FactKind : uint8_t {
  Taken, ///< the value was given before; matters at the lowest position where it could be again
  Need,  ///< (value, layout) must exist
  Given  ///< (value, layout) comes from an option that was taken for a later value
};

Fact makeFact(uint32_t position, FactKind kind, uint32_t detail) {
  return uint64_t(position) << 34 | uint64_t(kind) << 32 | detail;
}
uint32_t positionOf(Fact fact) { return static_cast<uint32_t>(fact >> 34); }
FactKind kindOf(Fact fact) { return static_cast<FactKind>(fact >> 32 & 3); }
uint32_t detailOf(Fact fact) { return static_cast<uint32_t>(fact); }

struct KeyHash {
  size_t operator()(const Key &key) const {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (Fact fact : key) {
      hash ^= fact;
      hash *= 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// How a state came to be: by which option (none where the value was there already), with which
/// conversions, from which state.
struct Node {
  Cost cost;
  uint32_t parent = kNone, option = kNone, conversions = 0, conversionCount = 0;
};

struct State {
  Key key;
  uint32_t node = 0;
};

struct Layer {
  std::vector<State> states; // in order of arrival, so that ties always fall the same way
  std::unordered_map<Key, uint32_t, KeyHash> index;
};

class Frontier {
public:
  explicit Frontier(const CoverProblem &problem) : problem(problem) {}

  /// False where the values have no order.
  bool prepare() {
    collect();
    if (!findOrder())
      return false;
    prepareOptions();
    lookAhead();
    return true;
  }

  /// The cheapest cover, or nothing where none is cheaper than `limit`. `truncated` says that
  /// states were dropped because there were more than `maxStates`.
  std::optional<CoverSolution> solve(size_t maxStates, const Cost &limit, bool &truncated) {
    cutoff = limit;
    truncated = false;
    layers.assign(values.size(), {});
    nodes.clear();
    conversionPool.clear();
    end = kNone;
    Key start;
    for (LayoutState state : problem.required)
      addNeed(start, state);
    std::sort(start.begin(), start.end(), std::greater<>());
    if (uint32_t place = arrive(std::move(start), Node{}); place != kNone)
      nodes[place] = Node{};
    for (uint32_t position = static_cast<uint32_t>(values.size()); position-- > 0;) {
      Layer layer = std::move(layers[position]);
      layers[position] = {};
      dropBeaten(layer.states);
      if (layer.states.size() > maxStates) {
        truncated = true;
        std::stable_sort(layer.states.begin(), layer.states.end(),
                         [&](const State &a, const State &b) {
                           return total(a, position) < total(b, position);
                         });
        layer.states.resize(maxStates);
      }
      for (const State &state : layer.states)
        visit(position, state);
    }
    if (end == kNone)
      return std::nullopt;
    return trace();
  }

private:
  void collect() {
    std::set<uint32_t> all;
    auto note = [&](const std::vector<LayoutState> &states) {
      for (LayoutState state : states)
        all.insert(state.value);
    };
    note(problem.available);
    note(problem.required);
    for (const CoverOption &option : problem.options) {
      note(option.needs);
      note(option.gives);
    }
    uint32_t most = all.empty() ? 0 : *all.rbegin() + 1;
    values.assign(all.begin(), all.end());
    positions.assign(most, kNone);
    available.resize(most);
    sources.resize(most);
    conversionsOf.resize(most);
    givers.resize(most);
    for (LayoutState state : problem.available) {
      available[state.value].push_back(state.layout);
      sources[state.value].insert(state.layout);
    }
    for (uint32_t i = 0; i < problem.conversions.size(); ++i)
      if (problem.conversions[i].value < most)
        conversionsOf[problem.conversions[i].value].push_back(i);
    for (uint32_t i = 0; i < problem.options.size(); ++i)
      for (LayoutState give : problem.options[i].gives) {
        if (givers[give.value].empty() || givers[give.value].back() != i)
          givers[give.value].push_back(i);
        sources[give.value].insert(give.layout);
      }
  }

  uint32_t rank(uint32_t value) const {
    return value < problem.ranks.size() ? problem.ranks[value] : value;
  }

  /// Positions such that every option has all its needs before all that it gives.
  bool findOrder() {
    std::vector<std::set<uint32_t>> madeOf(positions.size()); // value -> what it is made of
    std::vector<uint32_t> waiting(positions.size(), 0);
    auto before = [&](uint32_t a, uint32_t b) {
      return std::make_pair(rank(a), a) < std::make_pair(rank(b), b);
    };
    for (const CoverOption &option : problem.options) {
      if (option.gives.empty())
        continue;
      uint32_t last = option.gives.front().value;
      for (LayoutState give : option.gives)
        if (before(last, give.value))
          last = give.value;
      for (LayoutState need : option.needs) {
        if (!before(need.value, last))
          return false;
        if (madeOf[last].insert(need.value).second)
          ++waiting[need.value];
      }
    }
    std::vector<uint32_t> stack;
    for (uint32_t value : values)
      if (waiting[value] == 0)
        stack.push_back(value);
    std::sort(stack.begin(), stack.end(), before);
    uint32_t position = static_cast<uint32_t>(values.size());
    std::vector<uint32_t> ordered(values.size());
    while (!stack.empty()) {
      uint32_t value = stack.back();
      stack.pop_back();
      positions[value] = --position;
      ordered[position] = value;
      std::vector<uint32_t> next(madeOf[value].begin(), madeOf[value].end());
      std::sort(next.begin(), next.end(), before);
      for (uint32_t source : next)
        if (--waiting[source] == 0)
          stack.push_back(source);
    }
    values = std::move(ordered);
    if (position != 0)
      return false;
    for (const CoverOption &option : problem.options)
      for (LayoutState give : option.gives)
        for (LayoutState need : option.needs)
          if (positions[need.value] >= positions[give.value])
            return false;
    return true;
  }

  void prepareOptions() {
    lowest.assign(positions.size(), kNone);
    for (uint32_t i = 0; i < problem.options.size(); ++i)
      for (LayoutState give : problem.options[i].gives)
        for (LayoutState other : problem.options[i].gives)
          if (positions[other.value] > positions[give.value])
            lowest[other.value] = std::min(lowest[other.value], positions[give.value]);
  }

  /// Two bounds from below on what it takes to have a state. The path: the cheapest option with the
  /// dearest of its needs. The share: options with all their needs, where a value that k others may
  /// be made of counts a k-th for each of them, so that shares of a whole frontier add up.
  struct Ahead {
    Cost path;
    double share = 0;
  };

  void lookAhead() {
    ahead.assign(positions.size(), {});
    users.assign(positions.size(), {});
    for (LayoutState state : problem.required)
      users[state.value].insert(kNone);
    for (const CoverOption &option : problem.options) {
      uint32_t last = 0;
      for (LayoutState give : option.gives)
        last = std::max(last, positions[give.value]);
      for (LayoutState need : option.needs)
        users[need.value].insert(last);
    }
    for (uint32_t value : values)
      lookAhead(value);
  }

  void lookAhead(uint32_t value) {
    std::map<uint32_t, Ahead> &costs = ahead[value];
    auto improve = [&](uint32_t layout, const Ahead &by) {
      auto [found, isNew] = costs.try_emplace(layout, by);
      found->second.path = std::min(found->second.path, by.path);
      found->second.share = std::min(found->second.share, by.share);
    };
    for (uint32_t index : givers[value]) {
      const CoverOption &option = problem.options[index];
      Ahead sum;
      bool possible = true;
      for (LayoutState need : option.needs) {
        if (isAvailable(need))
          continue;
        auto found = ahead[need.value].find(need.layout);
        if (found == ahead[need.value].end()) {
          possible = false;
          break;
        }
        sum.path = std::max(sum.path, found->second.path);
        sum.share += found->second.share / static_cast<double>(users[need.value].size());
      }
      sum.path = sum.path + Cost{option.against, option.cost};
      sum.share += option.cost / static_cast<double>(option.gives.size());
      for (LayoutState give : option.gives)
        if (possible && give.value == value)
          improve(give.layout, sum);
    }
    for (uint32_t layout : available[value])
      improve(layout, {});
    std::map<uint32_t, Ahead> given = costs;
    for (uint32_t index : conversionsOf[value]) {
      const CoverConversion &conversion = problem.conversions[index];
      if (auto from = given.find(conversion.from); from != given.end())
        improve(conversion.to, {from->second.path + Cost{0, conversion.cost},
                                from->second.share + conversion.cost});
    }
  }

  /// What the rest costs at least. What is given already is paid for, and is taken off again where
  /// the bounds of others contain it.
  Cost least(const Key &key, uint32_t next) const {
    Cost path, paid;
    double shares = 0, most = 0;
    for (size_t i = 0; i < key.size(); ++i) {
      FactKind kind = kindOf(key[i]);
      if (kind == FactKind::Taken)
        continue;
      uint32_t value = values[positionOf(key[i])];
      const auto &costs = ahead[value];
      auto found = costs.find(detailOf(key[i]));
      if (kind == FactKind::Given) {
        for (const auto &entry : costs) {
          paid = paid + Cost{entry.second.path.against, std::max(0.0, entry.second.path.micros)};
          shares -= entry.second.share;
        }
        continue;
      }
      if (found == costs.end())
        return {INT32_MAX, kInfinity};
      path = std::max(path, found->second.path);
      most = std::max(most, found->second.share);
      bool lastOfValue = i + 1 == key.size() || kindOf(key[i + 1]) != FactKind::Need ||
                         positionOf(key[i + 1]) != positionOf(key[i]);
      if (!lastOfValue)
        continue;
      const std::set<uint32_t> &all = users[value];
      auto visited =
          static_cast<double>(std::distance(all.upper_bound(next), all.end())); // small sets
      shares += most * visited / static_cast<double>(all.size());
      most = 0;
    }
    path = std::max(path - paid, Cost{});
    return {path.against, std::max(path.micros, shares)};
  }

  Cost total(const State &state, uint32_t position) const {
    return nodes[state.node].cost + least(state.key, position);
  }

  bool isAvailable(LayoutState state) const {
    const auto &layouts = available[state.value];
    return std::find(layouts.begin(), layouts.end(), state.layout) != layouts.end();
  }

  void addNeed(Key &key, LayoutState state) const {
    if (isAvailable(state))
      return;
    Fact fact = makeFact(positions[state.value], FactKind::Need, state.layout);
    if (std::find(key.begin(), key.end(), fact) == key.end())
      key.push_back(fact);
  }

  /// Remembers that a value is taken, where that can still matter.
  void addTaken(Key &key, uint32_t value) const {
    if (lowest[value] == kNone)
      return;
    Fact fact = makeFact(lowest[value], FactKind::Taken, value);
    if (std::find(key.begin(), key.end(), fact) == key.end())
      key.push_back(fact);
  }

  static bool isTaken(const Key &key, uint32_t value) {
    return std::any_of(key.begin(), key.end(), [&](Fact fact) {
      return kindOf(fact) == FactKind::Taken && detailOf(fact) == value;
    });
  }

  bool isGiven(const Key &key, uint32_t value) const {
    return std::any_of(key.begin(), key.end(), [&](Fact fact) {
      return kindOf(fact) == FactKind::Given && positionOf(fact) == positions[value];
    });
  }

  void visit(uint32_t position, const State &state) {
    uint32_t value = values[position];
    std::vector<uint32_t> needed, given = available[value];
    Key rest;
    bool fromOption = false;
    for (Fact fact : state.key) {
      if (kindOf(fact) == FactKind::Taken || positionOf(fact) != position) {
        rest.push_back(fact);
      } else if (kindOf(fact) == FactKind::Need) {
        needed.push_back(detailOf(fact));
      } else {
        given.push_back(detailOf(fact));
        fromOption = true;
      }
    }
    if (!given.empty()) {
      if (fromOption)
        addTaken(rest, value);
      step(state.node, kNone, value, needed, given, std::move(rest), Cost{});
      return;
    }
    for (uint32_t option : givers[value])
      take(state, option, value, needed, rest);
  }

  void take(const State &state, uint32_t index, uint32_t value, const std::vector<uint32_t> &needed,
            const Key &rest) {
    const CoverOption &option = problem.options[index];
    std::vector<uint32_t> given;
    for (LayoutState give : option.gives) {
      if (give.value == value)
        given.push_back(give.layout);
      else if (positions[give.value] > positions[value] ? isTaken(state.key, give.value)
                                                        : isGiven(state.key, give.value))
        return; // a value is put into memory by one kernel
    }
    Key key = rest;
    for (LayoutState give : option.gives)
      if (positions[give.value] < positions[value])
        key.push_back(makeFact(positions[give.value], FactKind::Given, give.layout));
      else
        addTaken(key, give.value);
    for (LayoutState need : option.needs)
      addNeed(key, need);
    step(state.node, index, value, needed, given, std::move(key), {option.against, option.cost});
  }

  /// The state after a value: with the cheapest conversions to all layouts in which it is needed.
  void step(uint32_t parent, uint32_t option, uint32_t value, const std::vector<uint32_t> &needed,
            const std::vector<uint32_t> &given, Key key, Cost cost) {
    std::vector<uint32_t> chosen;
    for (uint32_t layout : needed) {
      if (std::find(given.begin(), given.end(), layout) != given.end())
        continue;
      uint32_t best = kNone;
      for (uint32_t index : conversionsOf[value]) {
        const CoverConversion &conversion = problem.conversions[index];
        if (conversion.to == layout &&
            std::find(given.begin(), given.end(), conversion.from) != given.end() &&
            (best == kNone || conversion.cost < problem.conversions[best].cost))
          best = index;
      }
      if (best == kNone)
        return;
      chosen.push_back(best);
      cost.micros += problem.conversions[best].cost;
    }
    Node node{nodes[parent].cost, parent, option, static_cast<uint32_t>(conversionPool.size()),
              static_cast<uint32_t>(chosen.size())};
    node.cost.against += cost.against;
    node.cost.micros += cost.micros;
    std::sort(key.begin(), key.end(), std::greater<>());
    if (uint32_t place = arrive(std::move(key), node); place != kNone) {
      nodes[place] = node;
      conversionPool.insert(conversionPool.end(), chosen.begin(), chosen.end());
    }
  }

  /// Where the node of a state goes; nothing where the state was reached as cheaply before.
  uint32_t arrive(Key key, const Node &node) {
    uint32_t next = 0;
    bool open = false;
    for (Fact fact : key)
      if (kindOf(fact) != FactKind::Taken) {
        next = std::max(next, positionOf(fact));
        open = true;
      }
    if (!(node.cost + least(key, next) < cutoff))
      return kNone;
    if (!open) {
      if (end != kNone && !(node.cost < nodes[end].cost))
        return kNone;
      if (end == kNone) {
        end = static_cast<uint32_t>(nodes.size());
        nodes.emplace_back();
      }
      return end;
    }
    std::erase_if(
        key, [&](Fact fact) { return kindOf(fact) == FactKind::Taken && positionOf(fact) > next; });
    Layer &layer = layers[next];
    auto [found, isNew] = layer.index.try_emplace(key, static_cast<uint32_t>(layer.states.size()));
    if (isNew) {
      uint32_t place = static_cast<uint32_t>(nodes.size());
      nodes.emplace_back();
      layer.states.push_back({std::move(key), place});
      return place;
    }
    uint32_t place = layer.states[found->second].node;
    return node.cost < nodes[place].cost ? place : kNone;
  }

  /// What it costs at most to have a value in a layout besides those that the rest provides.
  double dearestConversion(uint32_t value, uint32_t layout) {
    auto [found, isNew] = dearest.try_emplace({value, layout}, 0);
    if (!isNew)
      return found->second;
    double most = 0;
    for (uint32_t source : sources[value]) {
      if (source == layout)
        continue;
      double cost = kInfinity;
      for (uint32_t index : conversionsOf[value])
        if (problem.conversions[index].from == source && problem.conversions[index].to == layout)
          cost = std::min(cost, problem.conversions[index].cost);
      most = std::max(most, cost);
    }
    return found->second = most;
  }

  /// What it costs at most to serve `a` by whatever serves `b`; infinite where that may not do.
  double repair(const Key &a, const Key &b) {
    double cost = 0;
    size_t at = 0;
    for (Fact fact : a) {
      while (at < b.size() && b[at] > fact) {
        if (kindOf(b[at]) == FactKind::Given)
          return kInfinity;
        ++at;
      }
      if (at < b.size() && b[at] == fact) {
        ++at;
        continue;
      }
      if (kindOf(fact) != FactKind::Need)
        return kInfinity;
      // The same value in another layout?
      auto needsValue = [&](Fact other) {
        return kindOf(other) == FactKind::Need && positionOf(other) == positionOf(fact);
      };
      if (std::none_of(b.begin(), b.end(), needsValue))
        return kInfinity;
      cost += dearestConversion(values[positionOf(fact)], detailOf(fact));
    }
    for (; at < b.size(); ++at)
      if (kindOf(b[at]) == FactKind::Given)
        return kInfinity;
    return cost;
  }

  void dropBeaten(std::vector<State> &states) {
    if (states.size() < 2)
      return;
    std::stable_sort(states.begin(), states.end(), [&](const State &a, const State &b) {
      return nodes[a.node].cost < nodes[b.node].cost;
    });
    // The cheapest of all, and the cheapest of those that need the same values, judge the others.
    constexpr size_t kMostJudges = 8, kMostPeers = 24;
    std::vector<State> kept;
    std::unordered_map<Key, std::vector<uint32_t>, KeyHash> peersOf;
    for (State &state : states) {
      const Cost &cost = nodes[state.node].cost;
      auto beats = [&](const State &judge) {
        Cost repaired = nodes[judge.node].cost;
        repaired.micros += repair(judge.key, state.key);
        return repaired.micros < kInfinity && !(cost < repaired);
      };
      Key values;
      for (Fact fact : state.key)
        if (values.empty() || values.back() != fact >> 32)
          values.push_back(fact >> 32);
      std::vector<uint32_t> &peers = peersOf[values];
      size_t judges = std::min(kept.size(), kMostJudges);
      if (std::any_of(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(judges), beats) ||
          std::any_of(peers.begin(), peers.end(), [&](uint32_t peer) { return beats(kept[peer]); }))
        continue;
      if (peers.size() < kMostPeers)
        peers.push_back(static_cast<uint32_t>(kept.size()));
      kept.push_back(std::move(state));
    }
    states = std::move(kept);
  }

  CoverSolution trace() const {
    CoverSolution solution;
    for (uint32_t at = end; at != kNone; at = nodes[at].parent) {
      const Node &node = nodes[at];
      if (node.option != kNone)
        solution.options.push_back(node.option);
      for (uint32_t i = 0; i < node.conversionCount; ++i)
        solution.conversions.push_back(conversionPool[node.conversions + i]);
    }
    std::sort(solution.options.begin(), solution.options.end());
    std::sort(solution.conversions.begin(), solution.conversions.end());
    for (uint32_t option : solution.options) {
      solution.cost += problem.options[option].cost;
      solution.against += problem.options[option].against;
    }
    for (uint32_t conversion : solution.conversions)
      solution.cost += problem.conversions[conversion].cost;
    solution.bound = solution.cost;
    solution.exact = true;
    return solution;
  }

  const CoverProblem &problem;
  Cost cutoff;
  std::vector<uint32_t> values;    ///< by position
  std::vector<uint32_t> positions; ///< by value
  /// By value: the lowest position at which an option that gives it, too, may be taken.
  std::vector<uint32_t> lowest;
  std::vector<std::vector<uint32_t>> available, conversionsOf, givers; ///< by value
  std::vector<std::set<uint32_t>> sources;      ///< by value: layouts in which it may be given
  std::vector<std::map<uint32_t, Ahead>> ahead; ///< by value, then layout
  std::vector<std::set<uint32_t>> users;        ///< by value: positions of what may be made of it
  std::map<std::pair<uint32_t, uint32_t>, double> dearest;
  std::vector<Layer> layers;
  std::vector<Node> nodes;
  std::vector<uint32_t> conversionPool;
  uint32_t end = kNone;
};

} // namespace

std::optional<CoverSolution> solveCoverByFrontier(const CoverProblem &problem,
                                                  const CoverLimits &limits) {
  Frontier frontier(problem);
  if (!frontier.prepare())
    return std::nullopt;
  std::optional<CoverSolution> best;
  Cost cutoff{INT64_MAX / 2, kInfinity};
  bool truncated = true;
  for (size_t maxStates = 64; truncated; maxStates *= 16) {
    maxStates = std::min(maxStates, limits.maxStates);
    auto solution = frontier.solve(maxStates, cutoff, truncated);
    if (solution && !orderCover(problem, *solution, nullptr))
      return std::nullopt;
    if (solution)
      best = std::move(solution);
    if (!best || maxStates == limits.maxStates)
      break;
    // From here on only what is better by more than the gap is of interest.
    cutoff = {static_cast<int64_t>(best->against), best->cost * (1 - limits.relativeGap)};
  }
  if (best) {
    best->exact = !truncated;
    best->bound = truncated ? 0 : std::min(best->cost, cutoff.micros);
  }
  return best;
}

} // namespace dovetail::plan
