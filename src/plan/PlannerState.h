// SPDX-License-Identifier: Apache-2.0
//
// What the planner holds of the model or of a body of control flow: tables, regions with their
// problems and trials, and the cover that is being built. Planner.cpp evaluates, PlannerChoice.cpp
// chooses.
#pragma once

#include "plan/Planner.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/ranges.h>

#include "plan/Assembly.h"
#include "plan/Cover.h"
#include "plan/CoverMemory.h"
#include "plan/Evaluations.h"
#include "plan/MeasuringOrder.h"
#include "plan/StepTimes.h"
#include "plan/TypicalSizes.h"

namespace dovetail::plan {

inline bool isLibrary(const std::string &provider) {
  return provider != "native" && provider != "reference";
}

/// Of all constants of the table.
uint64_t constantBytes(const OpTable &table);

/// The model, or a body of control flow: all that is planned as one.
struct Planner::State {
  OpTable table; ///< as given, and with strided views
  Target target;
  std::map<std::string, std::string> providers;
  PlannerOptions options;
  CostModel costs;
  Statistics statistics;
  SymbolValues representative;        ///< sizes at which problems with symbols are tried and timed
  Status sizes;                       ///< why there are none
  std::set<std::string> lasting;      ///< symbols that mostly keep their value from run to run
  std::set<std::string> inputSymbols; ///< symbols that the extents of the model's inputs tell
  std::unique_ptr<Evaluations> ownEvaluations; ///< the model's; bodies use them, too
  Evaluations &evaluations;
  PlannerOptions deviceOptions;
  std::unique_ptr<Evaluations> deviceEvaluations; ///< null without a device
  std::vector<std::unique_ptr<State>> bodies;     ///< of the table
  std::vector<Region> regions;
  std::vector<RegionProblem> problems;
  std::vector<uint32_t> equalProblems; ///< of each region: how many pose its problem
  uint32_t firstApart = 0;             ///< region; from here on the same ones again, not in place
  std::vector<const Evaluation *> regionEvaluations, lateEvaluations, onDevice;
  std::map<PlacedLayout, uint32_t> layoutNumbers{{PlacedLayout{}, 0}};
  std::vector<PlacedLayout> layouts{PlacedLayout{}};
  StepTimes stepTimes;

  State(const OpTable &table, Target target, std::map<std::string, std::string> providers,
        PlanCache &cache, PlannerOptions given)
      : table(table), target(target), providers(providers), options(std::move(given)),
        sizes(chooseSizes()), lasting(lastingSymbols(table)),
        ownEvaluations(
            std::make_unique<Evaluations>(target, this->providers, cache, options, footprint())),
        evaluations(*ownEvaluations) {
    costs.target = target;
    costs.device = options.device;
    if (options.device) {
      deviceOptions = options;
      if (options.select == Select::Replay)
        deviceOptions.select = Select::Measure; // what nobody measured there is predicted
      deviceEvaluations = std::make_unique<Evaluations>(*options.device, this->providers, cache,
                                                        deviceOptions, footprint());
      for (uint32_t input : table.inputs)
        for (const Extent &extent : table.values[input].extents)
          if (std::vector<std::string> symbols = extent.symbols();
              symbols.size() == 1 && extent == Extent::symbol(symbols[0]))
            inputSymbols.insert(symbols[0]);
    }
    addBodies();
  }
  /// A body of control flow, which runs on the processor.
  State(const OpTable &table, const State &outer)
      : table(table), target(outer.target), providers(outer.providers), options(outer.options),
        representative(usableSizes(table, outer.representative)), sizes(Status::success()),
        lasting(outer.lasting), evaluations(outer.evaluations) {
    costs.target = target;
    addBodies();
  }

  Status chooseSizes() {
    auto typical = typicalSizes(table, options.typical);
    if (!typical)
      return typical.takeError();
    representative = usableSizes(table, std::move(*typical));
    return Status::success();
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
        if (auto count = elementCount(value.extents).evaluate(representative))
          activations = std::max(activations, bytesOf(value.type, *count));
    return constantBytes(table) + 2 * activations;
  }

  uint32_t layoutNumber(const std::string &text, dvt_memory_kind memory) {
    PlacedLayout placed{text, memory};
    auto [found, isNew] = layoutNumbers.try_emplace(placed, static_cast<uint32_t>(layouts.size()));
    if (isNew)
      layouts.push_back(std::move(placed));
    return found->second;
  }
  /// Of a value that a kernel takes or gives in the layout `text`: layouts of the same bytes are
  /// one.
  uint32_t layoutOf(uint32_t value, const std::string &text, dvt_memory_kind memory) {
    return layoutNumber(table.values[value].storedLayout(text), memory);
  }
  Evaluations &evaluationsFor(dvt_memory_kind memory) {
    return memory == DVT_MEMORY_DEVICE ? *deviceEvaluations : evaluations;
  }
  /// Whether a value can lie on the device: its size is known now, or as soon as the model's inputs
  /// are.
  bool fitsDevice(uint32_t value) const;

