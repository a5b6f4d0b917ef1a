// SPDX-License-Identifier: Apache-2.0
//
// Naming. A name that is taken, because two names differ only in characters that symbols do not
// have, gets a number.
#include "import/Symbols.h"

namespace dovetail::importer {

std::string Symbols::unique(const std::string &wish) {
  std::string clean = Extent::symbol(wish).text();
  std::string name = clean;
  for (int &i = numbers.try_emplace(clean, 2).first->second; !taken.insert(name).second; ++i)
    name = clean + "_" + std::to_string(i);
  return name;
}

std::optional<int64_t> Symbols::fixed(const std::string &name, const std::string &symbol) {
  for (const std::string &key : {name, symbol})
    if (auto found = given.find(key); found != given.end()) {
      used.insert(key);
      return found->second;
    }
  return std::nullopt;
}

void Symbols::allow(int64_t least, const std::string &symbol) {
  if (SymbolRange range; least < range.min)
    known.emplace(symbol, range).first->second.min = least;
}

Extent Symbols::named(const std::string &name, int64_t least) {
  auto found = byName.find(name);
  if (found != byName.end()) {
    if (!found->second.isStatic())
      allow(least, found->second.text());
    return found->second;
  }
  std::string symbol = unique(name);
  asked.push_back(name);
  std::optional<int64_t> value = fixed(name, symbol);
  Extent extent = value ? Extent(*value) : Extent::symbol(symbol);
  if (!value)
    allow(least, symbol);
  return byName.emplace(name, extent).first->second;
}

Status Symbols::fix(const std::string &name, int64_t value, const std::string &input) {
  std::optional<int64_t> option = fixed(name, Extent::symbol(name).text());
  if (option && *option != value)
    return badInput("input '{}' is given with {} for the dimension '{}', for which {} was given",
                    input, value, name, *option);
  auto [known, isNew] = byName.emplace(name, Extent(value));
  if (!isNew && known->second.staticValue() != value)
    return badInput("input '{}' is given with {} for the dimension '{}', which is {} in another "
                    "input; both must be the same",
                    input, value, name, known->second.text());
  return Status::success();
}

Extent Symbols::fresh(const std::string &value, size_t dimension, int64_t least) {
  std::string symbol = unique(value + "_" + std::to_string(dimension));
  asked.push_back(symbol);
  if (std::optional<int64_t> number = fixed(symbol, symbol))
    return Extent(*number);
  if (SymbolRange range; least != range.min) {
    range.min = least;
    known[symbol] = range;
  }
  return Extent::symbol(symbol);
}

Status Symbols::allGivenUsed() const {
  for (const auto &[name, value] : given) {
    if (used.count(name))
      continue;
    std::string list;
    for (size_t i = 0; i < asked.size() && i < 20; ++i)
      list += (i ? ", " : "") + asked[i];
    return badInput("the model has no dimension '{}' to set to {}; its open dimensions are: {}",
                    name, value, list.empty() ? "none" : list);
  }
  return Status::success();
}

} // namespace dovetail::importer
