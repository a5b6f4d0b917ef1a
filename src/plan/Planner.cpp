// SPDX-License-Identifier: Apache-2.0
//
// Regions, their trials, the cover of the model, and the plan that comes of it.
#include "plan/Planner.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/ranges.h>

#include "plan/Assembly.h"
#include "plan/Blocks.h"
#include "plan/Cover.h"
#include "plan/Evaluations.h"
#include "plan/ExtentSources.h"
#include "plan/FreeOptions.h"
#include "plan/InPlace.h"
#include "plan/MeasuringOrder.h"
#include "plan/StepTimes.h"
#include "plan/StridedViews.h"

namespace dovetail::plan {
namespace {

// Weights of CoverOption::against for each op: of a choice against the preference, and of one that
// nobody would make who has another.
constexpr uint32_t kAgainstPreference = 16, kLastResort = 1;

bool isLibrary(const std::string &provider) {
  return provider != "native" && provider != "reference";
}

/// Values at which symbolic problems are timed: modest sizes inside their ranges.
SymbolValues representativeValues(const SymbolRanges &ranges) {
  SymbolValues values;
  for (const auto &[symbol, range] : ranges) {
    int64_t value = std::clamp<int64_t>(64, range.min, range.max);
    value = value / range.divisor * range.divisor;
    values[symbol] = std::max(value, std::max<int64_t>(range.min, range.divisor));
  }
  return values;
}

uint64_t constantBytes(const OpTable &table) {
  uint64_t bytes = 0;
  for (const TableValue &value : table.values)
    if (value.constant)
      bytes += value.dataBytes;
  return bytes;
}

} // namespace

/// The model, or a body of control flow: all that is planned as one.
struct Planner::State {
  OpTable table; ///< as given, and with strided views
  Target target;
  std::map<std::string, std::string> providers;
  PlannerOptions options;
  Statistics statistics;
  SymbolValues representative;
  std::unique_ptr<Evaluations> ownEvaluations; ///< the model's; bodies use them, too
  Evaluations &evaluations;
  std::vector<std::unique_ptr<State>> bodies; ///< of the table
  std::vector<Region> regions;
  std::vector<RegionProblem> problems;
  uint32_t firstApart = 0; ///< region; from here on the same ones again, not in place
  std::vector<const Evaluation *> regionEvaluations, lateEvaluations;
  std::map<std::string, uint32_t> layoutNumbers{{"", 0}};
  std::vector<std::string> layouts{""};
  StepTimes stepTimes;

  State(const OpTable &table, Target target, std::map<std::string, std::string> providers,
        PlanCache &cache, PlannerOptions given)
      : table(table), target(target), providers(providers), options(std::move(given)),
        representative(representativeValues(table.ranges)),
        ownEvaluations(
            std::make_unique<Evaluations>(target, this->providers, cache, options, footprint())),
        evaluations(*ownEvaluations) {
    addBodies();
  }
  State(const OpTable &table, const State &outer)
      : table(table), target(outer.target), providers(outer.providers), options(outer.options),
        representative(outer.representative), evaluations(outer.evaluations) {
    addBodies();
  }

  void addBodies() {
    for (const OpTable &body : table.bodies)
      bodies.push_back(std::make_unique<State>(body, *this));
  }
  /// This one and all inside it.
  void collect(std::vector<State *> &all) {
    all.push_back(this);
    for (const auto &body : bodies)
      body->collect(all);
  }

  uint64_t footprint() const {
    uint64_t activations = 0;
    for (const TableValue &value : table.values)
      if (!value.constant)
        if (auto count = elementCount(value.extents).evaluate(representativeValues(table.ranges)))
          activations = std::max(activations, bytesOf(value.type, *count));
    return constantBytes(table) + 2 * activations;
  }

  uint32_t layoutNumber(const std::string &text) {
    auto [found, isNew] = layoutNumbers.try_emplace(text, static_cast<uint32_t>(layouts.size()));
    if (isNew)
      layouts.push_back(text);
    return found->second;
  }

