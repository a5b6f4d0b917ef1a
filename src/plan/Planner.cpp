// SPDX-License-Identifier: Apache-2.0
//
// Evaluation: regions, their problems, and trials of all that is on offer for them.
#include "plan/PlannerState.h"

#include <algorithm>
#include <string_view>

#include "plan/InPlace.h"
#include "plan/StridedViews.h"

namespace dovetail::plan {

uint64_t constantBytes(const OpTable &table) {
  uint64_t bytes = 0;
  for (const TableValue &value : table.values)
    if (value.constant)
      bytes += value.dataBytes;
  return bytes;
}

Planner::Planner(const OpTable &table, Target target, std::map<std::string, std::string> providers,
                 PlanCache &cache, PlannerOptions options)
    : state(std::make_unique<State>(table, std::move(target), std::move(providers), cache,
                                    std::move(options))) {}
Planner::~Planner() = default;
const Planner::Statistics &Planner::statistics() const { return state->statistics; }
Expected<std::vector<PosedProblem>> Planner::problems() { return state->posedProblems(); }
Status Planner::evaluate() { return state->evaluate(); }
Expected<Plan> Planner::choose(Prefer prefer) { return state->chooseWithinBound(prefer); }

uint64_t Planner::footprintBytes() const { return state->footprint(); }

std::vector<PosedProblem> Planner::asked() const {
  const Evaluations &from =
      state->deviceEvaluations ? *state->deviceEvaluations : state->evaluations;
  std::vector<std::pair<double, PosedProblem>> all;
  for (auto &[posed, evaluation] : from.posed()) {
    double least = 0;
    for (const Trial &trial : evaluation->trials)
      if (trial.usable() && trial.candidate.provider != "reference")
        if (double micros = state->costs.of(trial, posed.problem, posed.representative);
            least == 0 || micros < least)
          least = micros;
    all.emplace_back(least, std::move(posed));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto &a, const auto &b) { return a.first > b.first; });
  std::vector<PosedProblem> problems;
  for (auto &[micros, posed] : all)
    problems.push_back(std::move(posed));
  return problems;
}

std::vector<Trial> Planner::failed(const std::string &provider) const {
  std::vector<Trial> found;
  const Evaluations &from =
      state->deviceEvaluations ? *state->deviceEvaluations : state->evaluations;
  for (const auto &[posed, evaluation] : from.posed())
    std::copy_if(evaluation->trials.begin(), evaluation->trials.end(), std::back_inserter(found),
                 [&](const Trial &trial) {
                   return trial.candidate.provider == provider && !trial.usable();
                 });
  return found;
}

bool Planner::State::fitsDevice(uint32_t value) const {
  auto isGiven = [&](const Extent &extent) {
    std::vector<std::string> symbols = extent.symbols();
    return extent.isStatic() ||
           (!extent.isOverflow() &&
            std::all_of(symbols.begin(), symbols.end(),
                        [&](const std::string &symbol) { return inputSymbols.contains(symbol); }));
  };
  const TableValue &v = table.values[value];
  return !v.absent && !v.dataDependent && typeBits(v.type) > 0 &&
         std::all_of(v.extents.begin(), v.extents.end(), isGiven);
}

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
  double alone = costs.of(trial, problem, representative);
  return stepTimes.empty() ? alone : stepTimes.of(problem.text(), trial.candidate, alone);
}

/// Of a library's kernel that is bound at first execution for each signature of extents: binding is
/// paid by the runs for which a signature is taken to last.
double Planner::State::costOfLateBinding(const Trial &library, const Problem &problem) const {
  constexpr double kRunsOfASignature = 20;
  bool lasts = true;
  for (const ProblemValue &value : problem.values)
    for (const Extent &extent : value.extents)
      if (!extent.isStatic())
        for (const std::string &symbol : extent.symbols())
          lasts &= lasting.contains(symbol);
  return costOf(library, problem) + 1000 * library.prepareMillis / (lasts ? kRunsOfASignature : 1);
}

