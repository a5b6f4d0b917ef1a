// SPDX-License-Identifier: Apache-2.0
//
// The exact cover by dynamic programming. Values are visited from the outputs backwards, each after
// all that is made of it. What has been decided so far matters to the rest only through the
// frontier: which earlier values are needed in which layouts, and which of them an option that was
// taken gives along with a later one. Of all decisions that lead to the same frontier the cheapest
// is kept. Where a model narrows to one value, so does the frontier, to a state for each layout of
// it: pieces between such values are solved apart without anyone looking for them.
//
// States are dropped that another one beats even after converting everything it needs otherwise.
// Where that leaves too many, as where values wait long for their last user, the rest is solved for
// a relaxed problem first, in which needs of such values are forgotten until the frontier comes
// near them; that is a bound from below for the rest of every state, which drops all states that
// cannot better an answer that is known by more than the gap. Such an answer comes from a first
// visit that keeps few states. The visit goes deep before it goes wide, so that branches do not
// multiply each other.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "plan/Cover.h"

namespace dovetail::plan {
namespace {

constexpr uint32_t kNone = UINT32_MAX, kAnyLayout = UINT32_MAX;
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
  Cost total; ///< with what the rest costs at least
};

struct Layer {
  std::vector<State> states; // in order of arrival, so that ties always fall the same way
  std::unordered_map<Key, uint32_t, KeyHash> index;
};

class Frontier {
public:
  /// `mostRests`: relaxed states whose rest is computed; where there are more, bounds are not
  /// known.
  Frontier(const CoverProblem &problem, size_t mostRests)
      : problem(problem), mostRests(mostRests) {}

  /// False where the values have no order.
  bool prepare() {
    collect();
    if (!findOrder())
      return false;
    prepareOptions();
    findUsers();
    rests.assign(values.size(), {});
    return true;
  }

  /// A pass that forgets needs wherever there are more than `width` states. Where it did not have
  /// to, its answer is the cheapest cover; else rest() knows bounds from then on.
  std::optional<CoverSolution> relax(size_t width) {
    start();
    for (uint32_t position = static_cast<uint32_t>(values.size()); position-- > 0;) {
      Layer layer = std::move(layers[position]);
      layers[position] = {};
      dropBeaten(layer.states);
      while (layer.states.size() > width && forgetFurthest(layer.states, position)) {
        Layer merged;
        for (State &state : layer.states) {
          forget(state.key, position);
          auto [found, isNew] =
              merged.index.try_emplace(state.key, static_cast<uint32_t>(merged.states.size()));
          if (isNew)
            merged.states.push_back(std::move(state));
          else if (State &known = merged.states[found->second];
                   nodes[state.node].cost < nodes[known.node].cost)
            known.node = state.node;
        }
        layer = std::move(merged);
        dropBeaten(layer.states);
      }
      for (const State &state : layer.states)
        visit(position, state);
    }
    return isRelaxed || end == kNone ? std::nullopt : std::optional(trace());
  }

  /// The cheapest cover, or nothing where none is cheaper than `limit`. `truncated` says that
  /// states were dropped because there were more than `maxStates`.
  std::optional<CoverSolution> solve(size_t maxStates, const Cost &limit, bool &truncated) {
    truncated = false;
    cutoff = limit;
    isBounding = true;
    start();
    for (uint32_t position = static_cast<uint32_t>(values.size()); position-- > 0;) {
      Layer layer = std::move(layers[position]);
      layers[position] = {};
      dropBeaten(layer.states);
      // Without bounds that many states cost time and prove nothing.
      constexpr size_t kUnboundedStates = 1024;
      if (size_t most = boundsAreKnown() ? maxStates : std::min(maxStates, kUnboundedStates);
          layer.states.size() > most) {
        truncated = true;
        std::stable_sort(layer.states.begin(), layer.states.end(),
                         [](const State &a, const State &b) { return a.total < b.total; });
        layer.states.resize(most);
      }
      for (const State &state : layer.states)
        visit(position, state);
    }
    isBounding = false;
    return end == kNone ? std::nullopt : std::optional(trace());
  }

  bool boundsAreKnown() const { return restCount < mostRests; }

