// SPDX-License-Identifier: Apache-2.0
//
// A guess, and then repairs: of what does not hold under the values so far, one symbol at a time,
// or two where one is not enough, gets the value that leaves least that does not hold.
#include "plan/TypicalSizes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include <fmt/ranges.h>

namespace dovetail::plan {
namespace {

constexpr int64_t kUsual = 64, kImageSide = 128, kMostSize = int64_t(1) << 20;

/// A condition on sizes: a requirement, or that an extent is there.
struct Condition {
  Requirement requirement;
  std::vector<std::string> symbols;
  bool inModel = true; ///< not in a body, which may be for other sizes
  bool mild = false;   ///< an extent that is better not zero
};

void addConditions(const OpTable &table, bool inModel, std::vector<Condition> &conditions) {
  auto add = [&](Requirement requirement, bool mild) {
    std::set<std::string> symbols;
    for (const Extent *side : {&requirement.left, &requirement.right})
      for (const std::string &symbol : side->symbols())
        symbols.insert(symbol);
    if (!symbols.empty())
      conditions.push_back(
          {std::move(requirement), {symbols.begin(), symbols.end()}, inModel, mild});
  };
  for (const Requirement &requirement : table.requirements)
    add(requirement, false);
  std::set<Extent> seen;
  for (const TableValue &value : table.values)
    for (const Extent &extent : value.extents)
      if (!extent.isStatic() && seen.insert(extent).second)
        for (int64_t least : {0, 1})
          add({Requirement::Relation::AtLeast, extent, least, "an extent of '" + value.name + "'"},
              least == 1);
}

void addAllConditions(const OpTable &table, bool inModel, std::vector<Condition> &conditions) {
  addConditions(table, inModel, conditions);
  for (const OpTable &body : table.bodies)
    addAllConditions(body, false, conditions);
}

/// The value nearest to `wish` that the range allows.
int64_t fitted(int64_t wish, const SymbolRange &range) {
  const int64_t divisor = std::max<int64_t>(range.divisor, 1);
  int64_t value = std::clamp(wish, range.min, range.max) / divisor * divisor;
  return std::max(value, (std::max<int64_t>(range.min, divisor) + divisor - 1) / divisor * divisor);
}

SymbolRange rangeOf(const OpTable &table, const std::string &symbol) {
  auto known = table.ranges.find(symbol);
  return known == table.ranges.end() ? SymbolRange() : known->second;
}

/// The symbol that a dimension is; nothing where it is a number or is computed.
std::optional<std::string> symbolOf(const Extent &extent) {
  if (extent.isStatic() || extent.isOverflow())
    return std::nullopt;
  std::vector<std::string> symbols = extent.symbols();
  return symbols.size() == 1 && extent == Extent::symbol(symbols[0]) ? std::optional(symbols[0])
                                                                     : std::nullopt;
}

std::set<std::string> growingSymbols(const OpTable &model) {
  std::set<std::string> growing;
  for (const PlanState &state : model.states)
    if (state.grows && !model.values[model.inputs[state.input]].extents.empty())
      if (auto symbol = symbolOf(model.values[model.inputs[state.input]].extents.front()))
        growing.insert(*symbol);
  return growing;
}

/// Sizes by the places of symbols in the inputs: outermost ones count examples, of which there is
/// one; the inner ones of images and of caches are longer than others.
SymbolValues firstGuess(const OpTable &table, const std::vector<Condition> &conditions) {
  SymbolValues values;
  const std::set<std::string> growing = growingSymbols(table);
  auto place = [&](const std::string &symbol, int64_t size) {
    auto [known, isNew] = values.try_emplace(symbol, size);
    // Where a symbol has several places an inner one tells what it is, and the smaller size is
    // that of shared dimensions.
    if (!isNew && size != 1)
      known->second = known->second == 1 ? size : std::min(known->second, size);
  };
  for (uint32_t input : table.inputs) {
    const std::vector<Extent> &extents = table.values[input].extents;
    for (size_t d = 0; d < extents.size(); ++d)
      if (auto symbol = symbolOf(extents[d])) {
        bool outermost = d == 0 && extents.size() > 1 && !growing.contains(*symbol);
        place(*symbol, outermost ? 1 : extents.size() >= 4 && d >= 1 ? kImageSide : kUsual);
      }
  }
  for (const Condition &condition : conditions)
    for (const std::string &symbol : condition.symbols)
      values.try_emplace(symbol, kUsual);
  for (auto &[symbol, value] : values)
    value = fitted(value, rangeOf(table, symbol));
  return values;
}

class Repair {
public:
  Repair(const OpTable &table, const std::vector<Condition> &conditions, SymbolValues &values,
         const SymbolValues &fixed)
      : table(table), conditions(conditions), values(values), fixed(fixed) {
    for (size_t i = 0; i < conditions.size(); ++i)
      for (const std::string &symbol : conditions[i].symbols)
        conditionsOf[symbol].push_back(i);
  }