double Planner::State::chargeOf(const Trial &trial, uint32_t steps) const {
  return chargeFor(trial, options.preparation) / std::max(steps, 1u);
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

/// Whether something is on offer for `problem` and not for `restricted`. Providers are asked for
/// the processor, and for a device where a user's kernel may be what is lost.
Expected<bool> Planner::State::costsOffers(const Problem &problem, const Problem &restricted) {
  const bool asksThere = deviceEvaluations && providers.contains("user") && !problem.hasSymbols();
  for (Evaluations *each : {&evaluations, asksThere ? deviceEvaluations.get() : nullptr}) {
    if (!each)
      continue;
    auto all = each->offered(problem);
    if (!all)
      return all.takeError();
    auto some = each->offered(restricted);
    if (!some)
      return some.takeError();
    if (!std::includes(some->begin(), some->end(), all->begin(), all->end()))
      return true;
  }
  return false;
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
Status Planner::State::formProblems(const Report &report) {
  regions = formRegions(table);
  std::vector<uint32_t> views = addStridedViews(table);
  std::vector<std::pair<Region, RegionProblem>> apart;
  for (const Region &region : regions) {
    RegionProblem problem = makeProblem(table, region);
    report("forming problems", problems.size(), regions.size(), problem.problem);
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
  std::map<std::string, uint32_t> counts;
  std::vector<const uint32_t *> countOf; // stays where it is as others are added
  for (const RegionProblem &problem : problems) {
    uint32_t &count = counts[problem.problem.text()];
    ++count;
    countOf.push_back(&count);
  }
  equalProblems.clear();
  for (const uint32_t *count : countOf)
    equalProblems.push_back(*count);
  return Status::success();
}

Expected<std::vector<PosedProblem>> Planner::State::posedProblems() {
  if (!sizes)
    return sizes.error();
  Jobs jobs;
  std::vector<State *> all;
  collect(all);
  auto ignore = [](const char *, size_t, size_t, const Problem &) {};
  for (State *part : all)
    if (Status status = part->propose(jobs, ignore); !status)
      return status.takeError();
  return std::move(jobs.list);
}

Status Planner::State::evaluate() {
  auto start = std::chrono::steady_clock::now();
  if (!sizes)
    return sizes.error();
  if (Status forced = checkForced(); !forced)
    return forced;
  if (!representative.empty())
    options.log(LogLevel::Debug, "kernels for free extents are timed at {}",
                sizesText(representative));
  auto lastReport = start;
  std::string_view lastStage;
  auto report = [&](const char *stage, size_t done, size_t total, const Problem &problem) {
    if (!options.progress)
      return;
    auto now = std::chrono::steady_clock::now();
    if (stage == lastStage && now - lastReport < std::chrono::milliseconds(100))
      return;
    lastReport = now;
    lastStage = stage;
    options.progress(stage, done, total, summary(problem));
  };
  // Everything is proposed first: with that a plan exists, and it is known what is at stake where.
  if (options.device) {
    auto description = device::DeviceDescription::of(*options.device);
    if (!description)
      return description.takeError();
    costs.description = std::move(*description);
  }
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
  if (Status formed = formProblems(report); !formed)
    return formed;
  regionEvaluations.assign(regions.size(), nullptr);
  lateEvaluations.assign(regions.size(), nullptr);
  onDevice.assign(regions.size(), nullptr);
  if (Status status = proposeOnDevice(report); !status)
    return status;
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
        if (double cost = costs.of(trial, problem, values); micros < 0 || cost < micros)
          micros = cost;
    jobs.list.push_back({problem, values});
    jobs.shares.push_back({std::max(micros, 0.0), 1, single});
    statistics.candidates += (*evaluation)->trials.size();
    return evaluation;
  };
  for (uint32_t region = 0; region < regions.size(); ++region) {
    const Problem &problem = problems[region].problem;
    bool single = regions[region].units.size() == 1;
    report("asking providers", region, regions.size(), problem);
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

/// The same problems under the device's target. Regions over extents that another step finds out
/// stay on the processor.
Status Planner::State::proposeOnDevice(const Report &report) {
  if (!deviceEvaluations)
    return Status::success();
  size_t open = 0;
  for (uint32_t region = 0; region < regions.size(); ++region) {
    const RegionProblem &problem = problems[region];
    auto fits = [&](uint32_t value) { return fitsDevice(value); };
    if (!std::all_of(problem.operands.begin(), problem.operands.end(), fits) ||
        !std::all_of(problem.results.begin(), problem.results.end(), fits)) {
      ++open;
      continue;
    }
    report("asking for the device", region, regions.size(), problem.problem);
    auto evaluation = deviceEvaluations->of(problem.problem, representative);
    if (!evaluation)
      return evaluation.takeError();
    onDevice[region] = *evaluation;
    statistics.candidates += (*evaluation)->trials.size();
  }
  if (open > 0)
    options.log(LogLevel::Warning,
                "{} of {} regions have extents that depend on data and stay on the processor", open,
                regions.size());
  return Status::success();
}

Status Planner::State::measure(const Jobs &jobs, const Report &report) {
  // A part of the budget is kept for what the chosen plan turns out to need.
  constexpr double kShareForAll = 0.85;
  std::vector<MeasuringTurn> turns = measuringOrder(jobs.shares);
  std::vector<double> millisOf(turns.size());
  for (const MeasuringTurn &turn : turns)
    millisOf[turn.problem] = turn.budgetMillis;
  std::vector<State *> all;
  collect(all);
  for (State *part : all)
    if (Status status = part->measurePromising(jobs, millisOf, report); !status)
      return status;
  for (size_t i = 0; i < turns.size(); ++i) {
    const PosedProblem &job = jobs.list[turns[i].problem];
    if (!evaluations.lacksMeasuring(job.problem.text()))
      continue;
    if (!evaluations.budgetLeft(kShareForAll)) {
      statistics.complete = false;
      break;
    }
    report("measuring", i, turns.size(), job.problem);
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
      for (const Evaluation *evaluation :
           {regionEvaluations[region], lateEvaluations[region], onDevice[region]})
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
  if (deviceEvaluations) {
    Evaluations::Counts there = deviceEvaluations->counts();
    statistics.fromCache += there.fromCache;
    statistics.estimated += there.estimated;
    statistics.failures += there.failures;
  }
  statistics.problems = statistics.timed + statistics.fromCache + statistics.estimated;
}

} // namespace dovetail::plan