  /// A problem to be measured, and what is at stake with it.
  struct Job {
    Problem problem;
    SymbolValues representative;
  };
  struct Jobs {
    std::vector<Job> list;
    std::vector<ProblemShare> shares;
    std::map<std::string, size_t> byText;
  };
  using Report = std::function<void(size_t done, size_t total, const Problem &problem)>;
  Status evaluate();
  Status propose(Jobs &jobs, const Report &report);
  Status measure(const Jobs &jobs, const Report &report);
  Status formProblems();
  Expected<bool> isServed(const Problem &problem);
  Expected<bool> costsOffers(const Problem &problem, const Problem &restricted);
  bool hasNode(const std::string &name) const;
  Status checkForced() const;
  double costOf(const Trial &trial, const Problem &problem) const;
  /// Estimates of extents known only at run time do not compare: the reference comes last.
  std::pair<bool, double> rankOf(const Trial &trial, const Problem &problem) const {
    return {trial.candidate.provider == "reference", costOf(trial, problem)};
  }
  Status checkForcedKernels() const;
  const std::string &nodeOf(Unit unit) const {
    return unit.composite ? table.composites[unit.index].node : table.ops[unit.index].node;
  }
  bool allowed(const Trial &trial) const;
  bool allowedByForce(uint32_t region, const Trial &trial) const;
  void addKernelOptions(uint32_t region, Prefer prefer);
  void addConversions(bool measuredOnly);
  double guessConversion(uint32_t value, uint32_t from, uint32_t to) const;
  bool dominates(const CoverOption &other, const CoverOption &option) const;
  double bytesOfValue(uint32_t value) const {
    auto count = elementCount(table.values[value].extents).evaluate(representative);
    return static_cast<double>(bytesOf(table.values[value].type, count.value_or(1)));
  }
  void countProblems();
  Expected<bool> learnOfChosen(const CoverSolution &solution);
  Expected<bool> buildChosen(const CoverSolution &solution);
  Error explainNoCover(Error error) const;
  Expected<Plan> choose(Prefer prefer);

