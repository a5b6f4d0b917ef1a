// SPDX-License-Identifier: Apache-2.0
//
// Decoding: outputs that are states become inputs of the next run, everything else is bound anew
// where it depends on how far the cache has grown. Positions count on, masks let everything pass,
// other inputs are seeded noise unless they are given.
#include "Tokens.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/ranges.h>

#include "Progress.h"
#include "artifact/StateNames.h"
#include "plan/TrialTensor.h"

namespace dovetail::cli {
namespace {

using Clock = std::chrono::steady_clock;

double millis(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::shared_ptr<uint8_t> allocate(size_t bytes) {
  size_t whole = std::max<size_t>(64, (bytes + 63) / 64 * 64);
  return {static_cast<uint8_t *>(std::aligned_alloc(64, whole)), std::free};
}

class Decoder {
public:
  Decoder(const OpenedModel &opened, const std::map<std::string, Array> &given)
      : plan(opened.model->plan()), opened(opened), given(given) {}

  Status start(const CommonOptions &common, const TokenOptions &options);
  /// From the beginning: the states as they were before the first token.
  Status rewind();
  /// One token; what it took in milliseconds.
  Expected<double> step();

  const Session &runner() const { return *session; }
  int64_t length() const { return grown.empty() ? steps : symbols.at(grown); }
  bool isInPlace() const {
    return std::all_of(states.begin(), states.end(), [&](const auto &state) {
      const PlanState *planned = stateOf(plan, true, state.first);
      return planned && (planned->grows || grown.empty());
    });
  }
  size_t stateCount() const { return states.size(); }
  const SymbolValues &dimensions() const { return symbols; }

private:
  struct Bound {
    std::vector<int64_t> extents;
    std::shared_ptr<uint8_t> data;
  };
  bool isState(uint32_t input) const {
    return std::any_of(states.begin(), states.end(),
                       [&](const auto &state) { return state.first == input; });
  }
  Status findGrowth();
  Expected<std::vector<int64_t>> extentsOf(uint32_t input) const;
  Status bind(uint32_t input, bool always);
  void fill(uint32_t input, Bound &bound) const;

  const Plan &plan;
  const OpenedModel &opened;
  const std::map<std::string, Array> &given;
  std::unique_ptr<Session> session;
  std::vector<std::pair<uint32_t, uint32_t>> states;
  SymbolValues symbols;
  std::string grown;   ///< symbol of the cache's length; empty where no state grows
  size_t growAxis = 0; ///< of the first state that grows
  uint32_t growOutput = 0;
  int64_t first = 0, steps = 0, most = 0;
  std::vector<Bound> bound;
};

/// The symbol that a state has in its input and grows in its output.
Status Decoder::findGrowth() {
  for (auto [input, output] : states) {
    std::vector<Extent> before = borderExtents(plan, true, input),
                        after = borderExtents(plan, false, output);
    for (size_t d = 0; d < before.size() && before.size() == after.size(); ++d) {
      if (before[d] == after[d])
        continue;
      if (before[d].isStatic())
        return badInput("cannot run token by token: input '{}' has {} for dimension {} for good, "
                        "and output '{}' has {}; export the model with a free length",
                        plan.inputNames[input], before[d].text(), d, plan.outputNames[output],
                        after[d].text());
      std::vector<std::string> names = before[d].symbols();
      if (names.size() != 1 || before[d] != Extent::symbol(names[0]) ||
          (!grown.empty() && grown != names[0]))
        return badInput("cannot run token by token: input '{}' has {} for dimension {}, where the "
                        "length of the cache is expected",
                        plan.inputNames[input], before[d].text(), d);
      if (grown.empty()) {
        growAxis = d;
        growOutput = output;
      }
      grown = names[0];
    }
  }
  return Status::success();
}

Status Decoder::start(const CommonOptions &common, const TokenOptions &options) {
  auto settings = makeSettings(common);
  if (!settings)
    return settings.takeError();
  for (const auto &[name, array] : given)
    if (std::find(plan.inputNames.begin(), plan.inputNames.end(), name) == plan.inputNames.end())
      return badInput("there is no input '{}'; the inputs are {}", name,
                      fmt::join(plan.inputNames, ", "));
  for (const PlanState &state : plan.states)
    states.emplace_back(state.input, state.output);
  if (states.empty()) {
    auto found =
        findStates(common.states.empty() ? std::vector<std::string>{"auto"} : common.states,
                   plan.inputNames, plan.outputNames);
    if (!found)
      return badInput("--tokens: {}", found.error().message);
    states = std::move(*found);
  }
  if (Status status = findGrowth(); !status)
    return status;
  symbols = settings->dims;
  for (const SymbolSource &source : plan.blocks.front().symbolSources)
    symbols.try_emplace(source.symbol, 1);
  auto range = plan.symbols.find(grown);
  int64_t least = range == plan.symbols.end() ? SymbolRange().min : range->second.min;
  first = options.past >= 0                ? options.past
          : settings->dims.contains(grown) ? settings->dims.at(grown)
                                           : least;
  if (options.past >= 0 && grown.empty())
    return badInput("--past: no state of this model grows");
  if (!grown.empty() && first < least)
    return badInput("--past {}: the model was compiled for a cache of at least {}; compile it with "
                    "--state auto for an empty one",
                    first, least);
  most = options.tokens;
  auto made = Session::create(opened.model);
  if (!made)
    return made.takeError();
  session = std::move(*made);
  for (auto [input, output] : states)
    if (Status status = session->feedBack(output, input); !status)
      return badInput("cannot run token by token: {}", status.error().message);
  bound.resize(plan.inputNames.size());
  return rewind();
}

Status Decoder::rewind() {
  steps = 0;
  if (!grown.empty())
    symbols[grown] = first;
  for (uint32_t input = 0; input < bound.size(); ++input)
    if (Status status = bind(input, true); !status)
      return status;
  for (const PlanState &state : plan.states)
    if (state.grows)
      if (Status status = session->reserveState(state.input, first + most + 1); !status)
        return status;
  return Status::success();
}

Expected<std::vector<int64_t>> Decoder::extentsOf(uint32_t input) const {
  std::vector<int64_t> extents;
  for (const Extent &extent : borderExtents(plan, true, input)) {
    auto number = extent.evaluate(symbols);
    if (!number)
      return badInput("input '{}' has the extent {}, which is not fixed; give its value with --dim",
                      plan.inputNames[input], extent.text());
    extents.push_back(*number);
  }
  return extents;
}

/// Integers called positions count on from the length of the cache; masks let everything pass.
void Decoder::fill(uint32_t input, Bound &to) const {
  const PlanValue &value = plan.blocks.front().values[plan.blocks.front().inputs[input]];
  int64_t elements = 1;
  for (int64_t extent : to.extents)
    elements *= extent;
  size_t bytes = bytesOf(value.type, elements);
  to.data = allocate(bytes);
  const std::string &name = plan.inputNames[input];
  bool isFloat = value.type == DVT_F32 || value.type == DVT_F16 || value.type == DVT_BF16 ||
                 value.type == DVT_F64;
  bool isPosition = name.find("position") != std::string::npos && value.type == DVT_I64;
  bool isMask = name.find("mask") != std::string::npos;
  auto *numbers = reinterpret_cast<int64_t *>(to.data.get());
  if (isPosition && !to.extents.empty()) {
    for (int64_t i = 0; i < elements; ++i)
      numbers[i] = length() + i % to.extents.back();
  } else if (isMask && value.type == DVT_I64) {
    std::fill_n(numbers, elements, 1);
  } else if (isMask && (isFloat || value.type == DVT_BOOL || value.type == DVT_I32)) {
    std::memset(to.data.get(), 0, bytes); // what is added to scores
    if (value.type == DVT_BOOL)
      std::memset(to.data.get(), 1, bytes);
    else if (value.type == DVT_I32)
      std::fill_n(reinterpret_cast<int32_t *>(to.data.get()), elements, 1);
  } else {
    std::vector<uint8_t> noise = plan::noise(value.type, elements, input + 1);
    std::memcpy(to.data.get(), noise.data(), noise.size());
  }
}

/// Binds an input where that changed, or in any case.
Status Decoder::bind(uint32_t input, bool always) {
  if (!always && isState(input))
    return Status::success();
  auto extents = extentsOf(input);
  if (!extents)
    return extents.takeError();
  Bound &to = bound[input];
  bool counts = plan.inputNames[input].find("position") != std::string::npos;
  if (!always && to.extents == *extents && !counts)
    return Status::success();
  auto array = given.find(plan.inputNames[input]);
  if (array != given.end()) {
    const PlanValue &value = plan.blocks.front().values[plan.blocks.front().inputs[input]];
    if (array->second.extents != *extents || array->second.type != value.type)
      return badInput("input '{}' is given as {}[{}], a token needs {}[{}]", plan.inputNames[input],
                      typeName(array->second.type), fmt::join(array->second.extents, ","),
                      typeName(value.type), fmt::join(*extents, ","));
    if (!always)
      return Status::success();
    to.extents = *extents;
    to.data = allocate(array->second.bytes.size());
    std::memcpy(to.data.get(), array->second.bytes.data(), array->second.bytes.size());
  } else {
    to.extents = *extents;
    fill(input, to);
  }
  return session->bindInput(input, to.data.get(), to.extents);
}

Expected<double> Decoder::step() {
  auto begin = Clock::now();
  if (steps > 0)
    for (uint32_t input = 0; input < bound.size(); ++input)
      if (Status status = bind(input, false); !status)
        return status.takeError();
  if (Status status = session->run(); !status)
    return status.takeError();
  double time = millis(Clock::now() - begin);
  ++steps;
  if (!grown.empty())
    symbols[grown] = session->output(growOutput).extents[growAxis];
  return time;
}

} // namespace

int benchTokens(const std::string &model, const OpenedModel &opened, const CommonOptions &common,
                const std::map<std::string, Array> &given, const TokenOptions &options) {
  Decoder decoder(opened, given);
  if (Status status = decoder.start(common, options); !status)
    return fail(status.error());
  if (!decoder.isInPlace())
    std::fprintf(stderr, "dovetail: warning: the cache is copied for each token; a model whose "
                         "cache is appended to, compiled with --state, grows it in place\n");
  constexpr unsigned kWarmUps = 2;
  for (unsigned i = 0; i < std::min(kWarmUps, options.tokens); ++i)
    if (auto time = decoder.step(); !time)
      return fail(time.error());
  if (Status status = decoder.rewind(); !status)
    return fail(status.error());
  int64_t begin = decoder.length();
  std::vector<double> times;
  double total = 0;
  Progress progress(std::chrono::seconds(1)); // a terminal that draws takes a core
  for (unsigned i = 0; i < options.tokens; ++i) {
    progress.show("timing tokens", i, options.tokens);
    auto time = decoder.step();
    if (!time)
      return fail(time.error());
    times.push_back(*time);
    total += *time;
  }
  Progress::erase();
  double first = times.front();
  std::sort(times.begin(), times.end());
  auto at = [&](double share) {
    return times[std::min(times.size() - 1,
                          static_cast<size_t>(share * static_cast<double>(times.size())))];
  };
  double rate = 1000 * static_cast<double>(options.tokens) / total;
  if (common.json) {
    nlohmann::json report{{"model", model},
                          {"threads", opened.model->threads()},
                          {"tokens", options.tokens},
                          {"tokens_per_second", rate},
                          {"first_ms", first},
                          {"p50_ms", at(0.5)},
                          {"p95_ms", at(0.95)},
                          {"max_ms", times.back()},
                          {"past_before", begin},
                          {"past_after", decoder.length()},
                          {"states", decoder.stateCount()},
                          {"in_place", decoder.isInPlace()},
                          {"dimensions", decoder.dimensions()},
                          {"load_ms", opened.loadMillis},
                          {"compile_ms", opened.compileMillis},
                          {"arena_bytes", decoder.runner().arenaBytes()}};
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  std::printf("%.2f tokens per second over %u tokens at %u threads, cache from %lld to %lld; a "
              "token takes %.3f ms (p50), %.3f ms (p95), the first %.3f ms\n",
              rate, options.tokens, opened.model->threads(), static_cast<long long>(begin),
              static_cast<long long>(decoder.length()), at(0.5), at(0.95), first);
  return 0;
}

} // namespace dovetail::cli
