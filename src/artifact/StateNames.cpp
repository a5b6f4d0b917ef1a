// SPDX-License-Identifier: Apache-2.0
//
// Names of states: given ones are looked up, others are found by replacing the word that says that
// a tensor comes in by the one that says that it goes out.
#include "artifact/StateNames.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/ranges.h>

namespace dovetail {
namespace {

std::optional<uint32_t> numberOf(const std::vector<std::string> &names, const std::string &name) {
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return std::nullopt;
  return static_cast<uint32_t>(found - names.begin());
}

/// The output that carries on what the input `name` brings, by its name.
std::optional<uint32_t> successor(const std::string &name,
                                  const std::vector<std::string> &outputs) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"past_key_values", "present_key_values"},
      {"past_key_values", "present"},
      {"past", "present"},
      {"_in", "_out"}};
  for (auto [from, to] : kWords) {
    size_t at = name.find(from);
    if (at == std::string::npos || (from == "_in" && at + from.size() != name.size()))
      continue;
    std::string other = name;
    other.replace(at, from.size(), to);
    if (auto number = numberOf(outputs, other))
      return number;
  }
  return std::nullopt;
}

} // namespace

Expected<std::vector<std::pair<uint32_t, uint32_t>>>
findStates(const std::vector<std::string> &wanted, const std::vector<std::string> &inputs,
           const std::vector<std::string> &outputs) {
  std::vector<std::pair<uint32_t, uint32_t>> states;
  auto isTaken = [&](uint32_t input, uint32_t output) {
    return std::any_of(states.begin(), states.end(), [&](const auto &state) {
      return state.first == input || state.second == output;
    });
  };
  bool byName = false;
  for (const std::string &text : wanted) {
    if (text == "auto") {
      byName = true;
      continue;
    }
    size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return badInput("state '{}': expected IN=OUT, the names of an input and an output, or auto",
                      text);
    auto input = numberOf(inputs, text.substr(0, equals));
    auto output = numberOf(outputs, text.substr(equals + 1));
    if (!input)
      return badInput("state '{}': there is no input '{}'; the inputs are {}", text,
                      text.substr(0, equals), fmt::join(inputs, ", "));
    if (!output)
      return badInput("state '{}': there is no output '{}'; the outputs are {}", text,
                      text.substr(equals + 1), fmt::join(outputs, ", "));
    if (isTaken(*input, *output))
      return badInput("state '{}': its input or output belongs to another state already", text);
    states.emplace_back(*input, *output);
  }
  for (uint32_t input = 0; byName && input < inputs.size(); ++input)
    if (auto output = successor(inputs[input], outputs); output && !isTaken(input, *output))
      states.emplace_back(input, *output);
  if (byName && states.empty())
    return badInput("no state was found by name: no input past_* has an output present_*; name "
                    "the pairs as IN=OUT. The inputs are {}, the outputs are {}",
                    fmt::join(inputs, ", "), fmt::join(outputs, ", "));
  return states;
}

} // namespace dovetail
