// SPDX-License-Identifier: Apache-2.0
//
// Loading: the target fits, every step gets a kernel, constants that only live on in packed form
// leave memory.
#include "runtime/Model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <set>
#include <sstream>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "artifact/BlockMemory.h"
#include "artifact/PlanCheck.h"

namespace dovetail {

namespace {

/// Kernels bound late that a model remembers; sessions keep those they use beyond that.
constexpr size_t kMostLateKernels = 256;
constexpr uint64_t kLeastLateBytes = uint64_t(64) << 20;

using Clock = std::chrono::steady_clock;

double millisSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Names of all providers that some step may ask. Own ones may always have to help out.
std::vector<std::string> providersOf(const Plan &plan) {
  std::set<std::string> names{"native", "reference"};
  for (const PlanBlock &block : plan.blocks)
    for (const PlanStep &step : block.steps) {
      if (step.kind != StepKind::Kernel && step.kind != StepKind::LateBound)
        continue;
      names.insert(step.choice.candidate.provider);
      if (step.fallback)
        names.insert(step.fallback->candidate.provider);
      names.insert(step.lateProviders.begin(), step.lateProviders.end());
    }
  return {names.begin(), names.end()};
}

} // namespace

Model::Model(const ModelOptions &options) : options(options) {}

Expected<std::shared_ptr<Model>> Model::load(const std::string &path, const ModelOptions &options) {
  auto start = Clock::now();
  auto artifact = readArtifact(path, {options.alternatives});
  if (!artifact)
    return artifact.takeError();
  std::shared_ptr<Model> model(new Model(options));
  model->artifact = std::move(*artifact);
  model->times.readMillis = millisSince(start);
  model->beginThreads();
  model->beginCheck();
  start = Clock::now();
  if (!options.plugins && options.findPlugins)
    model->options.plugins = options.findPlugins(providersOf(model->plan()));
  model->times.pluginsMillis = millisSince(start);
  if (Status status = model->start(); !status)
    return status.takeError();
#ifdef __GLIBC__
  ::malloc_trim(0); // reading and packing leave gaps behind them
#endif
  const LoadTimes &times = model->times;
  options.log(
      LogLevel::Debug,
      "{}: read in {:.1f} ms, plug-ins opened in {:.1f} ms, constants checked in {:.1f} ms, "
      "kernels made ready in {:.1f} ms, constants packed in {:.1f} ms",
      path, times.readMillis, times.pluginsMillis, times.constantsMillis, times.kernelsMillis,
      times.packingMillis);
  return model;
}

Expected<std::shared_ptr<Model>> Model::create(Plan plan, const ModelOptions &options) {
  std::shared_ptr<Model> model(new Model(options));
  model->artifact.plan = std::move(plan);
  model->beginThreads();
  if (Status status = model->start(); !status)
    return status.takeError();
  return model;
}

Status Model::checkTarget() const {
  const Target &planned = artifact.plan.target;
  Target host = Target::host(0);
  if (planned.device != host.device)
    return unavailable("compiled for device {}, this is {}", planned.device, host.device);
  if (planned.architecture != host.architecture)
    return unavailable("compiled for {}, this machine is {}", planned.architecture,
                       host.architecture);
  std::string missing;
  std::istringstream names(planned.features);
  for (std::string name; std::getline(names, name, ',');)
    if (!host.hasFeature(name))
      missing += (missing.empty() ? "" : ", ") + name;
  if (!missing.empty())
    return unavailable("compiled for a processor with {}, which this one lacks; compile the model "
                       "for this machine",
                       missing);
  return Status::success();
}

Status Model::start() {
  if (!options.plugins)
    return internalError("a model was loaded without plug-ins");
  if (artifact.problems.empty()) {
    auto checked = checkPlan(plan());
    if (!checked)
      return checked.takeError();
    problems = std::move(*checked);
  } else {
    problems = std::move(artifact.problems);
  }
  if (Status status = checkTarget(); !status)
    return status;
  if (Status status = openDevice(); !status)
    return status;
  if (!crew)
    if (Status status = checkConstants(); !status)
      return status;
  kernelsAreExecutable = artifact.makeKernelsExecutable();
  Status status = prepareSteps();
  crew = nullptr;
  return status;
}

void Model::beginThreads() {
  uint32_t usable = Target::host(0).threads;
  // Kernels were chosen for the planned number of threads and are asked for by it, whatever number
  // they run with.
  target = plan().target;
  uint32_t threads = options.threads ? options.threads : std::clamp(target.threads, 1u, usable);
  if (options.parallel) {
    std::memcpy(&hostParallel, options.parallel,
                std::min<size_t>(options.parallel->struct_size, sizeof hostParallel));
    parallelFor = &hostParallel;
    return;
  }
  ownParallel = std::make_unique<ParallelFor>(threads);
  parallelFor = ownParallel->get();
  if (threads > 1)
    crew = std::make_unique<LoadCrew>(threads - 1);
}

void Model::beginCheck() {
  size_t count = plan().constants.size();
  if (!crew || !options.checkConstants || !artifact.file)
    return;
  checks.resize(count);
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return plan().constants[a].bytes > plan().constants[b].bytes;
  });
  for (uint32_t constant : order)
    crew->add([this, constant] {
      auto start = Clock::now();
      checks[constant].status = artifact.checkConstant(constant);
      checks[constant].millis = millisSince(start);
    });
}