  // The cover being built by choose().
  CoverProblem cover;
  std::vector<OptionMeaning> optionMeanings;
  std::vector<ConversionMeaning> conversionMeanings;
  std::vector<bool> libraryCovers, nativeCovers; // per op
  /// Measured conversions by their two layouts: bytes -> micros.
  std::map<std::pair<uint32_t, uint32_t>, std::map<double, double>> conversionRates;
};

Planner::Planner(const OpTable &table, Target target, std::map<std::string, std::string> providers,
                 PlanCache &cache, PlannerOptions options)
    : state(std::make_unique<State>(table, std::move(target), std::move(providers), cache,
                                    std::move(options))) {}
Planner::~Planner() = default;
const Planner::Statistics &Planner::statistics() const { return state->statistics; }
Status Planner::evaluate() { return state->evaluate(); }
Expected<Plan> Planner::choose(Prefer prefer) { return state->choose(prefer); }

void Planner::observe(const Plan &plan, const std::vector<double> &stepMicros) {
  const std::vector<PlanStep> &steps = plan.blocks.front().steps;
  for (size_t i = 0; i < std::min(steps.size(), stepMicros.size()); ++i) {
    const PlanStep &step = steps[i];
    if (step.kind != StepKind::Kernel)
      continue;
    double alone = step.report < plan.reports.size() ? plan.reports[step.report].micros : -1;
    state->stepTimes.add(plan.problems[step.problem], step.choice.candidate, stepMicros[i], alone);
  }
}

double Planner::State::costOf(const Trial &trial, const Problem &problem) const {
  double alone = plan::costOf(trial, problem, target, representative);
  return stepTimes.empty() ? alone : stepTimes.of(problem.text(), trial.candidate, alone);
}

/// Whether the table, or a body in it, has a node of that name.
bool Planner::State::hasNode(const std::string &name) const {
  return std::any_of(table.ops.begin(), table.ops.end(),
                     [&](const TableOp &op) { return op.node == name; }) ||
         std::any_of(table.composites.begin(), table.composites.end(),
                     [&](const TableComposite &c) { return c.node == name; }) ||
         std::any_of(bodies.begin(), bodies.end(),
                     [&](const auto &body) { return body->hasNode(name); });
}

Status Planner::State::checkForced() const {
  for (const ForcedChoice &forced : options.force) {
    if (!hasNode(forced.node))
      return badInput("--force names the node '{}', which the optimised graph does not have; "
                      "'explain' lists the nodes",
                      forced.node);
  }
  return Status::success();
}

/// Whether something is on offer for `problem` and not for `restricted`.
Expected<bool> Planner::State::costsOffers(const Problem &problem, const Problem &restricted) {
  auto all = evaluations.offered(problem);
  if (!all)
    return all.takeError();
  auto some = evaluations.offered(restricted);
  if (!some)
    return some.takeError();
  return !std::includes(some->begin(), some->end(), all->begin(), all->end());
}

/// Whether anything but the reference is on offer for the problem.
Expected<bool> Planner::State::isServed(const Problem &problem) {
  auto all = evaluations.offered(problem);
  if (!all)
    return all.takeError();
  return std::any_of(all->begin(), all->end(),
                     [](const std::string &label) { return !label.starts_with("reference:"); });
}

/// Regions and their problems. Where a problem lets a kernel work in place and that costs some
/// offers, the region comes a second time, at the end, with the problem that does not. There it
/// also comes over strided operands, where a kernel takes them.
Status Planner::State::formProblems() {
  regions = formRegions(table);
  std::vector<uint32_t> views = addStridedViews(table);
  std::vector<std::pair<Region, RegionProblem>> apart;
  for (const Region &region : regions) {
    RegionProblem problem = makeProblem(table, region);
    if (auto strided = overStridedViews(table, problem, views)) {
      RegionProblem both = *strided;
      auto served = allowInPlace(table, region, both) ? isServed(both.problem) : false;
      if (served && *served)
        strided = std::move(both);
      else if (served)
        served = isServed(strided->problem);
      if (!served)
        return served.takeError();
      if (*served)
        apart.emplace_back(region, std::move(*strided));
    }
    RegionProblem inPlace = problem;
    if (allowInPlace(table, region, inPlace)) {
      auto costs = costsOffers(problem.problem, inPlace.problem);
      if (costs && !*costs && problem.problem.hasSymbols())
        costs = costsOffers(problem.problem.specialize(representative),
                            inPlace.problem.specialize(representative));
      if (!costs)
        return costs.takeError();
      if (*costs)
        apart.emplace_back(region, std::move(problem));
      problem = std::move(inPlace);
    }
    problems.push_back(std::move(problem));
  }
  firstApart = static_cast<uint32_t>(regions.size());
  for (auto &[region, problem] : apart) {
    regions.push_back(std::move(region));
    problems.push_back(std::move(problem));
  }
  return Status::success();
}

Status Planner::State::evaluate() {
  auto start = std::chrono::steady_clock::now();
  if (Status forced = checkForced(); !forced)
    return forced;
  auto lastReport = start;
  auto report = [&](size_t done, size_t total, const Problem &problem) {
    auto now = std::chrono::steady_clock::now();
    if (!options.progress || now - lastReport < std::chrono::milliseconds(100))
      return;
    lastReport = now;
    options.progress(done, total, summary(problem));
  };
  // Everything is proposed first: with that a plan exists, and it is known what is at stake where.
  Jobs jobs;
  std::vector<State *> all;
  collect(all);
  for (State *part : all) {
    if (Status status = part->propose(jobs, report); !status)
      return status;
    statistics.regions += part->regions.size();
    if (part != this)
      statistics.candidates += part->statistics.candidates;
  }
  if (options.select == Select::Measure)
    if (Status status = measure(jobs, report); !status)
      return status;
  statistics.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  countProblems();
  options.log(LogLevel::Debug,
              "{} regions; {} problems timed, {} from the cache, {} by estimates; {:.1f} s",
              statistics.regions, statistics.timed, statistics.fromCache, statistics.estimated,
              statistics.seconds);
  for (State *part : all)
    if (Status status = part->checkForcedKernels(); !status)
      return status;
  return Status::success();
}

/// Forms the regions and asks the providers for what they offer.
Status Planner::State::propose(Jobs &jobs, const Report &report) {
  if (Status formed = formProblems(); !formed)
    return formed;
  regionEvaluations.assign(regions.size(), nullptr);
  lateEvaluations.assign(regions.size(), nullptr);
  auto ask = [&](const Problem &problem, const SymbolValues &values,
                 bool single) -> Expected<const Evaluation *> {
    auto evaluation = evaluations.of(problem, values);
    if (!evaluation)
      return evaluation;
    auto [job, isNew] = jobs.byText.try_emplace(problem.text(), jobs.list.size());
    if (!isNew) {
      ++jobs.shares[job->second].occurrences;
      return evaluation;
    }
    double micros = -1;
    for (const Trial &trial : (*evaluation)->trials)
      if (trial.usable())
        if (double cost = plan::costOf(trial, problem, target, values); micros < 0 || cost < micros)
          micros = cost;
    jobs.list.push_back({problem, values});
    jobs.shares.push_back({std::max(micros, 0.0), 1, single});
    statistics.candidates += (*evaluation)->trials.size();
    return evaluation;
  };
  for (uint32_t region = 0; region < regions.size(); ++region) {
    const Problem &problem = problems[region].problem;
    bool single = regions[region].units.size() == 1;
    report(region, regions.size(), problem);
    auto evaluation = ask(problem, representative, single);
    if (!evaluation)
      return evaluation.takeError();
    regionEvaluations[region] = *evaluation;
    if (Problem specialised = problem.specialize(representative);
        problem.hasSymbols() && !specialised.hasSymbols()) {
      auto late = ask(specialised, {}, single);
      if (!late)
        return late.takeError();
      lateEvaluations[region] = *late;
    }
  }
  return Status::success();
}

Status Planner::State::measure(const Jobs &jobs, const Report &report) {
  // A part of the budget is kept for what the chosen plan turns out to need.
  constexpr double kShareForAll = 0.85;
  std::vector<MeasuringTurn> turns = measuringOrder(jobs.shares);
  for (size_t i = 0; i < turns.size(); ++i) {
    const Job &job = jobs.list[turns[i].problem];
    if (!evaluations.lacksMeasuring(job.problem.text()))
      continue;
    if (!evaluations.budgetLeft(kShareForAll)) {
      statistics.complete = false;
      break;
    }
    report(i, turns.size(), job.problem);
    if (Status status = evaluations.measure(job.problem, job.representative, turns[i].budgetMillis);
        !status)
      return status;
  }
  return Status::success();
}

/// Every forced kernel is on offer for its node, alone or in a fused region, and was not found
/// unusable.
Status Planner::State::checkForcedKernels() const {
  auto isHere = [&](const std::string &node) {
    return std::any_of(regions.begin(), regions.end(), [&](const Region &region) {
      return std::any_of(region.units.begin(), region.units.end(),
                         [&](Unit unit) { return nodeOf(unit) == node; });
    });
  };
  for (const ForcedChoice &forced : options.force) {
    if (!bodies.empty() || !ownEvaluations)
      if (!isHere(forced.node))
        continue; // but in another body
    std::set<std::string> offered;
    std::string failure;
    bool usable = false;
    for (uint32_t region = 0; region < regions.size(); ++region) {
      const auto &units = regions[region].units;
      if (std::none_of(units.begin(), units.end(),
                       [&](Unit unit) { return nodeOf(unit) == forced.node; }))
        continue;
      for (const Evaluation *evaluation : {regionEvaluations[region], lateEvaluations[region]})
        for (const Trial &trial : evaluation ? evaluation->trials : std::vector<Trial>{}) {
          std::string name = trial.candidate.provider + ":" + trial.candidate.algorithm;
          offered.insert(name);
          usable |= name == forced.algorithm && allowed(trial);
          if (name == forced.algorithm && !allowed(trial))
            failure = fmt::format("{} {}", outcomeName(trial.outcome), trial.detail);
        }
    }
    if (!offered.count(forced.algorithm))
      return badInput("--force {}={}: no such kernel is on offer for this node; on offer are {}",
                      forced.node, forced.algorithm,
                      offered.empty() ? "none" : fmt::format("{}", fmt::join(offered, ", ")));
    if (!usable)
      return unavailable("--force {}={}: this kernel cannot be used: {}", forced.node,
                         forced.algorithm, failure);
  }
  return Status::success();
}

void Planner::State::countProblems() {
  Evaluations::Counts counts = evaluations.counts();
  statistics.timed = counts.timed;
  statistics.fromCache = counts.fromCache;
  statistics.estimated = counts.estimated;
  statistics.failures = counts.failures;
  statistics.problems = counts.timed + counts.fromCache + counts.estimated;
}

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
  const RegionProblem &problem = problems[region];
  bool anyTimed = std::any_of(evaluation->trials.begin(), evaluation->trials.end(),
                              [](const Trial &trial) { return trial.micros >= 0; });
  struct Best {
    CoverOption option;
    OptionMeaning meaning;
  };
  std::map<std::pair<std::vector<LayoutState>, std::vector<LayoutState>>, Best> bestOf;
  auto offer = [&](const Trial &shown, OptionMeaning meaning) {
    Best best;
    best.meaning = meaning;
    best.option.cost = costOf(shown, problem.problem);
    const Candidate &candidate = shown.candidate;
    bool library = isLibrary(candidate.provider);
    // Beside measured times an estimate is taken with caution.
    if (shown.micros < 0 && options.select != Select::Estimate)
      best.option.cost *= 3;
    if (region >= firstApart)
      best.option.cost *= 1.02; // within what times vary by, less memory decides
    if (candidate.provider == "reference" || (shown.micros < 0 && anyTimed))
      best.option.against += kLastResort * static_cast<uint32_t>(regions[region].ops.size());
    for (uint32_t op : regions[region].ops) {
      if (prefer == Prefer::Library && !library && libraryCovers[op])
        best.option.against += kAgainstPreference;
      if (prefer == Prefer::Native && candidate.provider != "native" && nativeCovers[op])
        best.option.against += kAgainstPreference;
    }
    for (size_t i = 0; i < problem.operands.size(); ++i)
      if (!table.values[problem.operands[i]].constant)
        best.option.needs.push_back({problem.operands[i], layoutNumber(candidate.inputLayouts[i])});
    for (size_t i = 0; i < problem.results.size(); ++i)
      best.option.gives.push_back({problem.results[i], layoutNumber(candidate.outputLayouts[i])});
    std::sort(best.option.needs.begin(), best.option.needs.end());
    best.option.needs.erase(std::unique(best.option.needs.begin(), best.option.needs.end()),
                            best.option.needs.end());
    // One value cannot be taken in two layouts at no cost by one kernel; each needed state counts.
    auto key = std::make_pair(best.option.needs, best.option.gives);
    auto [found, isNew] = bestOf.try_emplace(key, best);
    auto weight = [](const Best &best) {
      return std::make_pair(best.option.against, best.option.cost);
    };
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
  if (symbolic && runtimeKernel && lateEvaluations[region] && !statesExtents) {
    for (const Trial &trial : lateEvaluations[region]->trials) {
      bool rowMajor =
          std::all_of(trial.candidate.inputLayouts.begin(), trial.candidate.inputLayouts.end(),
                      [](const std::string &text) { return text.empty(); }) &&
          std::all_of(trial.candidate.outputLayouts.begin(), trial.candidate.outputLayouts.end(),
                      [](const std::string &text) { return text.empty(); });
      if (!allowed(trial) || !isLibrary(trial.candidate.provider) || !rowMajor)
        continue;
      offer(trial, {OptionMeaning::Kind::LateBound, region, runtimeKernel, &trial, 0, 0});
    }
  }
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
  auto rates = conversionRates.find({from, to});
  if (rates == conversionRates.end() || rates->second.empty()) {
    constexpr double kStepMicros = 3, kBytesPerMicro = 2e3;
    return kStepMicros + bytes / kBytesPerMicro;
  }
  auto above = rates->second.lower_bound(bytes);
  auto nearest = above == rates->second.end() ? std::prev(above) : above;
  return nearest->second * std::max(bytes / nearest->first, 0.25);
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
        meaning.problem =
            conversionProblem(table.values[value], table.ranges, layouts[from], layouts[to]);
        double cost;
        if (const Evaluation *known = evaluations.known(meaning.problem.text())) {
          for (const Trial &trial : known->trials)
            if (allowed(trial) && (!meaning.trial || rankOf(trial, meaning.problem) <
                                                         rankOf(*meaning.trial, meaning.problem)))
              meaning.trial = &trial;
          meaning.evaluation = known;
          if (!meaning.trial)
            continue; // nobody converts these
          cost = costOf(*meaning.trial, meaning.problem);
          conversionRates[{from, to}].emplace(bytesOfValue(value), cost);
        } else if (measuredOnly) {
          continue;
        } else {
          cost = guessConversion(value, from, to);
        }
        cover.conversions.push_back({value, from, to, std::max(cost, 0.01)});
        conversionMeanings.push_back(std::move(meaning));
      }
}

