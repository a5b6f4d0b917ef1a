// SPDX-License-Identifier: Apache-2.0
//
// dovetail explain: for every step of a plan the chosen kernel, its time, what else was on offer
// and what became of it.
#include "Explain.h"

#include <algorithm>
#include <cstdio>

#include "CommandLine.h"
#include "artifact/PlanMemory.h"
#include "driver/WholeModel.h"
#include "plan/TypicalSizes.h"
#include "runtime/Model.h"
#include "support/Candidate.h"
#include "support/DeviceKernel.h"

namespace dovetail::cli {
namespace {

std::string chosenLabel(const PlanStep &step) {
  switch (step.kind) {
  case StepKind::Kernel:
    return step.choice.candidate.provider + ":" + step.choice.candidate.algorithm;
  case StepKind::LateBound:
    return step.lateProviders.front() +
           (step.lateAlgorithm.empty() ? "" : ":" + step.lateAlgorithm) +
           " at first execution, else " + step.choice.candidate.provider + ":" +
           step.choice.candidate.algorithm;
  case StepKind::ShapeData:
    return "extents written by the runtime";
  case StepKind::Copy:
    return "copied by the runtime";
  case StepKind::If:
  case StepKind::Loop:
  case StepKind::Scan:
    return "control flow";
  case StepKind::Refuse:
    return "refused";
  case StepKind::Append:
    return "appended by the runtime";
  case StepKind::Transfer:
    return "transferred by the runtime";
  }
  return "";
}

/// Whether an output lies in the memory of an operand.
bool isInPlace(const PlanBlock &block, const PlanStep &step) {
  return std::any_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t value) {
    return value != kNoValue && block.values[value].inPlaceOf != kNoValue;
  });
}

/// Whether it reads memory with strides.
bool isStrided(const PlanBlock &block, const PlanStep &step) {
  return std::any_of(step.inputs.begin(), step.inputs.end(), [&](uint32_t value) {
    return value != kNoValue && !block.values[value].strides.empty();
  });
}

/// Sizes of the symbols of a step's problem at which it was timed; none where it has no symbols or
/// was not.
SymbolValues timedAt(const Plan &plan, const PlanStep &step) {
  SymbolValues sizes;
  if (step.report >= plan.reports.size() || plan.reports[step.report].micros < 0)
    return sizes;
  auto problem = Problem::parse(plan.problems[plan.reports[step.report].problem]);
  if (!problem || !problem->hasSymbols())
    return sizes;
  for (const ProblemValue &value : problem->values)
    for (const Extent &extent : value.extents)
      for (const std::string &symbol : extent.symbols())
        if (auto known = plan.typicalSizes.find(symbol); known != plan.typicalSizes.end())
          sizes.insert(*known);
  return sizes;
}

bool isOnDevice(const PlanStep &step) { return step.choice.candidate.memory == DVT_MEMORY_DEVICE; }

/// Own kernels for devices that the plan holds, how many images of each kind and architecture, and
/// how many kernels wait for the driver to be assembled.
nlohmann::json deviceKernels(const Plan &plan) {
  size_t kernels = 0, unassembled = 0;
  std::map<std::string, size_t> images;
  for (const KernelBytes &bytes : plan.kernels) {
    auto kernel = DeviceKernel::parse({bytes.data(), bytes.size()});
    if (!kernel)
      continue; // another provider's, or for the processor
    ++kernels;
    unassembled +=
        kernel->find(DeviceImage::Kind::Ptx) && !kernel->find(DeviceImage::Kind::Cubin) ? 1 : 0;
    for (const DeviceImage &image : kernel->images)
      if (image.kind != DeviceImage::Kind::Log)
        ++images[fmt::format("{} {}", kindName(image.kind), image.architecture)];
  }
  return {{"kernels", kernels}, {"images", images}, {"unassembled", unassembled}};
}

std::string deviceKernelsText(const Plan &plan) {
  nlohmann::json counts = deviceKernels(plan);
  std::string text;
  for (const auto &[kind, count] : counts["images"].items())
    text += fmt::format("{}{} {}", text.empty() ? ": " : ", ", count.get<size_t>(), kind);
  if (auto unassembled = counts["unassembled"].get<size_t>())
    text += fmt::format("; neither nvJitLink nor ptxas was found for {} of them, so the driver "
                        "assembles them when the plan is loaded, and what they take of the device "
                        "is not known",
                        unassembled);
  return fmt::format("{} own kernels for it{}", counts["kernels"].get<size_t>(), text);
}