  /// What any cover costs at least.
  Cost bound() {
    Key key = startKey();
    uint32_t next = settle(key);
    return next == kNone ? Cost{} : rest(std::move(key), next);
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
      for (LayoutState need : option.needs)
        if (madeOf[last].insert(need.value).second)
          ++waiting[need.value];
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

  void findUsers() {
    users.assign(positions.size(), {});
    vagueFrom.assign(positions.size(), kNone);
    goneFrom.assign(positions.size(), kNone);
    for (const CoverOption &option : problem.options)
      for (LayoutState need : option.needs)
        for (LayoutState give : option.gives)
          users[need.value].insert(positions[give.value]);
  }

  Key startKey() const {
    Key key;
    for (LayoutState state : problem.required)
      addNeed(key, state);
    return key;
  }

  void start() {
    layers.assign(values.size(), {});
    nodes.clear();
    conversionPool.clear();
    end = kNone;
    if (uint32_t place = arrive(startKey(), Cost{}); place != kNone)
      nodes[place] = Node{};
  }

  /// Lets what is needed of one more value be forgotten: of the one furthest away, until the
  /// nearest of those users is visited that are still to come. First in which layouts; where that
  /// is forgotten of all, that they are needed. False where there is nothing to be forgotten.
  bool forgetFurthest(const std::vector<State> &states, uint32_t position) {
    uint32_t furthest = kNone, vague = kNone;
    for (const State &state : states)
      for (Fact fact : state.key)
        if (kindOf(fact) == FactKind::Need && positionOf(fact) < position) {
          uint32_t &at = detailOf(fact) == kAnyLayout ? vague : furthest;
          at = std::min(at, positionOf(fact));
        }
    std::vector<uint32_t> &from = furthest == kNone ? goneFrom : vagueFrom;
    if (furthest == kNone)
      furthest = vague;
    if (furthest == kNone)
      return false;
    const std::set<uint32_t> &all = users[values[furthest]];
    auto later = all.upper_bound(position);
    from[values[furthest]] = later == all.begin() ? furthest + 1 : *std::prev(later);
    isRelaxed = true;
    return true;
  }

  /// Forgets what may be, where `next` is the position to be visited next.
  void forget(Key &key, uint32_t next) const {
    size_t kept = 0;
    uint32_t vague = kNone, exact = kNone; // positions of the last needs of either kind
    for (size_t i = 0; i < key.size(); ++i) {
      Fact fact = key[i];
      uint32_t position = positionOf(fact);
      if (kindOf(fact) == FactKind::Need && position != next) {
        uint32_t value = values[position];
        if (next >= goneFrom[value])
          continue;
        if (next >= vagueFrom[value])
          fact = makeFact(position, FactKind::Need, kAnyLayout);
      }
      if (kindOf(fact) == FactKind::Need && detailOf(fact) == kAnyLayout) {
        if (vague == position)
          continue;
        vague = position;
      } else if (kindOf(fact) == FactKind::Need) {
        // Who needs it in one layout needs it in any; that fact came right before the first.
        if (vague == position && exact != position)
          --kept;
        exact = position;
      }
      key[kept++] = fact;
    }
    key.resize(kept);
  }

  /// What the rest costs at least: exactly what it costs where needs may be forgotten.
  Cost rest(Key key, uint32_t next) {
    if (!isRelaxed)
      return {};
    struct Child {
      Cost cost;
      uint32_t next = kNone;
      Key key;
    };
    struct Frame {
      uint32_t position;
      Key key;
      std::vector<Child> children;
      size_t done = 0;
      Cost best{INT32_MAX, kInfinity};
    };
    forget(key, next);
    if (auto known = rests[next].find(key); known != rests[next].end())
      return known->second;
    std::vector<Frame> stack;
    auto enter = [&](Key &&of, uint32_t position) {
      Frame frame{position, std::move(of), {}, 0, {INT32_MAX, kInfinity}};
      forEachMove(position, frame.key,
                  [&](uint32_t, const std::vector<uint32_t> &, const Cost &cost, Key &&after) {
                    Child child{cost, settle(after), std::move(after)};
                    if (child.next != kNone)
                      forget(child.key, child.next);
                    frame.children.push_back(std::move(child));
                  });
      stack.push_back(std::move(frame));
    };
    enter(std::move(key), next);
    Cost result;
    while (!stack.empty()) {
      if (restCount >= mostRests)
        return {};
      Frame &frame = stack.back();
      if (frame.done == frame.children.size()) {
        result = frame.best;
        rests[frame.position].emplace(std::move(frame.key), result);
        ++restCount;
        stack.pop_back();
        continue;
      }
      Child &child = frame.children[frame.done];
      if (child.next != kNone) {
        auto known = rests[child.next].find(child.key);
        if (known == rests[child.next].end()) {
          uint32_t below = child.next;
          Key of = child.key;
          enter(std::move(of), below);
          continue;
        }
        child.cost = child.cost + known->second;
      }
      frame.best = std::min(frame.best, child.cost);
      ++frame.done;
    }
    return result;
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
    forEachMove(position, state.key,
                [&](uint32_t option, const std::vector<uint32_t> &conversions, const Cost &cost,
                    Key &&key) {
                  Node node{nodes[state.node].cost + cost, state.node, option,
                            static_cast<uint32_t>(conversionPool.size()),
                            static_cast<uint32_t>(conversions.size())};
                  if (uint32_t place = arrive(std::move(key), node.cost); place != kNone) {
                    nodes[place] = node;
                    conversionPool.insert(conversionPool.end(), conversions.begin(),
                                          conversions.end());
                  }
                });
  }

  /// All ways to have the value at a position in the layouts in which it is needed:
  /// move(option, conversions, cost, facts that remain).
  template <typename Move>
  void forEachMove(uint32_t position, const Key &key, const Move &move) const {
    uint32_t value = values[position];
    std::vector<uint32_t> needed, given = available[value];
    Key others;
    bool fromOption = false;
    for (Fact fact : key) {
      if (kindOf(fact) == FactKind::Taken || positionOf(fact) != position) {
        others.push_back(fact);
      } else if (kindOf(fact) == FactKind::Need) {
        needed.push_back(detailOf(fact));
      } else {
        given.push_back(detailOf(fact));
        fromOption = true;
      }
    }
    if (!given.empty()) {
      if (fromOption)
        addTaken(others, value);
      convert(kNone, value, needed, given, std::move(others), Cost{}, move);
      return;
    }
    for (uint32_t option : givers[value])
      take(key, option, value, needed, others, move);
  }

  template <typename Move>
  void take(const Key &before, uint32_t index, uint32_t value, const std::vector<uint32_t> &needed,
            const Key &others, const Move &move) const {
    const CoverOption &option = problem.options[index];
    std::vector<uint32_t> given;
    for (LayoutState give : option.gives) {
      if (give.value == value)
        given.push_back(give.layout);
      else if (positions[give.value] > positions[value] ? isTaken(before, give.value)
                                                        : isGiven(before, give.value))
        return; // a value is put into memory by one kernel
    }
    Key key = others;
    for (LayoutState give : option.gives)
      if (positions[give.value] < positions[value])
        key.push_back(makeFact(positions[give.value], FactKind::Given, give.layout));
      else
        addTaken(key, give.value);
    for (LayoutState need : option.needs)
      addNeed(key, need);
    convert(index, value, needed, given, std::move(key), {option.against, option.cost}, move);
  }

  /// With the cheapest conversions to all layouts in which the value is needed.
  template <typename Move>
  void convert(uint32_t option, uint32_t value, const std::vector<uint32_t> &needed,
               const std::vector<uint32_t> &given, Key key, Cost cost, const Move &move) const {
    std::vector<uint32_t> chosen;
    for (uint32_t layout : needed) {
      if (layout == kAnyLayout || std::find(given.begin(), given.end(), layout) != given.end())
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
    move(option, chosen, cost, std::move(key));
  }

  /// Brings a key into its order and leaves out what cannot matter any more. Returns the position
  /// of the value to be visited next; nothing where no fact is left.
  static uint32_t settle(Key &key) {
    std::sort(key.begin(), key.end(), std::greater<>());
    uint32_t next = kNone;
    for (Fact fact : key)
      if (kindOf(fact) != FactKind::Taken) {
        next = positionOf(fact);
        break;
      }
    if (next == kNone)
      key.clear();
    else
      std::erase_if(key, [&](Fact fact) {
        return kindOf(fact) == FactKind::Taken && positionOf(fact) > next;
      });
    return next;
  }

  /// Where the node of a state goes; nothing where the state was reached as cheaply before.
  uint32_t arrive(Key key, const Cost &cost) {
    uint32_t next = settle(key);
    if (!isBounding && next != kNone)
      forget(key, next);
    Cost total = cost;
    if (isBounding) {
      if (next != kNone)
        total = total + rest(key, next);
      if (!(total < cutoff))
        return kNone;
    }
    if (next == kNone) {
      if (end != kNone && !(cost < nodes[end].cost))
        return kNone;
      if (end == kNone) {
        end = static_cast<uint32_t>(nodes.size());
        nodes.emplace_back();
      }
      return end;
    }
    Layer &layer = layers[next];
    auto [found, isNew] = layer.index.try_emplace(key, static_cast<uint32_t>(layer.states.size()));
    if (isNew) {
      uint32_t place = static_cast<uint32_t>(nodes.size());
      nodes.emplace_back();
      layer.states.push_back({std::move(key), place, total});
      return place;
    }
    State &state = layer.states[found->second];
    if (!(cost < nodes[state.node].cost))
      return kNone;
    state.total = total;
    return state.node;
  }

  /// What it costs at most to have a value in a layout besides those that the rest provides.
  double dearestConversion(uint32_t value, uint32_t layout) {
    auto [found, isNew] = dearest.try_emplace({value, layout}, 0);
    if (!isNew || layout == kAnyLayout)
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
  std::vector<std::set<uint32_t>> sources; ///< by value: layouts in which it may be given
  std::vector<std::set<uint32_t>> users;   ///< by value: positions of what may be made of it
  /// By value: from which position on it is forgotten in which layouts it is needed, and that it
  /// is.
  std::vector<uint32_t> vagueFrom, goneFrom;
  bool isRelaxed = false, isBounding = false;
  size_t mostRests, restCount = 0;
  std::vector<std::unordered_map<Key, Cost, KeyHash>> rests; ///< by position
  std::map<std::pair<uint32_t, uint32_t>, double> dearest;
  std::vector<Layer> layers;
  std::vector<Node> nodes;
  std::vector<uint32_t> conversionPool;
  uint32_t end = kNone;
};

} // namespace

std::optional<CoverSolution> solveCoverByFrontier(const CoverProblem &problem,
                                                  const CoverLimits &limits) {
  constexpr size_t kRestsByState = 2000; // relaxed states all along, at most
  Frontier frontier(problem, limits.relaxedStates * kRestsByState);
  if (!frontier.prepare())
    return std::nullopt;
  auto finish = [&](std::optional<CoverSolution> solution) {
    return solution && orderCover(problem, *solution, nullptr) ? std::move(solution) : std::nullopt;
  };
  // Where that many states suffice all along, nothing has to be bounded.
  if (auto solution = frontier.relax(std::min(limits.relaxedStates, limits.maxStates)))
    return finish(std::move(solution));
  std::optional<CoverSolution> best;
  Cost cutoff{INT64_MAX / 2, kInfinity}, bound = frontier.bound();
  bool truncated = true;
  for (size_t maxStates = 64; truncated; maxStates *= 16) {
    maxStates = std::min(maxStates, limits.maxStates);
    auto solution = finish(frontier.solve(maxStates, cutoff, truncated));
    if (solution)
      best = std::move(solution);
    if (!best || maxStates == limits.maxStates || !frontier.boundsAreKnown())
      break;
    // From here on only what is better by more than the gap is of interest.
    cutoff = {static_cast<int64_t>(best->against), best->cost * (1 - limits.relativeGap)};
    truncated &= bound < cutoff;
  }
  if (best) {
    best->exact = !truncated;
    if (!truncated)
      bound.micros = cutoff.micros;
    best->bound = std::min(best->cost, uint64_t(bound.against) == best->against ? bound.micros : 0);
  }
  return best;
}

} // namespace dovetail::plan