Status Model::endCheck() {
  Status first = Status::success();
  for (ConstantCheck &check : checks) {
    times.constantsMillis += check.millis / crew->size();
    if (first && !check.status)
      first = std::move(check.status);
  }
  checks.clear();
  return first;
}

/// All at once and with the host's threads: read one by one, in between other work, they take as
/// long as everything else.
Status Model::checkConstants() {
  size_t count = plan().constants.size();
  if (!options.checkConstants || !artifact.file || count == 0)
    return Status::success();
  auto start = Clock::now();
  struct Shares {
    const Artifact &artifact;
    std::vector<std::vector<uint32_t>> constants; ///< of each share
    std::vector<Status> found;                    ///< of each constant
  } shares{artifact, std::vector<std::vector<uint32_t>>(threads()), std::vector<Status>(count)};
  // Largest first, each to the share that has least.
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return plan().constants[a].bytes > plan().constants[b].bytes;
  });
  std::vector<uint64_t> bytes(shares.constants.size(), 0);
  for (uint32_t constant : order) {
    size_t least = std::min_element(bytes.begin(), bytes.end()) - bytes.begin();
    shares.constants[least].push_back(constant);
    bytes[least] += plan().constants[constant].bytes;
  }
  parallelFor->run(
      parallelFor->context, int64_t(shares.constants.size()),
      [](void *argument, int64_t begin, int64_t end, uint32_t) {
        auto &work = *static_cast<Shares *>(argument);
        for (int64_t share = begin; share < end; ++share)
          for (uint32_t constant : work.constants[share])
            work.found[constant] = work.artifact.checkConstant(constant);
      },
      &shares);
  for (Status &status : shares.found)
    if (!status)
      return status.takeError();
  times.constantsMillis = millisSince(start);
  return Status::success();
}

uint64_t Model::packedShare(const PlanStep &step) {
  uint64_t bytes = step.choice.candidate.packedBytes;
  // Each packed operand is rounded up by itself.
  uint64_t rest = kTensorAlignment * step.inputs.size();
  return ConstantMemory::blockBytes(bytes > UINT64_MAX - rest ? bytes : bytes + rest);
}