/// Whether the time of a step was measured, here or elsewhere.
bool isMeasured(const Plan &plan, const PlanStep &step) {
  if (step.report >= plan.reports.size())
    return false;
  const std::vector<Alternative> &all = plan.reports[step.report].alternatives;
  return std::any_of(all.begin(), all.end(), [](const Alternative &alternative) {
    return alternative.outcome == "chosen" && alternative.low >= 0;
  });
}

/// Which of a device's times are predictions.
std::string predictionsOf(const Plan &plan) {
  size_t kernels = 0, measured = 0;
  for (const PlanBlock &block : plan.blocks)
    for (const PlanStep &step : block.steps)
      if (step.kind == StepKind::Kernel && isOnDevice(step)) {
        ++kernels;
        measured += isMeasured(plan, step);
      }
  if (measured == 0)
    return "times of its kernels and of transfers are predictions";
  return fmt::format("times of {} of its {} kernels were measured on one, {} are predictions",
                     measured, kernels,
                     measured < kernels ? "the others and transfers" : "transfers");
}

/// A step and where it stands.
struct Placed {
  const PlanStep *step;
  uint32_t block;
};

/// Those of all blocks, in the order in which the runtime counts them.
std::vector<Placed> allSteps(const Plan &plan) {
  std::vector<Placed> steps;
  for (uint32_t block = 0; block < plan.blocks.size(); ++block)
    for (const PlanStep &step : plan.blocks[block].steps)
      steps.push_back({&step, block});
  return steps;
}

/// The step that runs a body.
std::string ownerOf(const Plan &plan, uint32_t body) {
  for (const Placed &placed : allSteps(plan))
    for (size_t i = 0; i < placed.step->bodies.size(); ++i)
      if (placed.step->bodies[i] == body)
        return placed.step->label + (placed.step->kind != StepKind::If ? ""
                                     : i == 0                          ? " where it holds"
                                                                       : " where it does not");
  return "no step";
}

/// Shares of the planned time by provider, where every body runs once.
std::map<std::string, std::pair<unsigned, double>> shares(const Plan &plan) {
  std::map<std::string, std::pair<unsigned, double>> result;
  for (const Placed &placed : allSteps(plan)) {
    const PlanStep &step = *placed.step;
    if (step.kind != StepKind::Kernel && step.kind != StepKind::LateBound &&
        step.kind != StepKind::Transfer)
      continue;
    bool conversion = step.report < plan.reports.size() && plan.reports[step.report].conversion;
    std::string who = step.kind == StepKind::Transfer    ? "transfers"
                      : conversion                       ? "layout conversions"
                      : step.kind == StepKind::LateBound ? step.lateProviders.front() + " (late)"
                                                         : step.choice.candidate.provider;
    auto &[count, micros] = result[who];
    ++count;
    if (step.report < plan.reports.size())
      micros += std::max(0.0, plan.reports[step.report].micros);
  }
  return result;
}

/// Memory as the plan's kernels state it.
void printMemory(const Plan &plan) {
  PlanMemory memory = memoryOf(plan);
  auto text = [](uint64_t bytes) {
    return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
  };
  std::printf("  memory: %s beside %s of weights: packed constants %s, code %s, libraries %s, "
              "intermediate results %s; %s\n",
              text(memory.total()).c_str(), text(memory.weights).c_str(),
              text(memory.packed).c_str(), text(memory.code).c_str(),
              text(memory.process()).c_str(), text(memory.arena).c_str(),
              plan.memoryBound == UINT64_MAX
                  ? "no bound"
                  : fmt::format("the bound {}{}",
                                memory.total() > plan.memoryBound ? "could not be kept, " : "is ",
                                text(plan.memoryBound))
                        .c_str());
}

/// What became of a plan in the comparison of whole ones.
std::string verdict(const WholeModelTiming &timing) {
  if (timing.chosen)
    return "  chosen";
  if (timing.ratio < 0)
    return "";
  return fmt::format("  {:.3f} of the chosen one's, in the same rounds ({:.3f} to {:.3f})",
                     timing.ratio, timing.ratioLow, timing.ratioHigh);
}

/// What loading takes beside packing, as the kernels' trials found it.
std::string preparationText(const Plan &plan) {
  PlanPreparation all = preparationOf(plan);
  std::string text = fmt::format("{:.1f} ms for {} kernels, one after the other, beside packing",
                                 all.millis, all.kernels - all.unknown);
  if (all.unknown > 0)
    text += fmt::format("; {} were never prepared", all.unknown);
  if (plan.runsPerLoad > 0)
    text +=
        fmt::format("; what one takes beyond {} ms is shared by {:.0f} runs, {} each",
                    PreparationPrice::kFreeMillis, plan.runsPerLoad, duration(all.chargedMicros));
  return text;
}

