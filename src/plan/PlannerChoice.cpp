// SPDX-License-Identifier: Apache-2.0
//
// The choice: trials become options and conversions of a cover, which is solved as often as an
// answer wants something that nobody measured yet; then the plan is put together.
#include "plan/PlannerState.h"

#include <algorithm>
#include <tuple>

#include "plan/Blocks.h"
#include "plan/CoverMemory.h"
#include "plan/ExtentSources.h"
#include "plan/FreeOptions.h"

namespace dovetail::plan {
namespace {

// Weights of CoverOption::against for each op: of a choice against the preference, and of one that
// nobody would make who has another.
constexpr uint32_t kAgainstPreference = 16, kLastResort = 1;
/// What estimates are multiplied by beside measured times: where a plan is made, on the dear side;
/// where it is asked what to measure, about as fast as a kernel could be.
constexpr double kCaution = 3, kHope = 0.6;
/// With these, solving a cover finds the best answer nearly always, if without proof.
constexpr size_t kQuickStates = 1024, kQuickRelaxedStates = 200;
/// Times are measured to a few per cent; proving more than that would be for show. Where the
/// frontier has an answer, if not a proven one, the solver would take minutes to better it.
constexpr CoverLimits kLimits{.maxNodes = 1, .relativeGap = 0.002, .beyondFrontier = false};
/// Of a kernel bound late: each signature of extents holds packed constants of its own.
constexpr uint64_t kMostLatePackedBytes = uint64_t(256) << 10;

} // namespace

bool Planner::State::allowed(const Trial &trial) const {
  if (!trial.usable())
    return false;
  if (options.deterministic &&
      (!trial.candidate.deterministic || trial.candidate.numerics != "f32"))
    return false;
  return options.only.empty() || std::find(options.only.begin(), options.only.end(),
                                           trial.candidate.provider) != options.only.end();
}

bool Planner::State::allowedByForce(uint32_t region, const Trial &trial) const {
  for (const ForcedChoice &forced : options.force)
    for (Unit unit : regions[region].units)
      if (nodeOf(unit) == forced.node &&
          trial.candidate.provider + ":" + trial.candidate.algorithm != forced.algorithm)
        return false;
  return true;
}

void Planner::State::addKernelOptions(uint32_t region, Prefer prefer) {
  const Evaluation *evaluation = regionEvaluations[region];
  if (!evaluation)
    return;
  const std::vector<Trial> none, &there = onDevice[region] ? onDevice[region]->trials : none;
  const RegionProblem &problem = problems[region];
  auto isTimed = [](const Trial &trial) { return trial.micros >= 0; };
  const bool anyTimed = std::any_of(evaluation->trials.begin(), evaluation->trials.end(), isTimed);
  const bool anyTimedThere = std::any_of(there.begin(), there.end(), isTimed);
  struct Best {
    CoverOption option;
    OptionMeaning meaning;
  };
  using Key = std::pair<std::vector<LayoutState>, std::vector<LayoutState>>;
  std::map<Key, Best> bestOf;
  std::vector<Best> thrifty; // others, where memory matters
  auto offer = [&](const Trial &shown, OptionMeaning meaning) {
    Best best;
    best.meaning = meaning;
    best.option.cost = meaning.kind == OptionMeaning::Kind::LateBound
                           ? costOfLateBinding(shown, problem.problem)
                           : costOf(shown, problem.problem);
    const Candidate &candidate = shown.candidate;
    bool library = isLibrary(candidate.provider);
    // Beside measured times an estimate is taken with caution. Where a device's are all predicted,
    // they compare with each other.
    const bool onDevice = candidate.memory == DVT_MEMORY_DEVICE;
    double caution = 1;
    if (shown.micros < 0 && (onDevice ? anyTimedThere : options.select != Select::Estimate))
      caution *= isHopeful ? kHope : kCaution;
    if (region >= firstApart)
      caution *= 1.02; // within what times vary by, less memory decides
    // The runtime's own kernel is prepared at load, a library's that is bound late is not.
    best.option.charged = chargeOf(*meaning.trial, equalProblems[region]);
    best.option.cost = best.option.cost * caution + best.option.charged;
    const auto asLast = kLastResort * static_cast<uint32_t>(regions[region].ops.size());
    if (candidate.provider == "reference")
      best.option.against += asLast;
    else if (shown.micros < 0 && (onDevice ? anyTimedThere : anyTimed))
      best.option.preference += asLast;
    for (uint32_t op : regions[region].ops) {
      if (prefer == Prefer::Library && !library && libraryCovers[op])
        best.option.preference += kAgainstPreference;
      if (prefer == Prefer::Native && candidate.provider != "native" && nativeCovers[op])
        best.option.preference += kAgainstPreference;
    }
    best.option.against += best.option.preference;
    best.option.memory = memoryOf(shown);
    if (meaning.trial != &shown) { // it is there, too, for what the library does not take
      best.option.memory.bytes += memoryOf(*meaning.trial).bytes;
      best.option.memory.bytes += memoryOf(*meaning.trial).code.bytes;
    }
    for (size_t i = 0; i < problem.operands.size(); ++i)
      if (!table.values[problem.operands[i]].constant)
        best.option.needs.push_back(
            {problem.operands[i],
             layoutOf(problem.operands[i], candidate.inputLayouts[i], candidate.memory)});
    for (size_t i = 0; i < problem.results.size(); ++i)
      best.option.gives.push_back(
          {problem.results[i],
           layoutOf(problem.results[i], candidate.outputLayouts[i], candidate.memory)});
    std::sort(best.option.needs.begin(), best.option.needs.end());
    best.option.needs.erase(std::unique(best.option.needs.begin(), best.option.needs.end()),
                            best.option.needs.end());
    // One value cannot be taken in two layouts at no cost by one kernel; each needed state counts.
    auto key = std::make_pair(best.option.needs, best.option.gives);
    auto [found, isNew] = bestOf.try_emplace(key, best);
    auto weight = [](const Best &best) {
      return std::make_pair(best.option.against, best.option.cost);
    };
    if (weighsMemory())
      thrifty.push_back(best);
    if (!isNew && weight(best) < weight(found->second))
      found->second = std::move(best);
  };
  bool symbolic = problem.problem.hasSymbols();
  const Trial *runtimeKernel = nullptr;
  bool statesExtents = findsOutExtents(table, regions[region]);
  for (const Trial &trial : evaluation->trials) {
    if (!allowed(trial) || !allowedByForce(region, trial) ||
        (symbolic && !trial.candidate.runtimeExtents) ||
        (statesExtents && trial.candidate.provider != "reference"))
      continue;
    offer(trial, {OptionMeaning::Kind::Kernel, region, &trial, nullptr, 0, 0});
    bool rowMajor =
        std::all_of(trial.candidate.inputLayouts.begin(), trial.candidate.inputLayouts.end(),
                    [](const std::string &text) { return text.empty(); }) &&
        std::all_of(trial.candidate.outputLayouts.begin(), trial.candidate.outputLayouts.end(),
                    [](const std::string &text) { return text.empty(); });
    if (rowMajor && (!runtimeKernel ||
                     rankOf(trial, problem.problem) < rankOf(*runtimeKernel, problem.problem)))
      runtimeKernel = &trial;
  }
  for (const Trial &trial : there)
    if (allowed(trial) && allowedByForce(region, trial) && !statesExtents &&
        (!symbolic || trial.candidate.runtimeExtents))
      offer(trial, {OptionMeaning::Kind::Kernel, region, &trial, nullptr, 0, 0});
  if (symbolic && runtimeKernel && lateEvaluations[region] && !statesExtents) {
    for (const Trial &trial : lateEvaluations[region]->trials) {
      bool rowMajor =
          std::all_of(trial.candidate.inputLayouts.begin(), trial.candidate.inputLayouts.end(),
                      [](const std::string &text) { return text.empty(); }) &&
          std::all_of(trial.candidate.outputLayouts.begin(), trial.candidate.outputLayouts.end(),
                      [](const std::string &text) { return text.empty(); });
      if (!allowed(trial) || !isLibrary(trial.candidate.provider) || !rowMajor ||
          trial.candidate.packedBytes > kMostLatePackedBytes)
        continue;
      offer(trial, {OptionMeaning::Kind::LateBound, region, runtimeKernel, &trial, 0, 0});
    }
  }
  const size_t before = optionMeanings.size();
  for (const auto &entry : bestOf) {
    const Best &best = entry.second;
    bool dominated = std::any_of(bestOf.begin(), bestOf.end(), [&](const auto &other) {
      return &other.second != &best && dominates(other.second.option, best.option);
    });
    if (dominated)
      continue;
    cover.options.push_back(best.option);
    optionMeanings.push_back(best.meaning);
  }
  // Beside these, what takes less memory than all that is cheaper.
  for (const Best &best : thrifty) {
    auto isBeaten = [&](const Best &other) {
      auto weight = [](const Best &of) {
        return std::make_tuple(of.option.against, of.option.cost, &of);
      };
      bool isAlike =
          other.option.needs == best.option.needs && other.option.gives == best.option.gives;
      return &other != &best && takesNoMore(other.option.memory, best.option.memory) &&
             (isAlike ? weight(other) < weight(best) : dominates(other.option, best.option));
    };
    bool isThere = std::any_of(optionMeanings.begin() + static_cast<ptrdiff_t>(before),
                               optionMeanings.end(), [&](const OptionMeaning &meaning) {
                                 return meaning.trial == best.meaning.trial &&
                                        meaning.library == best.meaning.library;
                               });
    if (isThere || std::any_of(thrifty.begin(), thrifty.end(), isBeaten))
      continue;
    cover.options.push_back(best.option);
    optionMeanings.push_back(best.meaning);
  }
}

/// Whether `other`, with conversions of all that differs, costs no more than `option` of the same
/// region.
bool Planner::State::dominates(const CoverOption &other, const CoverOption &option) const {
  double cost = other.cost;
  auto add = [&](const std::vector<LayoutState> &from, const std::vector<LayoutState> &to) {
    for (LayoutState a : from)
      for (LayoutState b : to)
        if (a.value == b.value && a.layout != b.layout)
          cost += guessConversion(a.value, a.layout, b.layout);
  };
  add(option.needs, other.needs);
  add(other.gives, option.gives);
  return std::make_pair(other.against, cost) < std::make_pair(option.against, option.cost);
}

/// From the measured conversion between the same layouts that is nearest in size; without one, on
/// the dear side, so that an answer does not live on conversions that turn out not to be cheap.
double Planner::State::guessConversion(uint32_t value, uint32_t from, uint32_t to) const {
  double bytes = bytesOfValue(value);
  if (layouts[from].memory != layouts[to].memory)
    return costs.ofTransfer(bytes) * (layouts[from].layout == layouts[to].layout ? 1 : 2);
  if (layouts[from].memory == DVT_MEMORY_DEVICE)
    return costs.description->launchMicros +
           2 * bytes / (costs.description->memoryGigabytesPerSecond * 1e3 * 0.5);
  auto rates = conversionRates.find({from, to});
  if (rates == conversionRates.end() || rates->second.empty()) {
    constexpr double kStepMicros = 3, kBytesPerMicro = 2e3;
    return kStepMicros + bytes / kBytesPerMicro;
  }
  auto above = rates->second.lower_bound(bytes);
  auto nearest = above == rates->second.end() ? std::prev(above) : above;
  return nearest->second * std::max(bytes / nearest->first, 0.25);
}

/// Adds what it takes to give a value another layout inside one memory; false where nobody can, or
/// it is not known.
bool Planner::State::addReorder(uint32_t value, uint32_t from, uint32_t to, dvt_memory_kind memory,
                                bool measuredOnly, ConversionMeaning &meaning, double &cost) {
  auto rank = [&](const Trial &trial) {
    auto [isReference, micros] = rankOf(trial, meaning.problem);
    return std::make_pair(isReference, micros + chargeOf(trial));
  };
  meaning.reorders = true;
  meaning.problem = conversionProblem(table.values[value], table.ranges, layouts[from].layout,
                                      layouts[to].layout);
  const Evaluation *known = evaluationsFor(memory).known(meaning.problem.text());
  if (!known) {
    // As if both were in that memory.
    cost += guessConversion(value, layoutNumber(layouts[from].layout, memory),
                            layoutNumber(layouts[to].layout, memory));
    return !measuredOnly;
  }
  for (const Trial &trial : known->trials)
    if (allowed(trial) && (!meaning.trial || rank(trial) < rank(*meaning.trial)))
      meaning.trial = &trial;
  meaning.evaluation = known;
  if (!meaning.trial)
    return false; // nobody converts these
  double micros = costOf(*meaning.trial, meaning.problem);
  conversionRates[{from, to}].emplace(bytesOfValue(value), micros);
  cost += micros;
  return true;
}

/// Between memories bytes are moved as they are; another layout is made on the processor, before or
/// after. False where it cannot be done.
bool Planner::State::describeConversion(uint32_t value, uint32_t from, uint32_t to,
                                        bool measuredOnly, ConversionMeaning &meaning,
                                        double &cost) {
  meaning.reorders = false;
  bool moves = layouts[from].memory != layouts[to].memory;
  if (moves) {
    meaning.transferMicros = cost = costs.ofTransfer(bytesOfValue(value));
    if (!fitsDevice(value) || !table.values[value].strides.empty())
      return false;
  }
  if (layouts[from].layout == layouts[to].layout)
    return moves;
  return addReorder(value, from, to, moves ? DVT_MEMORY_HOST : layouts[from].memory, measuredOnly,
                    meaning, cost);
}

void Planner::State::addConversions(bool measuredOnly) {
  std::map<uint32_t, std::set<uint32_t>> given, wanted;
  for (const CoverOption &option : cover.options) {
    for (LayoutState state : option.needs)
      wanted[state.value].insert(state.layout);
    for (LayoutState state : option.gives)
      given[state.value].insert(state.layout);
  }
  for (LayoutState state : cover.available)
    given[state.value].insert(state.layout);
  for (LayoutState state : cover.required)
    wanted[state.value].insert(state.layout);
  for (const auto &[value, targets] : wanted)
    for (uint32_t to : targets)
      for (uint32_t from : given[value]) {
        if (from == to)
          continue;
        ConversionMeaning meaning;
        double cost = 0;
        if (!describeConversion(value, from, to, measuredOnly, meaning, cost))
          continue;
        CoverConversion &added =
            cover.conversions.emplace_back(CoverConversion{value, from, to, std::max(cost, 0.01)});
        if (meaning.trial) {
          added.memory = memoryOf(*meaning.trial);
          added.charged = chargeOf(*meaning.trial);
          added.cost += added.charged;
        }
        conversionMeanings.push_back(std::move(meaning));
      }
}

/// Looks up the conversions that a solution uses, and measures, while there is budget, what it uses
/// and nobody measured yet; true when anything is known now that was not.
Expected<bool> Planner::State::learnOfChosen(const CoverSolution &solution) {
  constexpr double kMillis = 30;
  bool any = false;
  size_t done = 0;
  const size_t total = solution.conversions.size() + solution.options.size();
  auto learn = [&](const Problem &problem, const SymbolValues &values,
                   dvt_memory_kind memory) -> Status {
    std::string text = problem.text();
    if (!evaluationsFor(memory).known(text)) {
      any = true;
      announce("asking about what was chosen", done - 1, total, summary(problem));
      if (auto evaluation = evaluationsFor(memory).of(problem, values); !evaluation)
        return evaluation.takeError();
    }
    if (memory == DVT_MEMORY_DEVICE || options.select != Select::Measure ||
        !evaluations.lacksMeasuring(text) || !evaluations.budgetLeft())
      return Status::success();
    any = true;
    announce("measuring what was chosen", done - 1, total, summary(problem));
    return evaluations.measure(problem, values, kMillis);
  };
  for (uint32_t index : solution.conversions) {
    const ConversionMeaning &meaning = conversionMeanings[index];
    const CoverConversion &conversion = cover.conversions[index];
    ++done;
    if (meaning.reorders)
      if (Status status =
              learn(meaning.problem, representative,
                    meaning.transferMicros < 0 ? layouts[conversion.from].memory : DVT_MEMORY_HOST);
          !status)
        return status.takeError();
  }
  for (uint32_t index : solution.options) {
    const OptionMeaning &meaning = optionMeanings[index];
    bool late = meaning.kind == OptionMeaning::Kind::LateBound;
    ++done;
    if (meaning.kind != OptionMeaning::Kind::Kernel && !late)
      continue;
    const Problem &problem = problems[meaning.region].problem;
    if (Status status = learn(problem, representative, meaning.trial->candidate.memory); !status)
      return status.takeError();
    if (late)
      if (Status status = learn(problem.specialize(representative), {}, DVT_MEMORY_HOST); !status)
        return status.takeError();
  }
  return any;
}

/// Builds what was chosen on an estimate; true when something of it does not work, so that the
/// answer must be sought again without it.
Expected<bool> Planner::State::buildChosen(const CoverSolution &solution) {
  bool lost = false;
  size_t done = 0;
  const size_t total = solution.options.size() + solution.conversions.size();
  auto build = [&](const Problem &problem, const Trial *trial) {
    ++done;
    if (!trial || trial->built)
      return Status::success();
    announce("building what was chosen", done - 1, total, summary(problem));
    Status status = evaluationsFor(trial->candidate.memory).build(problem, *trial, representative);
    lost |= !trial->usable();
    return status;
  };
  for (uint32_t index : solution.options) {
    const OptionMeaning &meaning = optionMeanings[index];
    if (meaning.kind == OptionMeaning::Kind::Kernel ||
        meaning.kind == OptionMeaning::Kind::LateBound)
      if (Status status = build(problems[meaning.region].problem, meaning.trial); !status)
        return status.takeError();
  }
  for (uint32_t index : solution.conversions)
    if (Status status = build(conversionMeanings[index].problem, conversionMeanings[index].trial);
        !status)
      return status.takeError();
  return lost;
}

/// Names the first op that nothing on offer computes, with what its single candidates came to.
Error Planner::State::explainNoCover(Error error) const {
  std::set<uint32_t> given;
  for (const CoverOption &option : cover.options)
    for (LayoutState give : option.gives)
      given.insert(give.value);
  for (uint32_t region = 0; region < regions.size(); ++region) {
    if (regions[region].units.size() != 1 || regions[region].outputs.empty() ||
        given.count(regions[region].outputs.front()))
      continue;
    std::string reasons;
    if (const Evaluation *evaluation = regionEvaluations[region]) {
      // The reference computes what ONNX defines: what it calls wrong is the model's fault.
      for (const Trial &trial : evaluation->trials)
        if (trial.badInput && trial.candidate.provider == "reference")
          return badInput("node '{}': {}", nodeNames(table, regions[region]), trial.detail);
      for (const Trial &trial : evaluation->trials)
        reasons += fmt::format("; {}: {} {}", trial.candidate.label(), outcomeName(trial.outcome),
                               trial.detail);
      for (const auto &[provider, refusal] : evaluation->refusals)
        reasons += fmt::format("; {}: {}", provider, refusal.reason);
    }
    if (const Evaluation *evaluation = onDevice[region])
      for (const Trial &trial : evaluation->trials)
        reasons += fmt::format("; {}: {} {}", trial.candidate.label(), outcomeName(trial.outcome),
                               trial.detail);
    return unavailable("node '{}': no provider computes {}{}", nodeNames(table, regions[region]),
                       summary(problems[region].problem), reasons);
  }
  return error;
}

/// Other machines whose times stand behind the chosen kernels.
std::set<std::string> Planner::State::machinesOf(const CoverSolution &solution) const {
  std::set<std::string> machines;
  auto note = [&](const Trial *trial) {
    if (trial && !trial->measuredOn.empty())
      machines.insert(trial->measuredOn);
  };
  for (uint32_t index : solution.options)
    note(optionMeanings[index].trial);
  for (uint32_t index : solution.conversions)
    note(conversionMeanings[index].trial);
  return machines;
}

/// Adds the blocks of bodies to a plan of this one.
Status Planner::State::chooseBodies(Plan &plan, Prefer prefer) {
  std::vector<uint32_t> blocks; // of the table's bodies
  for (size_t i = 0; i < bodies.size(); ++i) {
    lendMemory(plan, i);
    auto inner = bodies[i]->choose(prefer);
    if (!inner)
      return inner.takeError();
    blocks.push_back(appendBlocks(plan, std::move(*inner)));
  }
  for (PlanStep &step : plan.blocks[0].steps)
    for (uint32_t &body : step.bodies)
      body = blocks[body];
  return Status::success();
}

/// Makes options and conversions of all that is known.
void Planner::State::formCover(Prefer prefer, bool measuredOnly) {
  cover = {};
  optionMeanings.clear();
  conversionMeanings.clear();
  codeNumbers.clear();
  for (uint32_t value : table.inputs)
    cover.available.push_back({value, 0});
  for (uint32_t value : table.outputs)
    if (!table.values[value].constant)
      cover.required.push_back({value, 0});
  for (uint32_t region = 0; region < regions.size(); ++region)
    addKernelOptions(region, prefer);
  std::optional<uint32_t> deviceRowMajor;
  if (deviceEvaluations)
    deviceRowMajor = layoutNumber("", DVT_MEMORY_DEVICE);
  addFreeOptions(table, deviceRowMajor, cover.options, optionMeanings);
  addConversions(measuredOnly);
  cover.ranks = ranksOf(table);
}

/// Measures what the cheapest answer would consist of if all that nobody timed were about as fast
/// as it could be, and seeks it again, until all of it is known: what is left then is seldom in a
/// plan.
Status Planner::State::measurePromising(const Jobs &jobs, const std::vector<double> &millisOf,
                                        const Report &report) {
  constexpr int kMostRounds = 16;
  constexpr double kShare = 0.8; // of the budget
  CoverLimits limits = kLimits;
  limits.maxStates = kQuickStates;
  limits.relaxedStates = kQuickRelaxedStates;
  isHopeful = true;
  Status status = Status::success();
  for (int round = 0; round < kMostRounds && status && evaluations.budgetLeft(kShare); ++round) {
    formCover(Prefer::Cost, false);
    auto solution = solveCover(cover, limits);
    if (!solution) // choose() says why
      break;
    std::set<std::pair<double, size_t>> wanted; // dearest first
    for (uint32_t index : solution->options) {
      const OptionMeaning &meaning = optionMeanings[index];
      if (meaning.kind != OptionMeaning::Kind::Kernel &&
          meaning.kind != OptionMeaning::Kind::LateBound)
        continue;
      Problem problem = problems[meaning.region].problem;
      if (meaning.kind == OptionMeaning::Kind::LateBound)
        problem = problem.specialize(representative);
      auto found = jobs.byText.find(problem.text());
      if (found != jobs.byText.end() && evaluations.lacksMeasuring(found->first))
        wanted.insert({-millisOf[found->second], found->second});
    }
    if (wanted.empty())
      break;
    size_t done = 0;
    for (auto [order, number] : wanted) {
      if (!evaluations.budgetLeft(kShare))
        break;
      const PosedProblem &job = jobs.list[number];
      report("measuring what promises most", done++, wanted.size(), job.problem);
      status = evaluations.measure(job.problem, job.representative, millisOf[number]);
      if (!status)
        break;
    }
  }
  isHopeful = false;
  return status;
}

Expected<Plan> Planner::State::choose(Prefer prefer) {
  libraryCovers.assign(table.ops.size(), false);
  nativeCovers.assign(table.ops.size(), false);
  for (size_t region = 0; region < regions.size(); ++region)
    for (const Evaluation *evaluation :
         {regionEvaluations[region], lateEvaluations[region], onDevice[region]})
      for (const Trial &trial : evaluation ? evaluation->trials : std::vector<Trial>{})
        if (allowed(trial))
          for (uint32_t op : regions[region].ops) {
            libraryCovers[op] = libraryCovers[op] || isLibrary(trial.candidate.provider);
            nativeCovers[op] = nativeCovers[op] || trial.candidate.provider == "native";
          }
  CoverSolution solution;
  // Conversions are estimated until some answer wants them, and so is what the budget did not
  // reach; then they are measured, or at least built, and the answer is sought again.
  constexpr int kMostRounds = 12;
  bool thorough = false;
  for (int round = 0;; ++round) {
    const bool isLast = round >= kMostRounds; // nothing is learned any more; kernels may be lost
    announce("choosing", 0, 0,
             prefer == Prefer::Cost      ? "the cheapest kernels"
             : prefer == Prefer::Library ? "libraries first"
                                         : "own kernels first");
    formCover(prefer, isLast);
    if (isLast)
      boundHints[prefer].isKnown = false;
    auto from = std::chrono::steady_clock::now();
    CoverLimits limits = kLimits;
    if (!thorough) {
      limits.maxStates = kQuickStates;
      limits.relaxedStates = kQuickRelaxedStates;
    }
    auto solved = solve(limits, prefer);
    if (!solved) {
      // A forced kernel may have turned out not to work since it was on offer.
      if (Status forced = checkForcedKernels(); !forced)
        return forced.takeError();
      return explainNoCover(solved.takeError());
    }
    options.log(LogLevel::Debug,
                "cover: {} options, {} conversions: {} against, cost {:.1f} us, bound {:.1f} us, "
                "{:.2f} s",
                cover.options.size(), cover.conversions.size(), solved->against, solved->cost,
                solved->bound,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
    solution = std::move(*solved);
    if (!isLast) {
      auto learned = learnOfChosen(solution);
      if (!learned)
        return learned.takeError();
      if (*learned)
        continue;
      if (mayBeThorough && !solution.exact && solution.bound > 0 && !thorough && !weighsMemory()) {
        thorough = true;
        continue;
      }
      // What was sought before shall not show in the plan: the same trials give the same one.
      if (isNearHint && !endsNearHint) {
        boundHints[prefer].isKnown = false;
        continue;
      }
    }
    auto lost = buildChosen(solution);
    if (!lost)
      return lost.takeError();
    if (!*lost)
      break;
  }
  if (deviceEvaluations)
    if (Status status = buildRivals(solution); !status)
      return status.takeError();
  ChosenCover chosen{&table,          &regions,
                     &problems,       &regionEvaluations,
                     &onDevice,       &cover,
                     &optionMeanings, &conversionMeanings,
                     &layouts,        &solution,
                     providers,       weighsMemory(),
                     &costs,          options.preparation,
                     &equalProblems};
  auto plan = assemblePlan(chosen);
  if (plan)
    if (Status status = chooseBodies(*plan, prefer); !status)
      return status.takeError();
  if (plan) {
    for (const auto &[symbol, size] : representative)
      plan->typicalSizes.emplace(symbol, size);
    countProblems();
    plan->problemsTimed = static_cast<uint32_t>(statistics.timed);
    plan->problemsFromCache = static_cast<uint32_t>(statistics.fromCache);
    plan->problemsEstimated = static_cast<uint32_t>(statistics.estimated);
    plan->planningSeconds = statistics.seconds;
    // Estimates know nothing of preparing.
    plan->runsPerLoad = options.select == Select::Estimate ? 0 : options.preparation.runs;
    plan->selection = options.select == Select::Measure    ? "measure"
                      : options.select == Select::Estimate ? "estimate"
                                                           : "replay";
    if (prefer != Prefer::Cost)
      plan->selection += prefer == Prefer::Library ? ", library first" : ", native first";
    for (const std::string &machine : machinesOf(solution))
      plan->selection += ", with times of " + machine;
  }
  return plan;
}

} // namespace dovetail::plan