/// Looks up the conversions that a solution uses, and measures, while there is budget, what it uses
/// and nobody measured yet; true when anything is known now that was not.
Expected<bool> Planner::State::learnOfChosen(const CoverSolution &solution) {
  constexpr double kMillis = 30;
  bool any = false;
  auto learn = [&](const Problem &problem, const SymbolValues &values) -> Status {
    std::string text = problem.text();
    if (!evaluations.known(text)) {
      any = true;
      if (auto evaluation = evaluations.of(problem, values); !evaluation)
        return evaluation.takeError();
    }
    if (options.select != Select::Measure || !evaluations.lacksMeasuring(text) ||
        !evaluations.budgetLeft())
      return Status::success();
    any = true;
    return evaluations.measure(problem, values, kMillis);
  };
  for (uint32_t index : solution.conversions)
    if (Status status = learn(conversionMeanings[index].problem, representative); !status)
      return status.takeError();
  for (uint32_t index : solution.options) {
    const OptionMeaning &meaning = optionMeanings[index];
    bool late = meaning.kind == OptionMeaning::Kind::LateBound;
    if (meaning.kind != OptionMeaning::Kind::Kernel && !late)
      continue;
    const Problem &problem = problems[meaning.region].problem;
    if (Status status = learn(problem, representative); !status)
      return status.takeError();
    if (late)
      if (Status status = learn(problem.specialize(representative), {}); !status)
        return status.takeError();
  }
  return any;
}