/// Of the kernel of a step that is charged for it; empty where it is not.
std::string preparationText(const Plan &plan, const RegionReport &report) {
  double charged = PreparationPrice{plan.runsPerLoad}.of(report.prepareMillis);
  return charged > 0 && report.micros >= 0 ? fmt::format("prepares in {:.0f} ms: charged {}",
                                                         report.prepareMillis, duration(charged))
                                           : "";
}

nlohmann::json preparationJson(const Plan &plan) {
  PlanPreparation all = preparationOf(plan);
  return {{"millis", all.millis},
          {"kernels", all.kernels},
          {"unknown", all.unknown},
          {"charged_micros", all.chargedMicros},
          {"runs_per_load", plan.runsPerLoad}};
}

nlohmann::json memoryJson(const Plan &plan) {
  PlanMemory memory = memoryOf(plan);
  nlohmann::json json{{"weight_bytes", memory.weights}, {"packed_bytes", memory.packed},
                      {"code_bytes", memory.code},      {"library_bytes", memory.process()},
                      {"arena_bytes", memory.arena},    {"total_bytes", memory.total()}};
  if (plan.memoryBound != UINT64_MAX)
    json["bound_bytes"] = plan.memoryBound;
  return json;
}

} // namespace

nlohmann::json explainJson(const Plan &plan, const std::vector<StepState> &states) {
  nlohmann::json steps = nlohmann::json::array();
  std::vector<Placed> all = allSteps(plan);
  for (size_t i = 0; i < all.size(); ++i) {
    const PlanStep &step = *all[i].step;
    const PlanBlock &block = plan.blocks[all[i].block];
    nlohmann::json item{
        {"nodes", step.label}, {"kernel", chosenLabel(step)}, {"block", all[i].block}};
    if (!step.bodies.empty())
      item["bodies"] = step.bodies;
    if (step.kind == StepKind::Kernel || step.kind == StepKind::LateBound) {
      item["problem"] = plan.problems[step.problem];
      item["input_layouts"] = step.choice.candidate.inputLayouts;
      item["output_layouts"] = step.choice.candidate.outputLayouts;
      item["workspace_bytes"] = step.workspaceBytes;
      item["in_place"] = isInPlace(block, step);
      item["strided"] = isStrided(block, step);
      item["on_device"] = isOnDevice(step);
      item["measured"] = isMeasured(plan, step);
      item["numerics"] = step.choice.candidate.numerics;
      if (isOnDevice(step)) {
        const Candidate &candidate = step.choice.candidate;
        item["registers"] = candidate.registers;
        item["shared_bytes"] = candidate.sharedBytes;
        item["spilled_bytes"] = candidate.scratchBytes;
        item["workspace_bytes"] = candidate.workspaceBytes;
      }
      if (step.fallback)
        item["fallback"] = step.fallback->candidate.label();
    }
    if (i < states.size() && !states[i].note.empty()) {
      item["running"] = states[i].running;
      item["note"] = states[i].note;
    }
    if (step.report < plan.reports.size()) {
      const RegionReport &report = plan.reports[step.report];
      item["ops"] = report.ops;
      item["micros"] = report.micros;
      if (SymbolValues sizes = timedAt(plan, step); !sizes.empty())
        item["timed_at"] = sizes;
      if (report.prepareMillis >= 0)
        item["prepare_millis"] = report.prepareMillis;
      item["conversion"] = report.conversion;
      item["conversion_micros"] = report.conversionMicros;
      nlohmann::json alternatives = nlohmann::json::array();
      for (const Alternative &alternative : report.alternatives)
        alternatives.push_back({{"label", alternative.label},
                                {"micros", alternative.micros},
                                {"low", alternative.low},
                                {"high", alternative.high},
                                {"outcome", alternative.outcome}});
      item["alternatives"] = std::move(alternatives);
    }
    steps.push_back(std::move(item));
  }
  nlohmann::json timings = nlohmann::json::array();
  for (const WholeModelTiming &timing : plan.timings)
    timings.push_back({{"plan", timing.name},
                       {"micros", timing.micros},
                       {"low", timing.low},
                       {"high", timing.high},
                       {"chosen", timing.chosen},
                       {"ratio", timing.ratio},
                       {"ratio_low", timing.ratioLow},
                       {"ratio_high", timing.ratioHigh}});
  return {{"model", plan.model},
          {"target", plan.target.text()},
          {"device", plan.device ? plan.device->text() : ""},
          {"device_arena_bytes", plan.blocks.front().deviceArenaBytes},
          {"device_kernels", deviceKernels(plan)},
          {"selection", plan.selection},
          {"providers", plan.providers},
          {"arena_bytes", plan.blocks.front().arenaBytes},
          {"typical_sizes", plan.typicalSizes},
          {"memory", memoryJson(plan)},
          {"preparation", preparationJson(plan)},
          {"problems_timed", plan.problemsTimed},
          {"problems_from_cache", plan.problemsFromCache},
          {"problems_estimated", plan.problemsEstimated},
          {"steps", std::move(steps)},
          {"whole_model", std::move(timings)}};
}