  void run() {
    constexpr int kMostRepairs = 100;
    for (int i = 0; i < kMostRepairs; ++i)
      if (!repairOne())
        return;
  }

private:
  /// What does not hold: of the model, of bodies, mildly. Fewer is better, in this order.
  using Faults = std::array<int, 3>;
  struct Move {
    Faults faults{};  ///< of all conditions with one of the symbols
    int changes = 0;  ///< of the symbols so far
    int64_t jump = 0; ///< how far the values move
    SymbolValues to;
    friend bool operator<(const Move &a, const Move &b) {
      return std::tie(a.faults, a.changes, a.jump, a.to) <
             std::tie(b.faults, b.changes, b.jump, b.to);
    }
  };

  bool isBroken(const Condition &condition) const {
    return holds(condition.requirement, values) == false;
  }
  Faults faultsOf(const std::vector<std::string> &symbols) const {
    std::set<size_t> touched;
    for (const std::string &symbol : symbols)
      touched.insert(conditionsOf.at(symbol).begin(), conditionsOf.at(symbol).end());
    Faults faults{};
    for (size_t i : touched)
      if (isBroken(conditions[i]))
        ++faults[conditions[i].mild ? 2 : conditions[i].inModel ? 0 : 1];
    return faults;
  }

  /// Mends the first condition that can be mended; false when none can.
  bool repairOne() {
    for (const Condition &condition : conditions) {
      if (!isBroken(condition))
        continue;
      std::vector<std::string> free;
      for (const std::string &symbol : condition.symbols)
        if (!fixed.contains(symbol))
          free.push_back(symbol);
      std::optional<Move> best;
      for (const std::string &symbol : free)
        tryMoves(condition, {symbol}, best);
      for (size_t i = 0; !best && i < free.size(); ++i)
        for (const std::string &other : free)
          if (other != free[i])
            tryMoves(condition, {other, free[i]}, best);
      if (!best)
        continue;
      for (const auto &[symbol, value] : best->to) {
        values[symbol] = value;
        ++changes[symbol];
      }
      return true;
    }
    return false;
  }

  /// Moves of the last of the symbols, the one before at some smaller sizes, that make the
  /// condition hold without breaking more than they mend.
  void tryMoves(const Condition &condition, const std::vector<std::string> &symbols,
                std::optional<Move> &best) {
    const SymbolValues before = values;
    const Faults now = faultsOf(symbols);
    std::set<int64_t> firsts;
    if (symbols.size() > 1)
      for (int64_t size : {int64_t(1), int64_t(4), int64_t(16), before.at(symbols[0]) / 2})
        firsts.insert(fitted(size, rangeOf(table, symbols[0])));
    else
      firsts.insert(before.at(symbols[0]));
    for (int64_t first : firsts) {
      values[symbols[0]] = first;
      for (int64_t value : valuesToTry(condition, symbols.back())) {
        values[symbols.back()] = value;
        if (!isBroken(condition))
          keepIfBetter(symbols, before, now, best);
      }
    }
    values = before;
  }

  void keepIfBetter(const std::vector<std::string> &symbols, const SymbolValues &before,
                    const Faults &now, std::optional<Move> &best) {
    constexpr int kMostChanges = 3; // of a symbol, where nothing gets better
    Move move;
    move.faults = faultsOf(symbols);
    for (const std::string &symbol : symbols) {
      move.to[symbol] = values[symbol];
      move.jump += std::abs(values[symbol] - before.at(symbol));
      move.changes = std::max(move.changes, changes[symbol]);
    }
    bool helps = move.faults < now || (move.faults == now && move.changes < kMostChanges);
    // Moves of other symbols touch other conditions: what counts is the difference.
    for (size_t i = 0; i < now.size(); ++i)
      move.faults[i] -= now[i];
    if (helps && (!best || move < *best))
      best = std::move(move);
  }