  /// Problems to be measured, and what is at stake with each.
  struct Jobs {
    std::vector<PosedProblem> list;
    std::vector<ProblemShare> shares;
    std::map<std::string, size_t> byText;
  };
  using Report =
      std::function<void(const char *stage, size_t done, size_t total, const Problem &problem)>;
  /// For stages of few parts, or of parts that take their time.
  void announce(const char *stage, size_t done = 0, size_t total = 0,
                const std::string &what = {}) const {
    if (options.progress)
      options.progress(stage, done, total, what);
  }
  Status evaluate();
  Expected<std::vector<PosedProblem>> posedProblems();
  Status propose(Jobs &jobs, const Report &report);
  Status measure(const Jobs &jobs, const Report &report);
  Status formProblems(const Report &report);
  Expected<bool> isServed(const Problem &problem);
  Expected<bool> costsOffers(const Problem &problem, const Problem &restricted);
  bool hasNode(const std::string &name) const;
  Status checkForced() const;
  double costOf(const Trial &trial, const Problem &problem) const;
  double costOfLateBinding(const Trial &library, const Problem &problem) const;
  /// Of a measured trial that prepares slowly, in microseconds of each run, shared by `steps` equal
  /// ones.
  double chargeOf(const Trial &trial, uint32_t steps = 1) const;
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
  void formCover(Prefer prefer, bool measuredOnly);
  Status measurePromising(const Jobs &jobs, const std::vector<double> &millisOf,
                          const Report &report);
  void addConversions(bool measuredOnly);
  double guessConversion(uint32_t value, uint32_t from, uint32_t to) const;
  bool describeConversion(uint32_t value, uint32_t from, uint32_t to, bool measuredOnly,
                          ConversionMeaning &meaning, double &cost);
  bool addReorder(uint32_t value, uint32_t from, uint32_t to, dvt_memory_kind memory,
                  bool measuredOnly, ConversionMeaning &meaning, double &cost);
  Status proposeOnDevice(const Report &report);
  bool dominates(const CoverOption &other, const CoverOption &option) const;
  double bytesOfValue(uint32_t value) const {
    auto count = elementCount(table.values[value].extents).evaluate(representative);
    return static_cast<double>(bytesOf(table.values[value].type, count.value_or(1)));
  }
  void countProblems();
  Expected<bool> learnOfChosen(const CoverSolution &solution);
  Expected<bool> buildChosen(const CoverSolution &solution);
  const Trial *ownRival(const Evaluation &evaluation, const Trial &chosen,
                        const Problem &problem) const;
  Status buildRivals(const CoverSolution &solution);
  Expected<const Trial *> builtStandIn(const std::string &text, const Candidate &chosen);
  std::set<std::string> machinesOf(const CoverSolution &solution) const;
  Error explainNoCover(Error error) const;
  Expected<Plan> choose(Prefer prefer);
  Expected<Plan> chooseWithinBound(Prefer prefer);
  Expected<Plan> chooseNearLast(Prefer prefer, uint64_t excess);
  Status chooseBodies(Plan &plan, Prefer prefer);

  // PlannerMemory.cpp
  bool weighsMemory() const { return mostBytes != UINT64_MAX; }
  Expected<CoverSolution> solve(const CoverLimits &limits, Prefer prefer);
  Expected<CoverSolution> solveFreely(const CoverLimits &limits);
  Plan overBound(Plan plan) const;
  CoverMemory memoryOf(const Trial &trial);
  /// Whether one takes no more memory of any kind than the other.
  static bool takesNoMore(const CoverMemory &one, const CoverMemory &other);
  /// Constants of this block and those in it, in bytes and never 0: by them memory is shared out.
  double memoryWeight() const;
  /// Tells a body what of the memory it may use, where `plan` has this block and the bodies before.
  void lendMemory(const Plan &plan, size_t body);

  /// Memory that the choice may use, arenas not counted; with UINT64_MAX it does not look at it.
  uint64_t mostBytes = UINT64_MAX;
  std::map<std::string, uint64_t> paidProcesses; ///< of blocks around this one, by processOf
  bool mayBeThorough = true; ///< where nothing is learned any more, and memory has no price
  /// Of the covers sought last, which differ little from the next.
  std::map<Prefer, BoundHint> boundHints;
  bool isNearHint = false;   ///< the last of them began at a hint
  bool endsNearHint = false; ///< such a cover will do
  PricedCovers pricedCovers;
  /// The cover of any memory that was sought last.
  struct FreeCover {
    CoverProblem problem;
    CoverLimits limits;
    CoverSolution solution;
  };
  std::optional<FreeCover> freeCover;

  // The cover being built by choose().
  std::map<const Trial *, uint32_t> codeNumbers;
  std::map<std::string, uint32_t> processNumbers; ///< kept, as hints are in terms of them
  CoverProblem cover;
  std::vector<OptionMeaning> optionMeanings;
  std::vector<ConversionMeaning> conversionMeanings;
  std::vector<bool> libraryCovers, nativeCovers; // per op
  bool isHopeful = false;                        ///< it is sought for what to measure
  /// Measured conversions by their two layouts: bytes -> micros.
  std::map<std::pair<uint32_t, uint32_t>, std::map<double, double>> conversionRates;
};

} // namespace dovetail::plan