void printExplanation(const Plan &plan, const std::vector<StepState> &states, bool everything) {
  std::printf("%s on %s, chosen by %s\n", plan.model.c_str(), plan.target.text().c_str(),
              plan.selection.c_str());
  if (plan.device)
    std::printf("  device %s; %s\n  %s\n", plan.device->text().c_str(), predictionsOf(plan).c_str(),
                deviceKernelsText(plan).c_str());
  if (plan.problemsTimed + plan.problemsFromCache + plan.problemsEstimated > 0)
    std::printf("  problems: %u timed, %u from the cache, %u by estimates\n", plan.problemsTimed,
                plan.problemsFromCache, plan.problemsEstimated);
  printMemory(plan);
  std::printf("  preparing: %s\n", preparationText(plan).c_str());
  for (const auto &[provider, version] : plan.providers)
    std::printf("  provider %-10s %s\n", provider.c_str(), version.c_str());
  for (const auto &[who, share] : shares(plan))
    std::printf("  %4u steps %-20s %10s\n", share.first, who.c_str(),
                duration(share.second).c_str());
  for (const WholeModelTiming &timing : plan.timings)
    std::printf("  whole model, %-20s %10s (%s to %s)%s\n", timing.name.c_str(),
                duration(timing.micros).c_str(), duration(timing.low).c_str(),
                duration(timing.high).c_str(), verdict(timing).c_str());
  std::vector<Placed> all = allSteps(plan);
  for (size_t i = 0; i < all.size(); ++i) {
    const PlanStep &step = *all[i].step;
    const PlanBlock &block = plan.blocks[all[i].block];
    if (all[i].block > 0 && &step == &block.steps.front())
      std::printf("\nblock %u, the body of %s\n", all[i].block,
                  ownerOf(plan, all[i].block).c_str());
    const RegionReport *report =
        step.report < plan.reports.size() ? &plan.reports[step.report] : nullptr;
    std::printf("\n%s\n", step.label.c_str());
    std::printf("  %10s  %s%s%s%s\n", duration(report ? report->micros : -1).c_str(),
                chosenLabel(step).c_str(),
                !isOnDevice(step)        ? ""
                : isMeasured(plan, step) ? ", on the device, measured"
                                         : ", on the device",
                isInPlace(block, step) ? ", in place" : "",
                isStrided(block, step) ? ", strided" : "");
    if (std::string taken = deviceFacts(step.choice.candidate); isOnDevice(step) && !taken.empty())
      std::printf("              %s\n", taken.c_str());
    if (SymbolValues sizes = timedAt(plan, step); !sizes.empty())
      std::printf("              timed at %s\n", plan::sizesText(sizes).c_str());
    if (i < states.size() && !states[i].note.empty())
      std::printf("              runs %s: %s\n", states[i].running.c_str(), states[i].note.c_str());
    if (!report)
      continue;
    if (std::string charged = preparationText(plan, *report); !charged.empty())
      std::printf("              %s\n", charged.c_str());
    if (!report->conversion)
      std::printf("              %s; conversions of its inputs %s\n", report->ops.c_str(),
                  report->conversionMicros > 0 ? duration(report->conversionMicros).c_str()
                                               : "none");
    if (step.kind == StepKind::Kernel || step.kind == StepKind::LateBound)
      if (everything)
        std::printf("              dovetail problem '%s'\n", plan.problems[step.problem].c_str());
    unsigned shown = 0;
    for (const Alternative &alternative : report->alternatives) {
      if (alternative.outcome == "chosen")
        continue;
      if (!everything && ++shown > 4)
        break;
      std::printf("  %10s    %s: %s\n", duration(alternative.micros).c_str(),
                  alternative.label.c_str(),
                  alternative.outcome.substr(0, everything ? std::string::npos : 110).c_str());
    }
  }
}

} // namespace dovetail::cli
