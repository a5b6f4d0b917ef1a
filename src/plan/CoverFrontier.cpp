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
#include <set>

#include "plan/Cover.h"
#include "plan/CoverKeys.h"

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

/// How a state came to be: by which option (none where the value was there already), with which
/// conversions, from which state.
struct Node {
  Cost cost;
  uint32_t parent = kNone, option = kNone, conversions = 0, conversionCount = 0;
};

struct State {
  uint32_t key = 0; ///< number in its layer
  uint32_t node = 0;
  Cost total; ///< with what the rest costs at least
};

struct Layer {
  std::vector<State> states; // in order of arrival, so that ties always fall the same way
  KeyTable keys;
};

/// What the rest of relaxed states costs, by number.
struct Rests {
  static constexpr int64_t kUnknown = INT64_MAX; ///< `against` while it is sought
  KeyTable keys;
  std::vector<Cost> costs;
};

/// An option as one of those that give a value.
struct Giver {
  uint32_t option = kNone;
  Key facts;                     ///< that come to a state by taking it
  std::vector<uint32_t> layouts; ///< in which it gives the value
  /// A state with a fact in one of these ranges has another value of it already.
  std::vector<std::pair<Fact, Fact>> excluded;
  /// By layout: the cheapest conversion to it.
  std::vector<uint32_t> conversions;
};

