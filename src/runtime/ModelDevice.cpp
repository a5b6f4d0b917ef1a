// SPDX-License-Identifier: Apache-2.0
//
// The device of a plan: opened when the plan is loaded, and given the constants that its steps
// read.
#include "runtime/Model.h"

#include <algorithm>
#include <charconv>

#include "artifact/BlockMemory.h"
#include "runtime/KernelSearch.h"

namespace dovetail {

namespace {

/// The number of "sm_90"; 0 of another name.
int capabilityOf(const std::string &architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (architecture.starts_with(kPrefix))
    std::from_chars(architecture.data() + kPrefix.size(), architecture.data() + architecture.size(),
                    number);
  return number;
}

/// Whether kernels for one can be made to run on the other: the driver assembles PTX for later
/// devices.
bool servesLater(const Target &planned, const std::string &found) {
  return planned.device == "cuda" && capabilityOf(planned.architecture) > 0 &&
         capabilityOf(planned.architecture) < capabilityOf(found);
}

/// Of the constants that steps on the device read.
uint64_t constantBytesOnDevice(const Plan &plan) {
  std::vector<bool> isRead(plan.constants.size(), false);
  for (const PlanBlock &block : plan.blocks) {
    std::vector<uint32_t> roots = aliasRoots(block);
    for (const PlanStep &step : block.steps)
      if (step.kind == StepKind::Kernel && step.choice.candidate.memory == DVT_MEMORY_DEVICE)
        for (uint32_t value : step.inputs)
          if (value != kNoValue && block.values[roots[value]].storage == Storage::Constant)
            isRead[block.values[roots[value]].index] = true;
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < isRead.size(); ++i)
    bytes += isRead[i] ? plan.constants[i].bytes : 0;
  return bytes;
}

} // namespace

/// What no other kernel helps against: the constants alone are more than there is.
Status Model::checkDeviceMemory() {
  auto there = planDevice->driver().freeBytes();
  if (!there)
    return there.takeError();
  uint64_t constants = constantBytesOnDevice(plan()), arena = 0;
  for (const PlanBlock &block : plan().blocks)
    arena = std::max(arena, block.deviceArenaBytes);
  if (constants <= *there)
    return Status::success();
  return unavailable(
      "compiled for {}, which takes {} bytes of constants on the device and {} of "
      "intermediate results; the device here has {} bytes free; compile the model in "
      "f16, or for the processor with --target=cpu",
      plan().device->name(), constants, arena, *there);
}

Status Model::openDevice() {
  if (!plan().device)
    return Status::success();
  const Target &wanted = *plan().device;
  auto driver = device::DeviceDriver::open(
      wanted.device, device::DeviceDriver::pathFor(options.deviceDrivers, wanted.device));
  if (!driver)
    return unavailable("compiled for {}, which cannot run here: {}", wanted.name(),
                       driver.error().message);
  auto found = (*driver)->architecture(0);
  if (!found)
    return found.takeError();
  if (servesLater(wanted, *found))
    options.log(LogLevel::Warning,
                "compiled for {}, the device here is {}:{}: the driver assembles own kernels for "
                "it, and libraries may refuse theirs; compile the model for it with --target={}:{}",
                wanted.name(), wanted.device, *found, wanted.device, *found);
  else if (*found != wanted.architecture)
    return unavailable("compiled for {}, the device here is {}:{}; compile the model for it with "
                       "--target={}:{}",
                       wanted.name(), wanted.device, *found, wanted.device, *found);
  auto opened = device::Device::open(*driver, 0);
  if (!opened)
    return opened.takeError();
  planDevice = std::move(*opened);
  return checkDeviceMemory();
}

Expected<device::DeviceAddress> Model::deviceConstant(uint32_t index,
                                                      const std::vector<int64_t> &extents,
                                                      const std::string &layoutText) {
  std::lock_guard guard(mutex);
  std::string key = fmt::format("{} {}", index, layoutText);
  for (int64_t extent : extents)
    key += fmt::format(",{}", extent);
  if (auto known = deviceConstants.find(key); known != deviceConstants.end())
    return known->second.address();
  const PlanConstant &constant = plan().constants[index];
  auto layout = Layout::parse(layoutText);
  auto bytes = layout ? checkedBytes(constant.type, extents, *layout) : std::nullopt;
  if (!bytes)
    return badInput("constant '{}' in layout {} has no size", constant.name, layoutText);
  auto data = constantData(index, extents, layoutText);
  if (!data)
    return data.takeError();
  auto memory = planDevice->allocate(*bytes);
  if (!memory)
    return unavailable("constant '{}': {}", constant.name, memory.error().message);
  if (!upload) {
    auto made = Upload::create(planDevice, options.log);
    if (!made)
      return made.takeError();
    upload = std::move(*made);
  }
  if (Status status = upload->bring(memory->address(), *data, *bytes); !status)
    return unavailable("constant '{}': {}", constant.name, status.error().message);
  return deviceConstants.emplace(std::move(key), std::move(*memory)).first->second.address();
}

void Model::endUpload() {
  std::lock_guard guard(mutex);
  upload = nullptr;
}

bool Model::takeLessWorkspace(uint32_t number) {
  std::lock_guard guard(mutex);
  const PlanBlock &block = plan().blocks[number];
  std::vector<std::pair<uint64_t, uint32_t>> steps; // by workspace
  for (uint32_t i = 0; i < block.steps.size(); ++i) {
    const auto &kernel = stepKernels[firstStep(number) + i];
    if (kernel && kernel->candidate().memory == DVT_MEMORY_DEVICE && block.steps[i].fallback &&
        !lessWorkspace.contains(firstStep(number) + i))
      steps.emplace_back(kernel->workspaceBytes(), i);
  }
  std::sort(steps.rbegin(), steps.rend());
  for (auto [bytes, i] : steps) {
    const PlanStep &step = block.steps[i];
    uint32_t index = firstStep(number) + i;
    Search search{*this, block, step, problems[step.problem]};
    auto kernel = search.stored(*step.fallback);
    if (!kernel || kernel->workspaceBytes() >= bytes)
      continue;
    stepNotes[index] = fmt::format("the device has no memory for {} bytes of workspace; this takes "
                                   "{}",
                                   bytes, kernel->workspaceBytes());
    options.log(LogLevel::Warning, "step '{}': {} runs instead of {}: {}", step.label,
                kernel->candidate().label(), stepKernels[index]->candidate().label(),
                stepNotes[index]);
    lessWorkspace[index] = kernel->workspaceBytes();
    stepKernels[index] = std::move(kernel);
    return true;
  }
  return false;
}

std::optional<uint64_t> Model::workspaceInstead(uint32_t block, uint32_t step) const {
  std::lock_guard guard(mutex);
  auto found = lessWorkspace.find(firstStep(block) + step);
  return found == lessWorkspace.end() ? std::nullopt : std::optional(found->second);
}

} // namespace dovetail