  std::set<int64_t> valuesToTry(const Condition &condition, const std::string &symbol) {
    const SymbolRange range = rangeOf(table, symbol);
    std::set<int64_t> candidates;
    auto consider = [&](int64_t value) {
      if (value >= 0 && value <= kMostSize)
        candidates.insert(fitted(value, range));
    };
    for (int64_t value = 1; value <= 4096; value *= 2)
      consider(value);
    const int64_t now = values[symbol];
    for (int64_t step : {1, 2, 4, 8, 16, 32})
      for (int64_t value : {now - step, now + step, now / step * step, (now / step + 1) * step})
        consider(value);
    // The values at which the sides meet, were their difference a line.
    auto difference = [&](int64_t value) -> std::optional<int64_t> {
      values[symbol] = value;
      auto left = condition.requirement.left.evaluate(values),
           right = condition.requirement.right.evaluate(values);
      for (auto side : {left, right})
        if (side)
          consider(*side);
      return left && right ? std::optional(*left - *right) : std::nullopt;
    };
    for (int64_t from : {now, now + 64}) {
      auto here = difference(from), there = difference(from + 64);
      if (here && there && *here != *there)
        for (int64_t rounding : {0, 1})
          consider(from - *here * 64 / (*there - *here) + rounding);
    }
    values[symbol] = now;
    return candidates;
  }

  const OpTable &table;
  const std::vector<Condition> &conditions;
  SymbolValues &values;
  const SymbolValues &fixed;
  std::map<std::string, std::vector<size_t>, std::less<>> conditionsOf;
  std::map<std::string, int> changes;
};

/// The given sizes by symbol.
Expected<SymbolValues> readGiven(const OpTable &table, const SymbolValues &guess,
                                 const SymbolValues &given) {
  SymbolValues values;
  for (const auto &[name, value] : given) {
    std::string symbol = Extent::symbol(name).text();
    if (!guess.contains(symbol)) {
      std::vector<std::string> names;
      for (const auto &known : guess)
        names.push_back(known.first);
      return badInput("a typical size is given for the dimension '{}', which is none of the open "
                      "dimensions: {}",
                      name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
    }
    const SymbolRange range = rangeOf(table, symbol);
    if (value < range.min || value > range.max || value % std::max<int64_t>(range.divisor, 1))
      return badInput("the typical size {} of '{}' is impossible: it is a multiple of {} from {} "
                      "to {}",
                      value, name, range.divisor, range.min, range.max);
    auto [known, isNew] = values.emplace(symbol, value);
    if (!isNew && known->second != value)
      return badInput("the dimension '{}' has the two typical sizes {} and {}", name, known->second,
                      value);
  }
  return values;
}

} // namespace

Expected<SymbolValues> typicalSizes(const OpTable &table, const SymbolValues &given) {
  std::vector<Condition> conditions;
  addAllConditions(table, true, conditions);
  SymbolValues values = firstGuess(table, conditions);
  auto fixed = readGiven(table, values, given);
  if (!fixed)
    return fixed.takeError();
  for (const auto &[symbol, value] : *fixed)
    values[symbol] = value;
  Repair(table, conditions, values, *fixed).run();
  for (const Condition &condition : conditions)
    if (condition.inModel && !condition.mild && holds(condition.requirement, values) == false &&
        std::any_of(condition.symbols.begin(), condition.symbols.end(),
                    [&](const std::string &symbol) { return fixed->contains(symbol); }))
      return badInput("under the typical sizes given the model makes no sense: {}",
                      violation(condition.requirement, values));
  return values;
}

SymbolValues usableSizes(const OpTable &table, SymbolValues sizes) {
  std::vector<Condition> conditions;
  addConditions(table, true, conditions);
  std::set<std::string> unusable;
  for (const Condition &condition : conditions)
    if (!condition.mild && holds(condition.requirement, sizes) == false)
      unusable.insert(condition.symbols.begin(), condition.symbols.end());
  for (const std::string &symbol : unusable)
    sizes.erase(symbol);
  return sizes;
}

std::set<std::string> lastingSymbols(const OpTable &model) {
  std::set<std::string> lasting;
  for (uint32_t input : model.inputs)
    for (const Extent &extent : model.values[input].extents)
      if (!extent.isStatic())
        for (const std::string &symbol : extent.symbols())
          lasting.insert(symbol);
  for (const std::string &symbol : growingSymbols(model))
    lasting.erase(symbol);
  return lasting;
}

std::string sizesText(const SymbolValues &sizes) {
  std::string text;
  for (const auto &[symbol, size] : sizes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", symbol, size);
  return text;
}

} // namespace dovetail::plan