/// What forEachMove() makes, kept for the next time.
struct MoveBuffers {
  std::vector<uint32_t> needed, given, chosen;
  Key others, key;
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
    prepareGivers();
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
      dropBeaten(layer);
      while (layer.states.size() > width && forgetFurthest(layer, position)) {
        Layer merged;
        for (const State &state : layer.states) {
          forgotten.assign(layer.keys[state.key].begin(), layer.keys[state.key].end());
          forget(forgotten, position);
          auto [number, isNew] = merged.keys.add(forgotten);
          if (isNew)
            merged.states.push_back({number, state.node, state.total});
          else if (State &known = merged.states[number];
                   nodes[state.node].cost < nodes[known.node].cost)
            known.node = state.node;
        }
        layer = std::move(merged);
        dropBeaten(layer);
      }
      for (const State &state : layer.states)
        visit(position, layer.keys[state.key], state.node);
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
      dropBeaten(layer);
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
        visit(position, layer.keys[state.key], state.node);
    }
    isBounding = false;
    return end == kNone ? std::nullopt : std::optional(trace());
  }

  bool boundsAreKnown() const { return restCount < mostRests; }

  /// What any cover costs at least.
  Cost bound() {
    Key key = startKey();
    uint32_t next = settle(key);
    return next == kNone ? Cost{} : rest(key, next);
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
    optionsOf.resize(most);
    givers.resize(most);
    dearest.resize(most);
    for (LayoutState state : problem.available) {
      available[state.value].push_back(state.layout);
      sources[state.value].insert(state.layout);
    }
    for (uint32_t i = 0; i < problem.conversions.size(); ++i)
      if (problem.conversions[i].value < most)
        conversionsOf[problem.conversions[i].value].push_back(i);
    for (uint32_t i = 0; i < problem.options.size(); ++i)
      for (LayoutState give : problem.options[i].gives) {
        if (optionsOf[give.value].empty() || optionsOf[give.value].back() != i)
          optionsOf[give.value].push_back(i);
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

  void prepareGivers() {
    for (uint32_t value : values)
      for (uint32_t option : optionsOf[value])
        givers[value].push_back(makeGiver(value, option));
  }

  Giver makeGiver(uint32_t value, uint32_t index) const {
    const CoverOption &option = problem.options[index];
    Giver giver;
    giver.option = index;
    for (LayoutState give : option.gives) {
      const uint32_t position = positions[give.value];
      if (give.value == value)
        giver.layouts.push_back(give.layout);
      else if (position > positions[value])
        giver.excluded.emplace_back(takenFact(give.value), takenFact(give.value));
      else
        giver.excluded.emplace_back(makeFact(position, FactKind::Given, 0),
                                    makeFact(position, FactKind::Given, UINT32_MAX));
      if (position < positions[value])
        giver.facts.push_back(makeFact(position, FactKind::Given, give.layout));
      else if (lowest[give.value] != kNone)
        giver.facts.push_back(takenFact(give.value));
    }
    for (LayoutState need : option.needs)
      addNeed(giver.facts, need);
    sortFacts(giver.facts);
    for (uint32_t i : conversionsOf[value]) {
      const CoverConversion &conversion = problem.conversions[i];
      if (std::find(giver.layouts.begin(), giver.layouts.end(), conversion.from) ==
          giver.layouts.end())
        continue;
      if (giver.conversions.size() <= conversion.to)
        giver.conversions.resize(conversion.to + 1, kNone);
      uint32_t &best = giver.conversions[conversion.to];
      if (best == kNone || conversion.cost < problem.conversions[best].cost)
        best = i;
    }
    return giver;
  }

  Fact takenFact(uint32_t value) const { return makeFact(lowest[value], FactKind::Taken, value); }

  Key startKey() const {
    Key key;
    for (LayoutState state : problem.required)
      addNeed(key, state);
    sortFacts(key);
    return key;
  }

  void start() {
    layers.assign(values.size(), {});
    nodes.clear();
    conversionPool.clear();
    end = kNone;
    Key key = startKey();
    if (uint32_t place = arrive(key, Cost{}); place != kNone)
      nodes[place] = Node{};
  }

  /// Lets what is needed of one more value be forgotten: of the one furthest away, until the
  /// nearest of those users is visited that are still to come. First in which layouts; where that
  /// is forgotten of all, that they are needed. False where there is nothing to be forgotten.
  bool forgetFurthest(const Layer &layer, uint32_t position) {
    uint32_t furthest = kNone, vague = kNone;
    for (const State &state : layer.states)
      for (Fact fact : layer.keys[state.key])
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
  Cost rest(KeyView key, uint32_t next) {
    if (!isRelaxed)
      return {};
    struct Child {
      Cost cost;
      uint32_t next = kNone, key = 0;
    };
    struct Frame {
      uint32_t position, key;
      std::vector<Child> children;
      size_t done = 0;
      Cost best{INT32_MAX, kInfinity};
    };
    forgotten.assign(key.begin(), key.end());
    forget(forgotten, next);
    if (uint32_t known = rests[next].keys.find(forgotten);
        known != kNone && rests[next].costs[known].against != Rests::kUnknown)
      return rests[next].costs[known];
    if (restCount >= mostRests)
      return {};
    std::vector<Frame> stack;
    auto enter = [&](uint32_t number, uint32_t position) {
      Frame frame{position, number, {}, 0, {INT32_MAX, kInfinity}};
      forEachMove(position, rests[position].keys[number], restBuffers,
                  [&](uint32_t, const std::vector<uint32_t> &, const Cost &cost, Key &after) {
                    Child child{cost, settle(after), 0};
                    if (child.next != kNone) {
                      forget(after, child.next);
                      child.key = restNumber(after, child.next);
                    }
                    frame.children.push_back(child);
                  });
      stack.push_back(std::move(frame));
    };
    enter(restNumber(forgotten, next), next);
    Cost result;
    while (!stack.empty()) {
      if (restCount >= mostRests)
        return {};
      Frame &frame = stack.back();
      if (frame.done == frame.children.size()) {
        result = frame.best;
        rests[frame.position].costs[frame.key] = result;
        ++restCount;
        stack.pop_back();
        continue;
      }
      Child &child = frame.children[frame.done];
      if (child.next != kNone) {
        const Cost &known = rests[child.next].costs[child.key];
        if (known.against == Rests::kUnknown) {
          enter(child.key, child.next);
          continue;
        }
        child.cost = child.cost + known;
      }
      frame.best = std::min(frame.best, child.cost);
      ++frame.done;
    }
    return result;
  }

  uint32_t restNumber(KeyView key, uint32_t position) {
    auto [number, isNew] = rests[position].keys.add(key);
    if (isNew)
      rests[position].costs.push_back({Rests::kUnknown, 0});
    return number;
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

  void visit(uint32_t position, KeyView key, uint32_t from) {
    forEachMove(position, key, buffers,
                [&](uint32_t option, const std::vector<uint32_t> &conversions, const Cost &cost,
                    Key &after) {
                  Node node{nodes[from].cost + cost, from, option,
                            static_cast<uint32_t>(conversionPool.size()),
                            static_cast<uint32_t>(conversions.size())};
                  if (uint32_t place = arrive(after, node.cost); place != kNone) {
                    nodes[place] = node;
                    conversionPool.insert(conversionPool.end(), conversions.begin(),
                                          conversions.end());
                  }
                });
  }

  /// All ways to have the value at a position in the layouts in which it is needed:
  /// move(option, conversions, cost, facts that remain).
  template <typename Move>
  void forEachMove(uint32_t position, KeyView key, MoveBuffers &to, const Move &move) const {
    uint32_t value = values[position];
    to.needed.clear();
    to.others.clear();
    to.given = available[value];
    bool fromOption = false;
    for (Fact fact : key) {
      if (kindOf(fact) == FactKind::Taken || positionOf(fact) != position) {
        to.others.push_back(fact);
      } else if (kindOf(fact) == FactKind::Need) {
        to.needed.push_back(detailOf(fact));
      } else {
        to.given.push_back(detailOf(fact));
        fromOption = true;
      }
    }
    if (!to.given.empty()) {
      auto conversionTo = [&](uint32_t layout) {
        uint32_t best = kNone;
        for (uint32_t index : conversionsOf[value]) {
          const CoverConversion &conversion = problem.conversions[index];
          if (conversion.to == layout &&
              std::find(to.given.begin(), to.given.end(), conversion.from) != to.given.end() &&
              (best == kNone || conversion.cost < problem.conversions[best].cost))
            best = index;
        }
        return best;
      };
      Cost cost;
      if (!convert(to.given, conversionTo, to, cost))
        return;
      Key taken;
      if (fromOption && lowest[value] != kNone)
        taken.push_back(takenFact(value));
      uniteFacts(to.others, taken, to.key);
      move(kNone, to.chosen, cost, to.key);
      return;
    }
    for (const Giver &giver : givers[value]) {
      const CoverOption &option = problem.options[giver.option];
      // A value is put into memory by one kernel.
      auto isExcluded = [&](const std::pair<Fact, Fact> &range) {
        return std::any_of(key.begin(), key.end(),
                           [&](Fact fact) { return fact >= range.first && fact <= range.second; });
      };
      if (std::any_of(giver.excluded.begin(), giver.excluded.end(), isExcluded))
        continue;
      auto conversionTo = [&](uint32_t layout) {
        return layout < giver.conversions.size() ? giver.conversions[layout] : kNone;
      };
      Cost cost{option.against, option.cost};
      if (!convert(giver.layouts, conversionTo, to, cost))
        continue;
      uniteFacts(to.others, giver.facts, to.key);
      move(giver.option, to.chosen, cost, to.key);
    }
  }

  /// Chooses the cheapest conversions to all layouts that are needed; false where there are none.
  template <typename ConversionTo>
  bool convert(const std::vector<uint32_t> &given, const ConversionTo &conversionTo,
               MoveBuffers &to, Cost &cost) const {
    to.chosen.clear();
    for (uint32_t layout : to.needed) {
      if (layout == kAnyLayout || std::find(given.begin(), given.end(), layout) != given.end())
        continue;
      const uint32_t best = conversionTo(layout);
      if (best == kNone)
        return false;
      to.chosen.push_back(best);
      cost.micros += problem.conversions[best].cost;
    }
    return true;
  }

  /// Leaves out of a key what cannot matter any more. Returns the position of the value to be
  /// visited next; nothing where no fact is left.
  static uint32_t settle(Key &key) {
    auto first = std::find_if(key.begin(), key.end(),
                              [](Fact fact) { return kindOf(fact) != FactKind::Taken; });
    if (first == key.end()) {
      key.clear();
      return kNone;
    }
    key.erase(key.begin(), first);
    return positionOf(key.front());
  }

  /// Where the node of a state goes; nothing where the state was reached as cheaply before.
  uint32_t arrive(Key &key, const Cost &cost) {
    uint32_t next = settle(key);
    if (next == kNone) {
      if ((isBounding && !(cost < cutoff)) || (end != kNone && !(cost < nodes[end].cost)))
        return kNone;
      if (end == kNone) {
        end = static_cast<uint32_t>(nodes.size());
        nodes.emplace_back();
      }
      return end;
    }
    if (!isBounding)
      forget(key, next);
    Layer &layer = layers[next];
    uint32_t number = layer.keys.find(key);
    if (number != kNone && !(cost < nodes[layer.states[number].node].cost))
      return kNone;
    Cost total = cost;
    if (isBounding) {
      total = total + rest(key, next);
      if (!(total < cutoff))
        return kNone;
    }
    if (number != kNone) {
      layer.states[number].total = total;
      return layer.states[number].node;
    }
    uint32_t place = static_cast<uint32_t>(nodes.size());
    nodes.emplace_back();
    layer.states.push_back({layer.keys.add(key).first, place, total});
    return place;
  }

  /// What it costs at most to have a value in a layout besides those that the rest provides.
  double dearestConversion(uint32_t value, uint32_t layout) {
    if (layout == kAnyLayout)
      return 0;
    std::vector<double> &known = dearest[value];
    if (known.size() <= layout)
      known.resize(layout + 1, -1);
    if (known[layout] >= 0)
      return known[layout];
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
    return known[layout] = most;
  }

  /// Whether whatever serves `b` can serve `a` as well, which costs `cost` so far, for `most`.
  bool isWithin(const Cost &most, KeyView a, const Cost &cost, KeyView b) {
    if (most.against < cost.against)
      return false;
    const double limit = most.against == cost.against ? most.micros : kInfinity;
    double repair = 0;
    size_t at = 0;
    for (Fact fact : a) {
      while (at < b.size() && b[at] > fact) {
        if (kindOf(b[at]) == FactKind::Given)
          return false;
        ++at;
      }
      if (at < b.size() && b[at] == fact) {
        ++at;
        continue;
      }
      if (kindOf(fact) != FactKind::Need)
        return false;
      // The same value in another layout? It would be right before or behind.
      auto needsValue = [&](size_t place) {
        return place < b.size() && b[place] >> 32 == fact >> 32;
      };
      if (!needsValue(at) && !(at > 0 && needsValue(at - 1)))
        return false;
      repair += dearestConversion(values[positionOf(fact)], detailOf(fact));
      if (cost.micros + repair > limit)
        return false; // as it only grows
    }
    for (; at < b.size(); ++at)
      if (kindOf(b[at]) == FactKind::Given)
        return false;
    return cost.micros + repair < kInfinity && !(limit < cost.micros + repair);
  }

  void dropBeaten(Layer &layer) {
    std::vector<State> &states = layer.states;
    if (states.size() < 2)
      return;
    std::stable_sort(states.begin(), states.end(), [&](const State &a, const State &b) {
      return nodes[a.node].cost < nodes[b.node].cost;
    });
    // The cheapest of all, and the cheapest of those that need the same values, judge the others.
    constexpr size_t kMostJudges = 8, kMostPeers = 24;
    size_t kept = 0;
    KeyTable groups;
    std::vector<std::vector<uint32_t>> peersOf; // by group
    Key needed;
    for (const State &state : states) {
      const KeyView key = layer.keys[state.key];
      const Cost &cost = nodes[state.node].cost;
      auto beats = [&](uint32_t judge) {
        return isWithin(cost, layer.keys[states[judge].key], nodes[states[judge].node].cost, key);
      };
      needed.clear();
      for (Fact fact : key)
        if (needed.empty() || needed.back() != fact >> 32)
          needed.push_back(fact >> 32);
      auto [group, isNew] = groups.add(needed);
      if (isNew)
        peersOf.emplace_back();
      std::vector<uint32_t> &peers = peersOf[group];
      bool isBeaten = std::any_of(peers.begin(), peers.end(), beats);
      for (uint32_t judge = 0; !isBeaten && judge < std::min(kept, kMostJudges); ++judge)
        isBeaten = beats(judge);
      if (isBeaten)
        continue;
      if (peers.size() < kMostPeers)
        peers.push_back(static_cast<uint32_t>(kept));
      states[kept++] = state;
    }
    states.resize(kept);
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
  std::vector<std::vector<uint32_t>> available, conversionsOf, optionsOf; ///< by value
  std::vector<std::vector<Giver>> givers;                                 ///< by value
  std::vector<std::set<uint32_t>> sources; ///< by value: layouts in which it may be given
  std::vector<std::set<uint32_t>> users;   ///< by value: positions of what may be made of it
  /// By value: from which position on it is forgotten in which layouts it is needed, and that it
  /// is.
  std::vector<uint32_t> vagueFrom, goneFrom;
  bool isRelaxed = false, isBounding = false;
  size_t mostRests, restCount = 0;
  std::vector<Rests> rests;                 ///< by position
  std::vector<std::vector<double>> dearest; ///< by value and layout; -1: not known yet
  MoveBuffers buffers, restBuffers;
  Key forgotten;
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
