// SPDX-License-Identifier: Apache-2.0
//
// The choice within a bound on memory. First the cheapest plan is chosen without looking at memory,
// which most models can afford. Where it takes too much, the cover is solved again within what the
// bound leaves beside the arena; that is known only of a whole plan, so this may take a few turns.
#include "plan/PlannerState.h"

#include <algorithm>
#include <charconv>

namespace dovetail::plan {
namespace {

std::string bytesText(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

} // namespace

Expected<MemoryBound> MemoryBound::parse(const std::string &text) {
  if (text == "none")
    return MemoryBound{Kind::None, 0};
  uint64_t number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  for (auto [name, shift] :
       {std::pair{"", 0}, std::pair{"KiB", 10}, std::pair{"MiB", 20}, std::pair{"GiB", 30}})
    if (failure == std::errc() && unit == name && number > 0 && number <= kMostBytes >> shift)
      return MemoryBound{Kind::Bytes, number << shift};
  return badInput("'{}' is no size of memory; it may be a whole number of bytes, KiB, MiB or GiB "
                  "of at most 1048576 GiB, such as 200MiB, or none",
                  text);
}

uint64_t MemoryBound::of(const PlanMemory &memory) const {
  if (kind == Kind::None)
    return UINT64_MAX;
  if (kind == Kind::Bytes)
    return bytes;
  // Processors that compute halves as f32 keep them so, and their model is as large as its f32
  // twin.
  const uint64_t weights = memory.weights + memory.halves;
  auto share = static_cast<uint64_t>(kShare * static_cast<double>(weights + memory.arena));
  return std::max(kLeastShare, share - std::min(share, kOwnBytes));
}

CoverMemory Planner::State::memoryOf(const Trial &trial) {
  const Candidate &candidate = trial.candidate;
  CoverMemory memory;
  if (candidate.memory == DVT_MEMORY_DEVICE)
    return memory; // what the bound is on is the processor's
  if (candidate.packing != DVT_PACKING_NONE && candidate.packedBytes != UINT64_MAX)
    memory.bytes = candidate.packedBytes;
  if (candidate.codeBytes > 0)
    memory.code = {
        codeNumbers.try_emplace(&trial, static_cast<uint32_t>(codeNumbers.size())).first->second,
        candidate.codeBytes};
  const std::string process = processOf(candidate);
  auto paid = paidProcesses.find(process);
  uint64_t before = paid == paidProcesses.end() ? 0 : paid->second;
  auto number = [&] {
    return processNumbers.try_emplace(process, static_cast<uint32_t>(processNumbers.size()))
        .first->second;
  };
  if (candidate.processBytes > before)
    memory.process = {number(), candidate.processBytes - before};
  return memory;
}

bool Planner::State::takesNoMore(const CoverMemory &one, const CoverMemory &other) {
  // What others share may come at no cost.
  bool code = one.code.bytes == 0 || one.code.key == other.code.key ||
              one.bytes + one.code.bytes <= other.bytes;
  bool process = one.process.bytes == 0 ||
                 (one.process.key == other.process.key && one.process.bytes <= other.process.bytes);
  return one.bytes <= other.bytes && code && process;
}

Expected<CoverSolution> Planner::State::solve(const CoverLimits &limits, Prefer prefer) {
  isNearHint = false;
  if (!weighsMemory())
    return solveFreely(limits);
  double share = (1 + static_cast<double>(constantBytes(table))) / memoryWeight();
  const uint64_t most =
      bodies.empty() ? mostBytes : static_cast<uint64_t>(static_cast<double>(mostBytes) * share);
  auto bounded = solveCoverWithin(cover, limits, most, &boundHints[prefer], &pricedCovers);
  if (!bounded)
    return bounded.takeError();
  isNearHint = bounded->fromHint;
  options.log(LogLevel::Debug, "cover within {} bytes: takes {}, {:.1f} us; {} solved", most,
              bounded->bytes, bounded->solution.cost, bounded->solves);
  return std::move(bounded->solution);
}

Expected<CoverSolution> Planner::State::solveFreely(const CoverLimits &limits) {
  if (!freeCover || !(freeCover->problem == cover && freeCover->limits == limits)) {
    auto solved = solveCover(cover, limits);
    if (!solved)
      return solved;
    freeCover = FreeCover{cover, limits, std::move(*solved)};
  }
  return freeCover->solution;
}

double Planner::State::memoryWeight() const {
  double weight = 1 + static_cast<double>(constantBytes(table));
  for (const auto &body : bodies)
    weight += body->memoryWeight();
  return weight;
}

void Planner::State::lendMemory(const Plan &plan, size_t number) {
  State &body = *bodies[number];
  body.mostBytes = UINT64_MAX;
  body.paidProcesses = paidProcesses;
  if (!weighsMemory())
    return;
  PlanMemory used = dovetail::memoryOf(plan);
  uint64_t taken = used.packed + used.code;
  for (const auto &[process, bytes] : used.processes) {
    uint64_t &paid = body.paidProcesses[process];
    taken += bytes > paid ? bytes - paid : 0;
    paid = std::max(paid, bytes);
  }
  double weight = 0;
  for (size_t i = number; i < bodies.size(); ++i)
    weight += bodies[i]->memoryWeight();
  double left = taken < mostBytes ? static_cast<double>(mostBytes - taken) : 0;
  body.mostBytes = static_cast<uint64_t>(left * body.memoryWeight() / weight);
}

/// The plan, with a word on how much it takes.
Plan Planner::State::overBound(Plan plan) const {
  PlanMemory memory = dovetail::memoryOf(plan);
  options.log(LogLevel::Warning,
              "no plan was found within {} of memory; the one of least memory takes {}: packed "
              "constants {}, code {}, libraries {}, intermediate results {}",
              bytesText(plan.memoryBound), bytesText(memory.total()), bytesText(memory.packed),
              bytesText(memory.code), bytesText(memory.process()), bytesText(memory.arena));
  return plan;
}

/// A plan near that of the last turn, where it is beyond the bound by less than `excess`: it shows
/// the next turn how large the arena becomes. Any other is sought anew, for it may be kept.
Expected<Plan> Planner::State::chooseNearLast(Prefer prefer, uint64_t excess) {
  endsNearHint = true;
  auto plan = choose(prefer);
  endsNearHint = false;
  if (!plan || !isNearHint)
    return plan;
  const PlanMemory memory = dovetail::memoryOf(*plan);
  const uint64_t bound = options.memory.of(memory);
  if (memory.total() > bound && memory.total() - bound < excess)
    return plan;
  boundHints[prefer].isKnown = false;
  return choose(prefer);
}

Expected<Plan> Planner::State::chooseWithinBound(Prefer prefer) {
  mostBytes = UINT64_MAX;
  boundHints[prefer] = {}; // what was chosen before shall not show
  // Effort is for plans that can be taken.
  mayBeThorough = options.memory.kind == MemoryBound::Kind::None;
  auto plan = choose(prefer);
  if (!plan)
    return plan;
  PlanMemory memory = dovetail::memoryOf(*plan);
  if (!mayBeThorough && memory.total() <= options.memory.of(memory)) {
    mayBeThorough = true;
    plan = choose(prefer);
    if (!plan)
      return plan;
    memory = dovetail::memoryOf(*plan);
  }
  plan->memoryBound = options.memory.of(memory);
  std::optional<Plan> nearest; // to the bound, of those beyond it
  bool isNearestKept = true;   // as it is; else it was found near another and is sought anew
  uint64_t nearestMost = UINT64_MAX, excess = UINT64_MAX, withheld = 0;
  constexpr int kMostTurns = 4;
  for (int turn = 0; memory.total() > plan->memoryBound; ++turn) {
    uint64_t beyond = memory.total() - plan->memoryBound;
    options.log(LogLevel::Debug, "a plan of {} bytes, {} of them arena, for a bound of {}",
                memory.total(), memory.arena, plan->memoryBound);
    bool isNearer = beyond < excess;
    if (isNearer) {
      nearest = *plan;
      excess = beyond;
      nearestMost = mostBytes;
      isNearestKept = !isNearHint;
    }
    if (turn == kMostTurns || (turn > 0 && (!isNearer || mostBytes == 0))) {
      if (isNearestKept)
        return overBound(std::move(*nearest));
      mostBytes = nearestMost;
      boundHints[prefer].isKnown = false;
      plan = choose(prefer);
      if (!plan)
        return plan;
      memory = dovetail::memoryOf(*plan);
      plan->memoryBound = options.memory.of(memory);
      if (memory.total() > plan->memoryBound)
        return overBound(std::move(*plan));
      return plan;
    }
    withheld += turn > 0 ? beyond : 0;
    uint64_t beside = memory.arena + withheld;
    mostBytes = plan->memoryBound > beside ? plan->memoryBound - beside : 0;
    const bool mayFollow = turn > 0 && turn + 1 < kMostTurns;
    plan = mayFollow ? chooseNearLast(prefer, excess) : choose(prefer);
    if (!plan)
      return plan;
    memory = dovetail::memoryOf(*plan);
    plan->memoryBound = options.memory.of(memory);
  }
  return plan;
}

} // namespace dovetail::plan
