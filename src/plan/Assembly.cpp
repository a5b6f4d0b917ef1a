// SPDX-License-Identifier: Apache-2.0
//
// Builds the plan's blocks and steps from a chosen cover, then gives every value its memory.
#include "plan/Assembly.h"

#include <algorithm>
#include <map>
#include <set>

#include "artifact/BlockMemory.h"
#include "plan/InPlace.h"
#include "plan/OtherCovers.h"
#include "support/Candidate.h"

namespace dovetail::plan {
namespace {

class Assembler {
public:
  explicit Assembler(const ChosenCover &chosen) : chosen(chosen), table(*chosen.table) {}

  Expected<Plan> run();

private:
  const PlacedLayout &layout(uint32_t number) const { return (*chosen.layouts)[number]; }
  uint32_t layoutNumber(const PlacedLayout &placed) const {
    return static_cast<uint32_t>(std::find(chosen.layouts->begin(), chosen.layouts->end(), placed) -
                                 chosen.layouts->begin());
  }
  uint32_t layoutOf(uint32_t value, const std::string &text, dvt_memory_kind memory) const {
    return layoutNumber({table.values[value].storedLayout(text), memory});
  }
  double costOf(const Trial &trial, const Problem &problem) const {
    return chosen.costs->of(trial, problem, {});
  }
  uint32_t valueNumber(uint32_t value, uint32_t layoutNumber);
  uint32_t newValue(uint32_t value, const PlacedLayout &placed);
  uint32_t constantNumber(uint32_t value, dvt_memory_kind memory);
  uint32_t problemNumber(const std::string &text);
  int32_t kernelNumber(const std::vector<uint8_t> &bytes);
  KernelChoice choiceOf(const Trial &trial);
  void addOption(uint32_t option);
  void addKernel(const CoverOption &option, const OptionMeaning &meaning);
  void addConversion(uint32_t conversion);
  void addReorder(const ConversionMeaning &meaning, const std::string &name, uint32_t from,
                  uint32_t to);
  void addTransfer(const ConversionMeaning &meaning, const std::string &name, uint32_t from,
                   uint32_t to);
  void addPossibleConversions(uint32_t value);
  void addFallback(PlanStep &step, const Problem &problem, const Evaluation *evaluation,
                   const Trial &trial);
  void report(PlanStep &step, uint32_t region, const OptionMeaning &meaning);
  std::string whyNotFaster(const Trial &trial, const Trial *chosenTrial,
                           const Problem &problem) const;
  void reportTrials(RegionReport &report, const Evaluation &evaluation, const Trial *chosenTrial,
                    const Problem &problem, uint32_t equalSteps);
  void bindOutputs();
  void findSymbolSources();