/// Builds what was chosen on an estimate; true when something of it does not work, so that the
/// answer must be sought again without it.
Expected<bool> Planner::State::buildChosen(const CoverSolution &solution) {
  bool lost = false;
  auto build = [&](const Problem &problem, const Trial *trial) {
    if (!trial || trial->built)
      return Status::success();
    Status status = evaluations.build(problem, *trial, representative);
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
      for (const Trial &trial : evaluation->trials)
        reasons += fmt::format("; {}: {} {}", trial.candidate.label(), outcomeName(trial.outcome),
                               trial.detail);
      for (const auto &[provider, refusal] : evaluation->refusals)
        reasons += fmt::format("; {}: {}", provider, refusal.reason);
    }
    return unavailable("node '{}': no provider computes {}{}", nodeNames(table, regions[region]),
                       summary(problems[region].problem), reasons);
  }
  return error;
}

Expected<Plan> Planner::State::choose(Prefer prefer) {
  libraryCovers.assign(table.ops.size(), false);
  nativeCovers.assign(table.ops.size(), false);
  for (size_t region = 0; region < regions.size(); ++region)
    for (const Evaluation *evaluation : {regionEvaluations[region], lateEvaluations[region]})
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
  // They find the best answer nearly always, if without proof.
  constexpr size_t kQuickStates = 1024, kQuickRelaxedStates = 200;
  bool thorough = false;
  for (int round = 0; round <= kMostRounds; ++round) {
    cover = {};
    optionMeanings.clear();
    conversionMeanings.clear();
    for (uint32_t value : table.inputs)
      cover.available.push_back({value, 0});
    for (uint32_t value : table.outputs)
      if (!table.values[value].constant)
        cover.required.push_back({value, 0});
    for (uint32_t region = 0; region < regions.size(); ++region)
      addKernelOptions(region, prefer);
    addFreeOptions(table, cover.options, optionMeanings);
    addConversions(round == kMostRounds);
    cover.ranks = ranksOf(table);
    auto from = std::chrono::steady_clock::now();
    // Times are measured to a few per cent; proving more than that would be for show. Where the
    // frontier has an answer, if not a proven one, the solver would take minutes to better it.
    CoverLimits limits{.maxNodes = 1, .relativeGap = 0.002, .beyondFrontier = false};
    if (!thorough) {
      limits.maxStates = kQuickStates;
      limits.relaxedStates = kQuickRelaxedStates;
    }
    auto solved = solveCover(cover, limits);
    if (!solved)
      return explainNoCover(solved.takeError());
    options.log(LogLevel::Debug,
                "cover: {} options, {} conversions: {} against, cost {:.1f} us, bound {:.1f} us, "
                "{:.2f} s",
                cover.options.size(), cover.conversions.size(), solved->against, solved->cost,
                solved->bound,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
    solution = std::move(*solved);
    if (round < kMostRounds) {
      auto learned = learnOfChosen(solution);
      if (!learned)
        return learned.takeError();
      if (*learned)
        continue;
      if (!solution.exact && solution.bound > 0 && !thorough) {
        thorough = true;
        continue;
      }
    }
    auto lost = buildChosen(solution);
    if (!lost)
      return lost.takeError();
    if (!*lost)
      break;
  }
  ChosenCover chosen{&table,    &regions,        &problems,           &regionEvaluations,
                     &cover,    &optionMeanings, &conversionMeanings, &layouts,
                     &solution, providers};
  auto plan = assemblePlan(chosen, target);
  std::vector<uint32_t> blocks; // of the table's bodies
  for (const auto &body : bodies) {
    if (!plan)
      break;
    auto inner = body->choose(prefer);
    if (!inner)
      return inner;
    blocks.push_back(appendBlocks(*plan, std::move(*inner)));
  }
  if (plan)
    for (PlanStep &step : plan->blocks[0].steps)
      for (uint32_t &body : step.bodies)
        body = blocks[body];
  if (plan) {
    countProblems();
    plan->problemsTimed = static_cast<uint32_t>(statistics.timed);
    plan->problemsFromCache = static_cast<uint32_t>(statistics.fromCache);
    plan->problemsEstimated = static_cast<uint32_t>(statistics.estimated);
    plan->planningSeconds = statistics.seconds;
    plan->selection = options.select == Select::Measure    ? "measure"
                      : options.select == Select::Estimate ? "estimate"
                                                           : "replay";
    if (prefer != Prefer::Cost)
      plan->selection += prefer == Prefer::Library ? ", library first" : ", native first";
  }
  return plan;
}

} // namespace dovetail::plan