uint64_t Model::packedBytes() const {
  // Bounded by what packing can make sensible use of, whatever the plan says.
  uint64_t packed = 0, most = uint64_t(1) << 20;
  for (const PlanConstant &constant : plan().constants)
    most += std::min(constant.bytes, UINT64_MAX / 8 - most / 4) * 4;
  for (const PlanBlock &block : plan().blocks)
    for (const PlanStep &step : block.steps)
      if (step.kind == StepKind::Kernel && step.choice.candidate.packing != DVT_PACKING_NONE)
        packed = std::min(most, packed + std::min(most, packedShare(step)));
  return packed;
}

Status Model::prepareSteps() {
  auto start = Clock::now();
  uint32_t count = 0;
  for (const PlanBlock &block : plan().blocks) {
    firstSteps.push_back(count);
    count += static_cast<uint32_t>(block.steps.size());
  }
  stepKernels.resize(count);
  stepNotes.resize(count);
  planMemory = std::make_shared<ConstantMemory>(options.allocator, packedBytes());
  std::vector<std::shared_ptr<PreparedKernel>> ahead;
  if (crew) {
    ahead = prepareAhead();
    if (Status status = endCheck(); !status)
      return status;
  }
  for (uint32_t block = 0; block < plan().blocks.size(); ++block)
    for (uint32_t step = 0; step < plan().blocks[block].steps.size(); ++step)
      if (Status status = prepareStep(block, step); !status)
        return status;
  planMemory->trim();
  planMemory = nullptr; // the kernels have it
  evictPackedConstants();
  times.packingMillis = packingMicros / 1000;
  times.kernelsMillis = millisSince(start) - times.packingMillis;
  return Status::success();
}

Status Model::prepareStep(uint32_t block, uint32_t number) {
  const PlanStep &step = plan().blocks[block].steps[number];
  uint32_t index = firstStep(block) + number;
  switch (step.kind) {
  case StepKind::ShapeData:
  case StepKind::Copy:
    return Status::success();
  case StepKind::If:
  case StepKind::Loop:
  case StepKind::Scan:
  case StepKind::Refuse:
  case StepKind::Append:
  case StepKind::Transfer:
    return Status::success();
  case StepKind::Kernel:
  case StepKind::LateBound:
    break;
  }
  const Problem &problem = problems[step.problem];
  // What depends on symbols waits for their values, except kernels that take any.
  if (problem.hasSymbols() && !step.choice.candidate.runtimeExtents)
    return Status::success();
  std::string note;
  auto kernel = search(block, number, problem, false, note);
  if (!kernel) {
    if (problem.hasSymbols()) { // there is still late binding
      stepNotes[index] = kernel.error().message;
      return Status::success();
    }
    return kernel.takeError();
  }
  if (!note.empty())
    options.log(LogLevel::Warning, "step '{}': {} runs instead of {}: {}", step.label,
                (*kernel)->candidate().label(), step.choice.candidate.label(), note);
  stepNotes[index] = std::move(note);
  stepKernels[index] = std::move(*kernel);
  return Status::success();
}

Expected<std::shared_ptr<PreparedKernel>> Model::kernelFor(uint32_t block, uint32_t number,
                                                           const SymbolValues &symbols) {
  std::lock_guard guard(mutex);
  const PlanStep &step = plan().blocks[block].steps[number];
  uint32_t index = firstStep(block) + number;
  if (stepKernels[index] && step.kind == StepKind::Kernel)
    return stepKernels[index];
  Problem specialised = problems[step.problem].specialize(symbols);
  std::string key = fmt::format("{} {}", index, specialised.text());
  if (auto found = lateKernels.find(key); found != lateKernels.end()) {
    found->second.lastUse = ++uses;
    return found->second.kernel;
  }
  std::string note;
  auto kernel = search(block, number, specialised, true, note);
  if (!kernel)
    return kernel.takeError();
  options.log(LogLevel::Debug, "step '{}': bound to {}{}{}", step.label,
              (*kernel)->candidate().label(), note.empty() ? "" : ": ", note);
  uint64_t bytes = *kernel == stepKernels[index] ? 0 : (*kernel)->packedBytes();
  while (!lateKernels.empty() &&
         (lateKernels.size() >= kMostLateKernels || lateBytes + bytes > mostLateBytes())) {
    auto oldest =
        std::min_element(lateKernels.begin(), lateKernels.end(), [](const auto &a, const auto &b) {
          return a.second.lastUse < b.second.lastUse;
        });
    lateBytes -= oldest->second.bytes;
    lateKernels.erase(oldest);
  }
  lateKernels[key] = {*kernel, ++uses, bytes};
  lateBytes += bytes;
  return std::move(*kernel);
}

