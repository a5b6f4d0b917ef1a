// SPDX-License-Identifier: Apache-2.0
//
// A plan for reading and comparing: everything that decides what runs, nothing that was measured.
#include <fmt/ranges.h>

#include "driver/WholeModel.h"

namespace dovetail {
namespace {

std::string extentsText(const std::vector<Extent> &extents) {
  std::string text;
  for (const Extent &extent : extents)
    text += (text.empty() ? "" : ",") + extent.text();
  return "[" + text + "]";
}

std::string storageText(const PlanValue &value) {
  switch (value.storage) {
  case Storage::Input:
    return fmt::format("input {}", value.index);
  case Storage::Output:
    return fmt::format("output {}", value.index);
  case Storage::Constant:
    return fmt::format("constant {}", value.index);
  case Storage::Arena:
    return fmt::format(
        "arena +{}{}", value.offset,
        value.inPlaceOf == kNoValue ? "" : fmt::format(", in place of %{}", value.inPlaceOf));
  case Storage::Alias:
    return fmt::format("view of %{}", value.index) +
           (value.strides.empty()
                ? ""
                : fmt::format(" +{} strides [{}]", value.offset, fmt::join(value.strides, ",")));
  case Storage::Dynamic:
    break;
  }
  return "dynamic";
}

std::string numbersText(const std::vector<uint32_t> &numbers) {
  std::string text;
  for (uint32_t number : numbers)
    text += (text.empty() ? "" : ", ") + (number == kNoValue ? "_" : fmt::format("%{}", number));
  return text;
}

std::string choiceText(const KernelChoice &choice) {
  std::string text = choice.candidate.provider + ":" + choice.candidate.algorithm;
  auto layout = [](const std::string &name) { return name.empty() ? std::string("-") : name; };
  text += " (";
  for (const std::string &name : choice.candidate.inputLayouts)
    text += layout(name) + " ";
  text += "->";
  for (const std::string &name : choice.candidate.outputLayouts)
    text += " " + layout(name);
  return text + ")";
}

std::string stepText(const PlanStep &step) {
  std::string body;
  switch (step.kind) {
  case StepKind::Kernel:
    body = choiceText(step.choice);
    break;
  case StepKind::LateBound:
    body = fmt::format(
        "bound at run time, first of {}{}; else {}", fmt::join(step.lateProviders, ", "),
        step.lateAlgorithm.empty() ? "" : " with " + step.lateAlgorithm, choiceText(step.choice));
    break;
  case StepKind::ShapeData:
    body = "extents " + extentsText(step.data);
    break;
  case StepKind::Copy:
    body = "copy";
    break;
  case StepKind::If:
    body = fmt::format("if block {}", fmt::join(step.bodies, " else block "));
    break;
  case StepKind::Loop:
    body = fmt::format("loop block {} carrying {}", step.bodies.front(), step.carried);
    break;
  case StepKind::Scan:
    body = fmt::format("scan block {} carrying {}, axes", step.bodies.front(), step.carried);
    for (const ScanAxis &scanned : step.scanned)
      body += fmt::format(" {}{}", scanned.backwards ? "-" : "", scanned.axis);
    break;
  case StepKind::Refuse:
    body = "refuse";
    break;
  case StepKind::Append:
    body = "append";
    break;
  case StepKind::Transfer:
    body = "transfer";
    break;
  }
  std::string text =
      fmt::format("  {} = {} ({})", numbersText(step.outputs), body, numbersText(step.inputs));
  if (step.workspaceBytes > 0)
    text += fmt::format(" workspace {} +{}", step.workspaceBytes, step.workspaceOffset);
  if (step.fallback)
    text += "; without the library " + choiceText(*step.fallback);
  return text + "  # " + step.label + "\n";
}

} // namespace

std::string planText(const Plan &plan) {
  std::string text = fmt::format("plan of {} by dovetail {}, chosen by {}\ntarget {}\n", plan.model,
                                 plan.producer, plan.selection, plan.target.text());
  if (plan.device)
    text += fmt::format("device {}\n", plan.device->text());
  for (const auto &[provider, version] : plan.providers)
    text += fmt::format("provider {} {}\n", provider, version);
  for (size_t i = 0; i < plan.constants.size(); ++i)
    text += fmt::format("constant {}: {} bytes  # {}\n", i, plan.constants[i].bytes,
                        plan.constants[i].name);
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    const PlanBlock &block = plan.blocks[b];
    text += fmt::format(
        "block {}: arena {} bytes{}\n", b, block.arenaBytes,
        block.deviceArenaBytes ? fmt::format(", on the device {}", block.deviceArenaBytes) : "");
    for (size_t i = 0; i < block.values.size(); ++i) {
      const PlanValue &value = block.values[i];
      text += fmt::format(
          "  %{}: {}{} {} {}{}  # {}\n", i, typeName(value.type) ? typeName(value.type) : "?",
          extentsText(value.extents), value.layout.empty() ? "-" : value.layout, storageText(value),
          value.memory == DVT_MEMORY_DEVICE ? " on the device" : "", value.name);
    }
    for (const PlanStep &step : block.steps)
      text += stepText(step);
    text += fmt::format("  return {}\n", numbersText(block.outputs));
  }
  return text;
}

} // namespace dovetail