  const ChosenCover &chosen;
  const OpTable &table;
  Plan plan;
  PlanBlock block;
  std::map<LayoutState, uint32_t> numbers;
  std::map<uint32_t, uint32_t> constants; // table value -> constant of the plan
  std::map<std::pair<uint32_t, dvt_memory_kind>, uint32_t> constantNumbers; // -> plan value
  std::map<std::string, uint32_t> problemNumbers;
  std::map<std::vector<uint8_t>, int32_t> kernelNumbers;
  std::set<LayoutState> ready;
  std::set<uint32_t> pendingConversions;
};

uint32_t Assembler::valueNumber(uint32_t value, uint32_t layoutNumber) {
  if (table.values[value].constant)
    return constantNumber(value, layout(layoutNumber).memory);
  auto [found, isNew] =
      numbers.try_emplace({value, layoutNumber}, static_cast<uint32_t>(block.values.size()));
  if (isNew)
    newValue(value, layout(layoutNumber));
  return found->second;
}

uint32_t Assembler::newValue(uint32_t value, const PlacedLayout &placed) {
  const TableValue &from = table.values[value];
  PlanValue to;
  to.name = from.name;
  to.type = from.type;
  to.extents = from.extents;
  to.layout = placed.layout;
  to.memory = placed.memory;
  to.storage = from.dataDependent ? Storage::Dynamic : Storage::Arena;
  block.values.push_back(std::move(to));
  return static_cast<uint32_t>(block.values.size() - 1);
}

uint32_t Assembler::constantNumber(uint32_t value, dvt_memory_kind memory) {
  auto [found, isNew] =
      constantNumbers.try_emplace({value, memory}, static_cast<uint32_t>(block.values.size()));
  if (!isNew)
    return found->second;
  const TableValue &from = table.values[value];
  auto [constant, isNewConstant] =
      constants.try_emplace(value, static_cast<uint32_t>(plan.constants.size()));
  if (isNewConstant) {
    PlanConstant &made = plan.constants.emplace_back();
    made.name = from.name;
    made.type = from.type;
    for (const Extent &extent : from.extents)
      made.extents.push_back(extent.value());
    made.bytes = from.dataBytes;
    made.data = from.data;
    made.owner = from.owner;
  }
  PlanValue to;
  to.name = from.name;
  to.type = from.type;
  to.extents = from.extents;
  to.storage = Storage::Constant;
  to.index = constant->second;
  to.bytes = from.dataBytes;
  to.memory = memory;
  block.values.push_back(std::move(to));
  return found->second;
}

uint32_t Assembler::problemNumber(const std::string &text) {
  auto [found, isNew] =
      problemNumbers.try_emplace(text, static_cast<uint32_t>(plan.problems.size()));
  if (isNew)
    plan.problems.push_back(text);
  return found->second;
}

int32_t Assembler::kernelNumber(const std::vector<uint8_t> &bytes) {
  if (bytes.empty())
    return -1;
  auto [found, isNew] = kernelNumbers.try_emplace(bytes, static_cast<int32_t>(plan.kernels.size()));
  if (isNew)
    plan.kernels.push_back(bytes);
  return found->second;
}

KernelChoice Assembler::choiceOf(const Trial &trial) {
  KernelChoice choice;
  choice.candidate = trial.candidate;
  auto version = chosen.providers.find(trial.candidate.provider);
  if (version != chosen.providers.end())
    choice.providerVersion = version->second;
  choice.kernel = kernelNumber(trial.kernel);
  return choice;
}

/// What runs on a device when the library is gone, or refuses. Kernels of the processor get theirs
/// when the whole plan is settled.
void Assembler::addFallback(PlanStep &step, const Problem &problem, const Evaluation *evaluation,
                            const Trial &trial) {
  const Candidate &candidate = trial.candidate;
  if (candidate.memory != DVT_MEMORY_DEVICE || candidate.provider == "native" ||
      candidate.provider == "reference" || !evaluation)
    return;
  auto isReady = [](const Trial &trial) {
    return trial.built || trial.candidate.provider == "reference";
  };
  if (const Trial *best = standIn(*evaluation, candidate, problem, *chosen.costs, isReady))
    step.fallback = choiceOf(*best);
}

/// Of a trial that takes less time than the chosen one.
std::string Assembler::whyNotFaster(const Trial &trial, const Trial *chosenTrial,
                                    const Problem &problem) const {
  auto bytesOf = [](const Candidate &candidate) {
    uint64_t packed = candidate.packing == DVT_PACKING_NONE ? 0 : candidate.packedBytes;
    return static_cast<double>(packed) + candidate.codeBytes +
           static_cast<double>(candidate.processBytes);
  };
  double more = chosenTrial ? bytesOf(trial.candidate) - bytesOf(chosenTrial->candidate) : 0;
  if (!chosen.weighsMemory || more <= 0)
    return "faster alone, but not at its place with the conversions it needs";
  return fmt::format("{:.2f}x faster, needs {:.{}f} MiB more",
                     costOf(*chosenTrial, problem) / costOf(trial, problem), more / (1 << 20),
                     more < (10 << 20) ? 2 : 0);
}

void Assembler::reportTrials(RegionReport &to, const Evaluation &evaluation,
                             const Trial *chosenTrial, const Problem &problem,
                             uint32_t equalSteps) {
  auto chargeOf = [&](const Trial &trial) {
    return chargeFor(trial, chosen.preparation) / equalSteps;
  };
  for (const Trial &trial : evaluation.trials) {
    Alternative alternative;
    // A provider that fell while it proposed has a trial without an algorithm.
    alternative.label =
        trial.candidate.algorithm.empty() ? trial.candidate.provider : trial.candidate.label();
    const bool isPredicted = trial.candidate.memory == DVT_MEMORY_DEVICE && trial.micros < 0;
    alternative.micros = isPredicted && trial.usable() ? costOf(trial, problem) : trial.micros;
    alternative.low = trial.low;
    alternative.high = trial.high;
    if (&trial == chosenTrial)
      alternative.outcome = "chosen";
    else if (!trial.usable())
      alternative.outcome = std::string(outcomeName(trial.outcome)) + ": " + trial.detail;
    else if (isPredicted)
      alternative.outcome = chosenTrial && costOf(trial, problem) >= costOf(*chosenTrial, problem)
                                ? "slower, as predicted"
                                : "predicted to be faster, but not with the transfers it needs";
    else if (trial.micros < 0)
      alternative.outcome = trial.candidate.provider == "reference" ? "last resort" : "not timed";
    else if (chosenTrial && costOf(trial, problem) >= costOf(*chosenTrial, problem))
      alternative.outcome = "slower";
    else if (chosenTrial && costOf(trial, problem) + chargeOf(trial) >=
                                costOf(*chosenTrial, problem) + chargeOf(*chosenTrial))
      alternative.outcome = fmt::format("faster, but prepares in {:.0f} ms: charged {:.0f} us",
                                        trial.preparationMillis(), chargeOf(trial));
    else
      alternative.outcome = whyNotFaster(trial, chosenTrial, problem);
    if (trial.candidate.memory == DVT_MEMORY_DEVICE && trial.usable() && &trial != chosenTrial)
      if (std::string taken = deviceFacts(trial.candidate); !taken.empty())
        alternative.outcome += "; " + taken;
    to.alternatives.push_back(std::move(alternative));
  }
  for (const auto &[provider, refusal] : evaluation.refusals) {
    Alternative alternative;
    alternative.label = refusal.algorithm.empty() ? provider : provider + ":" + refusal.algorithm;
    alternative.outcome = "refused: " + refusal.reason;
    to.alternatives.push_back(std::move(alternative));
  }
}

void Assembler::report(PlanStep &step, uint32_t region, const OptionMeaning &meaning) {
  RegionReport result;
  const Problem &problem = (*chosen.problems)[region].problem;
  result.ops = summary(problem);
  result.nodes = step.label;
  result.problem = step.problem;
  const Trial *shown = meaning.library ? meaning.library : meaning.trial;
  result.micros =
      shown->candidate.memory == DVT_MEMORY_DEVICE ? costOf(*shown, problem) : shown->micros;
  result.prepareMillis = meaning.trial->preparationMillis();
  for (const LayoutState need : (*chosen.cover).options[&meaning - chosen.options->data()].needs)
    for (uint32_t index : chosen.solution->conversions) {
      const CoverConversion &conversion = chosen.cover->conversions[index];
      if (conversion.value == need.value && conversion.to == need.layout)
        result.conversionMicros += conversion.cost - conversion.charged;
    }
  if (meaning.kind == OptionMeaning::Kind::Kernel)
    result.alternatives =
        otherCovers(chosen, static_cast<uint32_t>(&meaning - chosen.options->data()));
  const Evaluation *evaluations[] = {(*chosen.evaluations)[region], (*chosen.onDevice)[region]};
  if (shown->candidate.memory == DVT_MEMORY_DEVICE)
    std::swap(evaluations[0], evaluations[1]); // its rivals first
  for (const Evaluation *evaluation : evaluations)
    if (evaluation)
      reportTrials(result, *evaluation, meaning.trial, problem, (*chosen.equalProblems)[region]);
  if (chosen.costs->device && !(*chosen.onDevice)[region]) {
    Alternative &alternative = result.alternatives.emplace_back();
    alternative.label = chosen.costs->device->name();
    alternative.outcome = "refused: it takes extents that do not depend on data";
  }
  step.report = static_cast<uint32_t>(plan.reports.size());
  plan.reports.push_back(std::move(result));
}

void Assembler::addKernel(const CoverOption &option, const OptionMeaning &meaning) {
  const Region &region = (*chosen.regions)[meaning.region];
  const RegionProblem &problem = (*chosen.problems)[meaning.region];
  const Trial &trial = *meaning.trial;
  PlanStep step;
  step.label = nodeNames(table, region);
  step.problem = problemNumber(problem.problem.text());
  const Candidate &layoutsOf = trial.candidate;
  const dvt_memory_kind memory = trial.candidate.memory;
  for (size_t i = 0; i < problem.operands.size(); ++i)
    step.inputs.push_back(
        table.values[problem.operands[i]].constant
            ? constantNumber(problem.operands[i], memory)
            : valueNumber(problem.operands[i],
                          layoutOf(problem.operands[i], layoutsOf.inputLayouts[i], memory)));
  for (size_t i = 0; i < problem.results.size(); ++i)
    step.outputs.push_back(valueNumber(
        problem.results[i], layoutOf(problem.results[i], layoutsOf.outputLayouts[i], memory)));
  step.choice = choiceOf(trial);
  if (meaning.kind == OptionMeaning::Kind::LateBound) {
    step.kind = StepKind::LateBound;
    step.lateProviders = {meaning.library->candidate.provider};
    step.lateAlgorithm = meaning.library->candidate.algorithm;
  } else {
    const auto &offered = memory == DVT_MEMORY_DEVICE ? *chosen.onDevice : *chosen.evaluations;
    addFallback(step, problem.problem, offered[meaning.region], trial);
  }
  report(step, meaning.region, meaning);
  block.steps.push_back(std::move(step));
  (void)option;
}

/// Between memories bytes move as they are; the layout changes on the host, before or after.
void Assembler::addConversion(uint32_t index) {
  const CoverConversion &conversion = chosen.cover->conversions[index];
  const ConversionMeaning &meaning = (*chosen.conversions)[index];
  const PlacedLayout &source = layout(conversion.from), &target = layout(conversion.to);
  const std::string &name = table.values[conversion.value].name;
  uint32_t from = valueNumber(conversion.value, conversion.from),
           to = valueNumber(conversion.value, conversion.to);
  if (meaning.transferMicros < 0)
    return addReorder(meaning, name, from, to);
  if (!meaning.reorders)
    return addTransfer(meaning, name, from, to);
  if (source.memory == DVT_MEMORY_HOST) {
    uint32_t between = newValue(conversion.value, {target.layout, DVT_MEMORY_HOST});
    addReorder(meaning, name, from, between);
    addTransfer(meaning, name, between, to);
  } else {
    uint32_t between = newValue(conversion.value, {source.layout, DVT_MEMORY_HOST});
    addTransfer(meaning, name, from, between);
    addReorder(meaning, name, between, to);
  }
}

void Assembler::addReorder(const ConversionMeaning &meaning, const std::string &name, uint32_t from,
                           uint32_t to) {
  const std::string &wanted = block.values[to].layout;
  PlanStep step;
  step.label = fmt::format("{} as {}", name, wanted.empty() ? "row-major" : wanted);
  step.problem = problemNumber(meaning.problem.text());
  step.inputs = {from};
  step.outputs = {to};
  step.choice = choiceOf(*meaning.trial);
  addFallback(step, meaning.problem, meaning.evaluation, *meaning.trial);
  RegionReport result;
  result.ops = "dvt_reorder";
  result.nodes = step.label;
  result.problem = step.problem;
  result.conversion = true;
  result.micros = meaning.trial->candidate.memory == DVT_MEMORY_DEVICE
                      ? costOf(*meaning.trial, meaning.problem)
                      : meaning.trial->micros;
  result.prepareMillis = meaning.trial->preparationMillis();
  step.report = static_cast<uint32_t>(plan.reports.size());
  plan.reports.push_back(std::move(result));
  block.steps.push_back(std::move(step));
}

void Assembler::addTransfer(const ConversionMeaning &meaning, const std::string &name,
                            uint32_t from, uint32_t to) {
  PlanStep step;
  step.kind = StepKind::Transfer;
  step.label = fmt::format("{} to the {}", name,
                           block.values[to].memory == DVT_MEMORY_DEVICE ? "device" : "host");
  step.inputs = {from};
  step.outputs = {to};
  RegionReport result;
  result.ops = "transfer";
  result.nodes = step.label;
  result.conversion = true;
  result.micros = meaning.transferMicros;
  step.report = static_cast<uint32_t>(plan.reports.size());
  plan.reports.push_back(std::move(result));
  block.steps.push_back(std::move(step));
}

/// Conversions run as soon as their source exists.
void Assembler::addPossibleConversions(uint32_t value) {
  std::vector<uint32_t> now;
  for (uint32_t index : pendingConversions) {
    const CoverConversion &conversion = chosen.cover->conversions[index];
    if (conversion.value == value && ready.count({value, conversion.from}))
      now.push_back(index);
  }
  for (uint32_t index : now) {
    const CoverConversion &conversion = chosen.cover->conversions[index];
    pendingConversions.erase(index);
    if (!ready.insert({conversion.value, conversion.to}).second)
      continue;
    addConversion(index);
  }
}

void Assembler::addOption(uint32_t index) {
  const CoverOption &option = chosen.cover->options[index];
  const OptionMeaning &meaning = (*chosen.options)[index];
  switch (meaning.kind) {
  case OptionMeaning::Kind::Kernel:
  case OptionMeaning::Kind::LateBound:
    addKernel(option, meaning);
    break;
  case OptionMeaning::Kind::View: {
    const TableOp &view = table.ops[meaning.op];
    uint32_t base = valueNumber(view.inputs[0], meaning.layout);
    uint32_t shown = valueNumber(view.outputs[0], meaning.layout);
    const TableValue &seen = table.values[view.outputs[0]];
    block.values[shown].storage = Storage::Alias;
    block.values[shown].index = base;
    block.values[shown].strides = seen.strides;
    block.values[shown].offset = static_cast<uint64_t>(seen.offset) * typeBits(seen.type) / 8;
    break;
  }
  case OptionMeaning::Kind::ShapeData: {
    PlanStep step;
    step.kind = StepKind::ShapeData;
    step.label = table.values[meaning.value].name;
    step.outputs = {valueNumber(meaning.value, 0)};
    step.data = table.values[meaning.value].shapeData;
    block.steps.push_back(std::move(step));
    break;
  }
  case OptionMeaning::Kind::Control: {
    const TableOp &op = table.ops[meaning.op];
    PlanStep step;
    step.kind = op.control;
    step.label = op.node;
    for (uint32_t value : op.inputs)
      step.inputs.push_back(value == kNoValue ? kNoValue : valueNumber(value, 0));
    for (uint32_t value : op.outputs)
      step.outputs.push_back(valueNumber(value, 0));
    step.bodies = op.bodies;
    step.carried = op.carried;
    step.scanned = op.scanned;
    block.steps.push_back(std::move(step));
    break;
  }
  }
  for (LayoutState give : option.gives)
    ready.insert(give);
  for (LayoutState give : option.gives)
    addPossibleConversions(give.value);
}

/// Results are written straight into the caller's memory where one value is one result and nothing
/// else owns it; otherwise a copy puts them there. What owns its memory comes before its views: a
/// state grows only where it is the result itself.
void Assembler::bindOutputs() {
  block.outputs.resize(table.outputs.size());
  std::vector<uint32_t> others;
  for (uint32_t i = 0; i < table.outputs.size(); ++i) {
    uint32_t number = block.outputs[i] = valueNumber(table.outputs[i], 0);
    if (block.values[number].storage == Storage::Arena) {
      block.values[number].storage = Storage::Output;
      block.values[number].index = i;
    } else if (block.values[number].storage != Storage::Dynamic) {
      others.push_back(i);
    }
  }
  for (uint32_t i : others) {
    uint32_t number = block.outputs[i];
    uint32_t root = number;
    while (block.values[root].storage == Storage::Alias)
      root = block.values[root].index;
    PlanValue &owner = block.values[root];
    if (owner.storage == Storage::Arena) {
      owner.storage = Storage::Output;
      owner.index = i;
      continue;
    }
    if (owner.storage == Storage::Dynamic)
      continue;
    PlanValue copy = block.values[number];
    copy.storage = Storage::Output;
    copy.index = i;
    copy.layout.clear();
    PlanStep step;
    step.kind = StepKind::Copy;
    step.label = chosen.table->outputNames[i];
    step.inputs = {number};
    step.outputs = {static_cast<uint32_t>(block.values.size())};
    block.outputs[i] = step.outputs[0];
    block.values.push_back(std::move(copy));
    block.steps.push_back(std::move(step));
  }
}

/// What a step finds out is no source of what the blocks around a body know: values before that
/// step have that extent, too.
void Assembler::findSymbolSources() {
  std::set<std::string> known;
  auto consider = [&](uint32_t number) {
    const PlanValue &value = block.values[number];
    for (uint32_t axis = 0; axis < value.extents.size(); ++axis) {
      std::vector<std::string> symbols = value.extents[axis].symbols();
      if (symbols.size() == 1 && value.extents[axis] == Extent::symbol(symbols[0]) &&
          known.insert(symbols[0]).second)
        block.symbolSources.push_back({symbols[0], number, axis});
    }
  };
  for (uint32_t number : block.inputs)
    consider(number);
  known.insert(table.outerSymbols.begin(), table.outerSymbols.end());
  for (uint32_t number = 0; number < block.values.size(); ++number)
    if (block.values[number].storage == Storage::Dynamic)
      consider(number);
}

Expected<Plan> Assembler::run() {
  plan.target = chosen.costs->target;
  plan.device = chosen.costs->device;
  plan.providers = chosen.providers;
  plan.symbols = table.ranges;
  plan.states = table.states;
  block.requirements = table.requirements;
  plan.inputNames = table.inputNames;
  plan.outputNames = table.outputNames;
  for (uint32_t i = 0; i < table.inputs.size(); ++i) {
    uint32_t number = valueNumber(table.inputs[i], 0);
    block.values[number].storage = Storage::Input;
    block.values[number].index = i;
    block.inputs.push_back(number);
  }
  pendingConversions.insert(chosen.solution->conversions.begin(),
                            chosen.solution->conversions.end());
  for (uint32_t index : pendingConversions)
    if ((*chosen.conversions)[index].reorders && !(*chosen.conversions)[index].trial)
      return internalError("a layout conversion was chosen that nobody can do");
  for (uint32_t value : table.inputs) {
    ready.insert({value, 0});
    addPossibleConversions(value);
  }
  for (uint32_t option : chosen.solution->options)
    addOption(option);
  bindOutputs();
  PlanBlock apart = block;
  takeOverDyingOperands(block, plan.problems);
  findSymbolSources();
  for (PlanStep &step : block.steps)
    if (step.kind == StepKind::Kernel && step.choice.candidate.workspaceBytes != UINT64_MAX)
      step.workspaceBytes = step.choice.candidate.workspaceBytes;
  bool fixed = std::all_of(block.values.begin(), block.values.end(), [](const PlanValue &value) {
    return std::all_of(value.extents.begin(), value.extents.end(),
                       [](const Extent &extent) { return extent.isStatic(); });
  });
  if (fixed) {
    // Buffers that live longer may also pack worse.
    apart.steps = block.steps;
    placeStaticBlock(apart);
    placeStaticBlock(block);
    if (apart.arenaBytes + apart.deviceArenaBytes < block.arenaBytes + block.deviceArenaBytes)
      block = std::move(apart);
  }
  plan.blocks.push_back(std::move(block));
  return std::move(plan);
}

} // namespace

double chargeFor(const Trial &trial, const PreparationPrice &price) {
  return trial.micros >= 0 && trial.candidate.memory == DVT_MEMORY_HOST
             ? price.of(trial.preparationMillis())
             : 0;
}

Problem conversionProblem(const TableValue &value, const SymbolRanges &ranges,
                          const std::string &from, const std::string &to) {
  Problem problem;
  ProblemValue described;
  described.type = value.type;
  described.extents = value.extents;
  problem.values = {described, described};
  ProblemOp op;
  op.name = "dvt_reorder";
  op.inputs = {0};
  op.outputs = {1};
  op.attributes = {{"dst_layout", to}, {"src_layout", from}};
  problem.ops = {op};
  problem.inputs = {0};
  problem.outputs = {1};
  for (const Extent &extent : value.extents)
    for (const std::string &symbol : extent.symbols()) {
      auto known = ranges.find(symbol);
      problem.ranges[symbol] = known == ranges.end() ? SymbolRange{} : known->second;
    }
  problem.canonicalize();
  return problem;
}

Expected<Plan> assemblePlan(const ChosenCover &chosen) { return Assembler(chosen).run(); }

} // namespace dovetail::plan