uint64_t Model::mostLateBytes() const {
  uint64_t bytes = 0;
  for (const PlanConstant &constant : plan().constants)
    bytes += constant.bytes;
  return std::max(bytes, kLeastLateBytes);
}

Expected<const void *> Model::constantData(uint32_t index, const std::vector<int64_t> &extents,
                                           const std::string &layoutText) {
  std::lock_guard guard(mutex);
  const PlanConstant &constant = plan().constants[index];
  auto layout = Layout::parse(layoutText);
  if (!layout)
    return layout.takeError();
  if (layout->isRowMajor())
    return constant.data;
  std::string key = fmt::format("{} {}", index, layout->text());
  for (int64_t extent : extents)
    key += fmt::format(",{}", extent);
  auto &buffer = convertedConstants[key];
  if (!buffer) {
    auto bytes = checkedBytes(constant.type, extents, *layout);
    auto made = std::make_unique<HostBuffer>(options.allocator);
    if (!bytes || !made->reserve(*bytes))
      return unavailable("no memory for constant '{}' in layout {}", constant.name, layoutText);
    auto start = Clock::now();
    reorder(constant.type, extents, Layout(), constant.data, *layout, made->data());
    packingMicros += millisSince(start) * 1000;
    buffer = std::move(made);
  }
  return buffer->data();
}

std::vector<StepState> Model::steps() const {
  std::lock_guard guard(mutex);
  std::vector<StepState> states;
  for (const PlanBlock &block : plan().blocks)
    for (const PlanStep &step : block.steps) {
      size_t i = states.size();
      StepState &state = states.emplace_back();
      state.label = step.label;
      if (step.kind == StepKind::Kernel || step.kind == StepKind::LateBound)
        state.planned = step.choice.candidate.label();
      if (stepKernels[i] && step.kind == StepKind::Kernel)
        state.running = stepKernels[i]->candidate().label();
      state.note = stepNotes[i];
    }
  return states;
}

const PlanStep *Model::planned(uint32_t step) const {
  size_t block =
      std::upper_bound(firstSteps.begin(), firstSteps.end(), step) - firstSteps.begin() - 1;
  return &plan().blocks[block].steps[step - firstSteps[block]];
}

void Model::evictPackedConstants() {
  if (!artifact.file)
    return;
  std::vector<bool> needed(plan().constants.size(), false);
  size_t number = 0;
  for (const PlanBlock &block : plan().blocks) {
    std::vector<uint32_t> roots = aliasRoots(block);
    auto need = [&](uint32_t value) {
      if (value != kNoValue && block.values[roots[value]].storage == Storage::Constant)
        needed[block.values[roots[value]].index] = true;
    };
    for (uint32_t value : block.outputs)
      need(value);
    for (const PlanStep &step : block.steps) {
      const auto &kernel = stepKernels[number++];
      if (!kernel || step.kind != StepKind::Kernel ||
          (kernel->candidate().packing == DVT_PACKING_NONE &&
           kernel->candidate().memory == DVT_MEMORY_HOST))
        for (uint32_t value : step.inputs)
          need(value);
    }
  }
  for (size_t c = 0; c < needed.size(); ++c)
    if (!needed[c] && plan().constants[c].data)
      artifact.file->evict(static_cast<const uint8_t *>(plan().constants[c].data) -
                               artifact.file->data(),
                           plan().constants[c].bytes);
}

} // namespace dovetail
