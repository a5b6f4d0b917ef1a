// SPDX-License-Identifier: Apache-2.0
//
// Builds every candidate of a problem, checks it against the reference and times the right ones
// side by side: interleaved rounds, caches swept to the model's footprint before each run, slow
// ones dropped early.
#include "plan/Trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <new>
#include <set>

#include "artifact/PlanPreparation.h"
#include "plan/Quanta.h"
#include "plan/TrialKernel.h"

namespace dovetail::plan {
namespace {

using Clock = std::chrono::steady_clock;

double microsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

std::string labelOf(const Candidate &candidate) { return candidate.label(); }

/// As a kernel's run would report it.
dvt_code failed(dvt_error &error, const Error &why) {
  std::snprintf(error.message, sizeof error.message, "%s", why.message.c_str());
  return DVT_FAILED;
}

} // namespace

const char *outcomeName(TrialOutcome outcome) {
  constexpr const char *kNames[] = {
      "measured",     "checked",       "build failed", "prepare failed", "run failed",
      "wrong result", "out of bounds", "timeout",      "out of memory",  "crashed"};
  return kNames[static_cast<size_t>(outcome)];
}

std::optional<TrialOutcome> parseOutcome(std::string_view name) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(TrialOutcome::Crashed); ++i)
    if (name == outcomeName(static_cast<TrialOutcome>(i)))
      return static_cast<TrialOutcome>(i);
  return std::nullopt;
}

struct TrialRunner::State {
  const PluginSet &plugins;
  Target target;
  Target host; ///< computes the truth
  ParallelFor parallel;
  std::vector<uint8_t> sweep;
  std::unique_ptr<TrialDevice> device; ///< null: kernels for devices are not run
  std::string noFailure;

  State(const PluginSet &plugins, Target given)
      : plugins(plugins), target(std::move(given)),
        host(target.isDevice() ? Target::host(0) : target), parallel(host.threads) {}

  bool runs() const { return !target.isDevice() || device; }
  /// Whether a kernel took the device with it: then nothing more is tried.
  bool isLost() const { return device && !device->failure().empty(); }

  /// Reads memory until what kernels left in the caches is displaced as it would be by the rest of
  /// the model.
  void displaceCaches(uint64_t footprintBytes) {
    uint64_t wanted =
        std::min<uint64_t>(footprintBytes, 2 * std::max<uint64_t>(target.l3Bytes, target.l2Bytes));
    if (device) {
      (void)device->displaceCaches(wanted);
      return;
    }
    if (sweep.size() < wanted)
      sweep.assign(wanted, 1);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < wanted; i += 64)
      sum += sweep[i];
    asm volatile("" : : "r"(sum) : "memory");
  }
};

TrialRunner::TrialRunner(const PluginSet &plugins, Target target)
    : state(std::make_unique<State>(plugins, std::move(target))) {}
TrialRunner::~TrialRunner() = default;

Status TrialRunner::openDevice(const std::string &drivers) {
  if (state->device || !state->target.isDevice())
    return Status::success();
  auto opened = TrialDevice::open(state->target, drivers);
  if (!opened)
    return opened.takeError();
  state->device = std::move(*opened);
  return Status::success();
}

const std::string &TrialRunner::deviceFailure() const {
  return state->device ? state->device->failure() : state->noFailure;
}

namespace {

class ProblemEvaluation {
public:
  ProblemEvaluation(TrialRunner::State &state, const Problem &problem,
                    const EvaluationOptions &options, const PhaseReport &report);
  Evaluation run(const Evaluation *given);

private:
  void proposeAll();
  void take(const Evaluation &given);
  Proposal propose(const Provider &provider, const Target &target);
  void build(size_t index, const Provider &provider);
  void load(size_t index, const Provider &provider);
  bool prepare(Prepared &prepared, Trial &trial);
  bool prepareAgain(Prepared &prepared, Trial &trial);
  Status bind(Prepared &prepared, const Trial &trial);
  Status place(Prepared &prepared);
  bool readsIntegers() const;
  void check(Prepared &prepared, Trial &trial);
  dvt_code runInPlace(Prepared &prepared, Trial &trial, dvt_error &error);
  double difference(size_t output, const Trial &trial, const void *found) const;
  bool computeTruth();
  std::vector<uint8_t> rowMajor(const void *written, const Trial &trial, size_t output) const;
  void timeAll();
  void displaceCaches(Prepared &prepared, const Trial &trial, uint64_t footprint);
  double timeOnce(Prepared &prepared, uint32_t repeats);
  void tell(const Trial &trial, const char *phase) {
    if (report)
      report(labelOf(trial.candidate), phase);
  }
  bool wanted(const Provider &provider) const {
    return options.providers.empty() ||
           std::find(options.providers.begin(), options.providers.end(), provider.name()) !=
               options.providers.end();
  }

  TrialRunner::State &state;
  const Problem &problem;
  const EvaluationOptions &options;
  const PhaseReport &report;
  ProblemView view;
  bool runnable = true; ///< all extents are known
  std::vector<TrialValue> inputs, outputs;
  std::vector<std::vector<uint8_t>> truth;
  Evaluation result;
  std::vector<const Provider *> providerOf;
  std::vector<Prepared> ready;
};

/// Values whose noise is to be as small as the weights of that many inputs are in trained networks:
/// recurrence with larger ones is chaos, in which no two kernels agree for long.
std::map<uint32_t, double> dampedValues(const Problem &problem) {
  std::map<uint32_t, double> damped;
  for (const ProblemOp &op : problem.ops)
    if (op.name == "lstm" || op.name == "gru" || op.name == "rnn")
      for (size_t i : {1, 2})
        if (const ProblemValue &weights = problem.values[op.inputs[i]]; !weights.extents.empty())
          damped[op.inputs[i]] =
              1 / std::sqrt(std::max<double>(
                      1, double(weights.extents.back().evaluate({}).value_or(64))));
  return damped;
}

ProblemEvaluation::ProblemEvaluation(TrialRunner::State &state, const Problem &problem,
                                     const EvaluationOptions &options, const PhaseReport &report)
    : state(state), problem(problem), options(options), report(report), view(problem) {
  // Kernels for a device are only compiled where it was not opened: there may be none here.
  runnable &= options.run && state.runs();
  const bool runs = options.build && runnable;
  auto tensor = [&](uint32_t number) {
    TrialValue value;
    value.value = &problem.values[number];
    auto extents = extentsUnder(*value.value, options.representative);
    runnable &= extents.has_value();
    // Memory for trials begins with the first element and has no elements of less than a byte.
    for (int64_t stride : value.value->strides)
      runnable &= stride >= 0 && typeBits(value.value->type) >= 8;
    value.extents = extents.value_or(std::vector<int64_t>(value.value->extents.size(), 1));
    value.elements = 1;
    for (int64_t extent : value.extents)
      value.elements *= extent;
    return value;
  };
  // Extents that no operand has follow from data, and are other ones than the representative's.
  std::set<std::string> known;
  for (uint32_t number : problem.inputs)
    for (const Extent &extent : problem.values[number].extents)
      for (const std::string &symbol : extent.symbols())
        known.insert(symbol);
  for (uint32_t number : problem.outputs)
    for (const Extent &extent : problem.values[number].extents)
      for (const std::string &symbol : extent.symbols())
        runnable &= known.contains(symbol);
  // Index 0 is valid whatever the extents are; noise is not.
  bool indexing = std::any_of(problem.ops.begin(), problem.ops.end(), [](const ProblemOp &op) {
    constexpr std::string_view names[] = {"one_hot",
                                          "reverse_sequence",
                                          "roi_align",
                                          "max_unpool",
                                          "tensor_scatter",
                                          "cum_sum",
                                          "softmax_cross_entropy_loss",
                                          "negative_log_likelihood_loss"};
    return op.name.starts_with("gather") || op.name.starts_with("scatter") ||
           std::find(std::begin(names), std::end(names), op.name) != std::end(names);
  });
  std::set<uint32_t> divisors; // zero is none for integers
  for (const ProblemOp &op : problem.ops)
    if ((op.name == "div" || op.name == "mod") && op.inputs.size() > 1)
      divisors.insert(op.inputs[1]);
  uint64_t seed = 1;
  const std::map<uint32_t, double> damped = dampedValues(problem);
  for (uint32_t number : problem.inputs) {
    inputs.push_back(tensor(number));
    if (!runs)
      continue; // proposals need no data
    auto special = quantizedNoise(problem, number, inputs.back().extents, seed);
    inputs.back().bytes = special ? std::move(*special)
                                  : noise(inputs.back().value->type, inputs.back().elements, seed);
    ++seed;
    dvt_type type = inputs.back().value->type;
    if (auto found = damped.find(number); found != damped.end())
      scaleNoise(type, inputs.back().bytes, found->second);
    if (indexing && (type == DVT_I32 || type == DVT_I64))
      std::fill(inputs.back().bytes.begin(), inputs.back().bytes.end(), uint8_t(0));
    if (divisors.contains(number))
      makeIntegersOdd(type, inputs.back().bytes);
  }
  for (uint32_t number : problem.outputs) {
    outputs.push_back(tensor(number));
    if (runs)
      outputs.back().bytes.resize(bytesOf(outputs.back().value->type, outputs.back().elements));
  }
}

Proposal ProblemEvaluation::propose(const Provider &provider, const Target &target) {
  std::string label = provider.name() + ":";
  if (std::find(options.skip.begin(), options.skip.end(), label) != options.skip.end())
    return {};
  if (report)
    report(label, "propose");
  return provider.propose(target, problem);
}

/// In place of proposals. What cannot be tried here stays as it is.
void ProblemEvaluation::take(const Evaluation &given) {
  std::set<std::string> skip(options.skip.begin(), options.skip.end());
  result.refusals = given.refusals;
  for (const Trial &trial : given.trials) {
    const Candidate &candidate = trial.candidate;
    if (skip.count(candidate.label()) || skip.count(candidate.provider + ":"))
      continue;
    const Provider *provider = state.plugins.find(candidate.provider);
    result.trials.push_back(trial);
    providerOf.push_back(provider && wanted(*provider) && trial.usable() ? provider : nullptr);
  }
}

void ProblemEvaluation::proposeAll() {
  std::set<std::string> skip(options.skip.begin(), options.skip.end());
  std::set<std::string> only(options.algorithms.begin(), options.algorithms.end());
  for (const auto &provider : state.plugins.providers()) {
    if (!wanted(*provider))
      continue;
    Proposal proposal = propose(*provider, state.target);
    for (Refusal &refusal : proposal.refusals)
      result.refusals.emplace_back(provider->name(), std::move(refusal));
    for (Candidate &candidate : proposal.candidates) {
      if (skip.count(candidate.label()))
        continue;
      if (!only.empty() && !only.count(candidate.label()) &&
          !only.count(candidate.provider + ":" + candidate.algorithm))
        continue;
      Trial trial;
      trial.candidate = std::move(candidate);
      result.trials.push_back(std::move(trial));
      providerOf.push_back(provider.get());
    }
  }
}

void ProblemEvaluation::build(size_t index, const Provider &provider) {
  Trial &trial = result.trials[index];
  tell(trial, "compile");
  auto start = Clock::now();
  auto kernel = provider.compile(state.target, problem, trial.candidate);
  trial.compileMillis = microsSince(start) / 1000;
  if (!kernel) {
    trial.outcome = TrialOutcome::BuildFailed;
    trial.detail = kernel.error().message;
    return;
  }
  trial.kernel = std::move(*kernel);
  load(index, provider);
}

/// Makes a built kernel ready to run.
void ProblemEvaluation::load(size_t index, const Provider &provider) {
  if (!runnable || state.isLost())
    return;
  Trial &trial = result.trials[index];
  Prepared prepared;
  prepared.provider = &provider;
  prepared.trial = index;
  prepared.device = trial.candidate.memory == DVT_MEMORY_DEVICE ? state.device.get() : nullptr;
  if (!prepare(prepared, trial) || !prepareAgain(prepared, trial))
    return;
  if (Status bound = bind(prepared, trial); !bound) {
    trial.outcome = TrialOutcome::OutOfMemory;
    trial.detail = bound.error().message;
    return;
  }
  ready.push_back(std::move(prepared));
  ready.back().args.inputs = ready.back().inputs.data();
  ready.back().args.outputs = ready.back().outputs.data();
}

bool ProblemEvaluation::prepare(Prepared &prepared, Trial &trial) {
  tell(trial, "prepare");
  std::vector<const char *> strings;
  dvt_candidate candidate = trial.candidate.view(strings);
  std::vector<const void *> constants;
  for (size_t i = 0; i < inputs.size(); ++i)
    constants.push_back(inputs[i].value->constant ? inputs[i].as(trial.candidate.inputLayouts[i])
                                                  : nullptr);
  dvt_prepare_args args{};
  args.struct_size = sizeof args;
  args.constants = constants.data();
  args.kernel = trial.kernel.data();
  args.kernel_bytes = trial.kernel.size();
  args.threads = state.host.threads;
  args.parallel = state.parallel.get();
  args.memory_context = prepared.packed.get();
  args.allocate = [](void *memory, uint64_t bytes) {
    return static_cast<PackedBlocks *>(memory)->take(bytes);
  };
  double packingMicros = 0;
  args.packing_micros = &packingMicros;
  dvt_target target = (prepared.device ? state.target : state.host).view();
  dvt_error error{};
  auto start = Clock::now();
  dvt_code code = prepared.provider->functions().prepare(
      prepared.provider->handle(), &target, view, &candidate, &args, &prepared.kernel, &error);
  trial.prepareMillis = microsSince(start) / 1000;
  trial.packingMillis = packingMicros / 1000;
  if (code == DVT_OK)
    return true;
  trial.outcome =
      code == DVT_OUT_OF_MEMORY ? TrialOutcome::OutOfMemory : TrialOutcome::PrepareFailed;
  trial.badInput = code == DVT_BAD_INPUT;
  trial.detail = error.message;
  prepared.kernel = nullptr;
  return false;
}

/// What a library does once in a process falls to its first kernel, and others use the machine,
/// too: what seems slow to prepare is prepared anew, and the least time counts. False where that
/// fails.
bool ProblemEvaluation::prepareAgain(Prepared &prepared, Trial &trial) {
  constexpr int kMostTimes = 2;
  for (int i = 0; i < kMostTimes && !prepared.device &&
                  trial.preparationMillis() > PreparationPrice::kFreeMillis;
       ++i) {
    const double prepareMillis = trial.prepareMillis, packingMillis = trial.packingMillis,
                 least = trial.preparationMillis();
    prepared.drop(); // kernels of equal problems share what is made while one of them lives
    if (!prepare(prepared, trial))
      return false;
    if (trial.preparationMillis() < least)
      continue;
    trial.prepareMillis = prepareMillis;
    trial.packingMillis = packingMillis;
  }
  return true;
}

Status ProblemEvaluation::bind(Prepared &prepared, const Trial &trial) {
  auto tensor = [](TrialValue &value, void *data) {
    dvt_tensor result{};
    result.data = data;
    result.extents = value.extents.data();
    if (!value.value->strides.empty())
      result.strides = value.value->strides.data();
    result.rank = static_cast<uint32_t>(value.extents.size());
    result.type = value.value->type;
    return result;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    prepared.inputs.push_back(tensor(inputs[i], inputs[i].as(trial.candidate.inputLayouts[i])));
  for (size_t i = 0; i < outputs.size(); ++i) {
    prepared.outputMemory.push_back(std::make_unique<GuardedBuffer>(
        outputs[i].physicalBytes(trial.candidate.outputLayouts[i])));
    std::memset(prepared.outputMemory.back()->data(), 0xFF, prepared.outputMemory.back()->size());
    prepared.outputs.push_back(tensor(outputs[i], prepared.outputMemory.back()->data()));
  }
  uint64_t workspace = prepared.provider->functions().workspace_bytes(prepared.kernel);
  prepared.workspace = std::make_unique<GuardedBuffer>(workspace);
  dvt_run_args &args = prepared.args;
  args.struct_size = sizeof args;
  args.input_count = static_cast<uint32_t>(prepared.inputs.size());
  args.output_count = static_cast<uint32_t>(prepared.outputs.size());
  args.workspace = prepared.workspace->data();
  args.workspace_bytes = workspace;
  args.parallel = state.parallel.get();
  return prepared.device ? place(prepared) : Status::success();
}

/// Binds copies on the device in place of what bind() made on the host. Operands are shared by all
/// kernels that take them in the same layout.
Status ProblemEvaluation::place(Prepared &prepared) {
  const Candidate &candidate = result.trials[prepared.trial].candidate;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto copy = inputs[i].onDevice(*prepared.device, candidate.inputLayouts[i]);
    if (!copy)
      return copy.takeError();
    prepared.inputs[i].data = TrialDevice::dataOf(**copy);
    prepared.inputs[i].memory = DVT_MEMORY_DEVICE;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto copy = prepared.device->copy(*prepared.outputMemory[i]);
    if (!copy)
      return copy.takeError();
    prepared.outputs[i].data = TrialDevice::dataOf(*copy);
    prepared.outputs[i].memory = DVT_MEMORY_DEVICE;
    prepared.outputCopies.push_back(std::move(*copy));
  }
  auto copy = prepared.device->copy(*prepared.workspace);
  if (!copy)
    return copy.takeError();
  prepared.args.workspace = TrialDevice::dataOf(*copy);
  prepared.args.stream = prepared.device->stream();
  prepared.workspaceCopy = std::move(*copy);
  return Status::success();
}

/// An output as it was written, with its elements in row-major order.
std::vector<uint8_t> ProblemEvaluation::rowMajor(const void *written, const Trial &trial,
                                                 size_t output) const {
  const TrialValue &value = outputs[output];
  const auto *from = static_cast<const uint8_t *>(written);
  auto layout = Layout::parse(trial.candidate.outputLayouts[output]);
  bool strided = !value.value->strides.empty();
  if (!strided && (!layout || layout->isRowMajor()))
    return {from, from + value.bytes.size()};
  std::vector<uint8_t> bytes(value.bytes.size());
  if (strided)
    gather(value.value->type, value.extents, value.value->strides, from, bytes.data());
  else
    reorder(value.value->type, value.extents, *layout, from, Layout{}, bytes.data());
  return bytes;
}

bool ProblemEvaluation::computeTruth() {
  const Provider *reference = state.plugins.find("reference");
  if (!reference)
    return false;
  Proposal proposal = propose(*reference, state.host);
  if (proposal.candidates.empty())
    return false;
  Trial trial;
  trial.candidate = proposal.candidates.front();
  tell(trial, "truth");
  Prepared prepared;
  prepared.provider = reference;
  if (!prepare(prepared, trial) || !bind(prepared, trial))
    return false;
  prepared.args.inputs = prepared.inputs.data();
  prepared.args.outputs = prepared.outputs.data();
  dvt_error error{};
  if (prepared.run(error) != DVT_OK)
    return false;
  for (size_t i = 0; i < outputs.size(); ++i)
    truth.push_back(rowMajor(prepared.outputMemory[i]->data(), trial, i));
  return true;
}

/// Of an output in the candidate's layout from the truth. Quantised results that are as near as
/// they have to be do not differ.
double ProblemEvaluation::difference(size_t output, const Trial &trial, const void *found) const {
  const dvt_type type = outputs[output].value->type;
  const std::vector<uint8_t> dense = rowMajor(found, trial, output);
  if (unsigned allowed = allowedQuanta(problem, problem.outputs[output]))
    if (auto quanta =
            quantaBetween(type, truth[output].data(), dense.data(), outputs[output].elements);
        quanta && *quanta <= allowed)
      return 0;
  return relativeDifference(type, truth[output].data(), dense.data(), outputs[output].elements);
}

/// Runs once more with each output in the memory of a copy of the operand that it may share it
/// with, as a plan would.
dvt_code ProblemEvaluation::runInPlace(Prepared &prepared, Trial &trial, dvt_error &error) {
  std::vector<dvt_tensor> operands = prepared.inputs, results = prepared.outputs;
  std::vector<std::unique_ptr<GuardedBuffer>> shared;
  std::vector<device::DeviceMemory> copies; // of `shared`
  std::vector<size_t> sharedOf(outputs.size(), SIZE_MAX);
  for (size_t i = 0; i < outputs.size(); ++i) {
    int32_t k = outputs[i].value->mayAlias;
    const Candidate &candidate = trial.candidate;
    if (k < 0 || inputs[k].value->constant ||
        candidate.inputLayouts[k] != candidate.outputLayouts[i])
      continue;
    uint64_t bytes = inputs[k].physicalBytes(candidate.inputLayouts[k]);
    if (bytes != outputs[i].physicalBytes(candidate.outputLayouts[i]))
      continue;
    auto memory = std::make_unique<GuardedBuffer>(bytes);
    std::memcpy(memory->data(), inputs[k].as(candidate.inputLayouts[k]), bytes);
    void *data = memory->data();
    if (prepared.device) {
      auto copy = prepared.device->copy(*memory);
      if (!copy)
        return failed(error, copy.error());
      data = TrialDevice::dataOf(*copy);
      copies.push_back(std::move(*copy));
    }
    operands[k].data = results[i].data = data;
    sharedOf[i] = shared.size();
    shared.push_back(std::move(memory));
  }
  if (shared.empty())
    return DVT_OK;
  dvt_run_args args = prepared.args;
  args.inputs = operands.data();
  args.outputs = results.data();
  dvt_code code = prepared.provider->functions().run(prepared.kernel, &args, &error);
  if (code == DVT_OK && prepared.device)
    if (Status status = prepared.fetch(); !status)
      return failed(error, status.error());
  for (size_t i = 0; code == DVT_OK && i < outputs.size(); ++i) {
    bool isShared = sharedOf[i] != SIZE_MAX;
    GuardedBuffer &found = isShared ? *shared[sharedOf[i]] : *prepared.outputMemory[i];
    if (isShared && prepared.device)
      if (Status status = prepared.device->fetch(copies[sharedOf[i]], found); !status)
        return failed(error, status.error());
    if (!found.intact())
      return failed(error, internalError("writes beside its outputs in place"));
    trial.maxError = std::max(trial.maxError, difference(i, trial, found.data()));
  }
  if (code == DVT_OK && !prepared.workspace->intact())
    return failed(error, internalError("writes beside its workspace in place"));
  return code;
}

/// Whether integers are read whose values may have to be counts, places or extents.
bool ProblemEvaluation::readsIntegers() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const TrialValue &input) {
    return !input.value->constant && (input.value->type == DVT_I32 || input.value->type == DVT_I64);
  });
}

void ProblemEvaluation::check(Prepared &prepared, Trial &trial) {
  tell(trial, "run");
  dvt_error error{};
  auto start = Clock::now();
  dvt_code code = prepared.run(error);
  if (code == DVT_OK && prepared.device)
    if (Status status = prepared.fetch(); !status)
      code = failed(error, status.error());
  prepared.samples.push_back(microsSince(start));
  if (code == DVT_BAD_INPUT && prepared.provider->name() == "reference" && readsIntegers()) {
    prepared.live = false; // the noise made no sense; what the run gives may
    return;
  }
  if (code != DVT_OK) {
    trial.outcome = code == DVT_OUT_OF_MEMORY ? TrialOutcome::OutOfMemory : TrialOutcome::RunFailed;
    trial.badInput = code == DVT_BAD_INPUT;
    trial.detail = error.message;
    prepared.live = false;
    return;
  }
  bool intact = prepared.workspace->intact();
  for (const auto &memory : prepared.outputMemory)
    intact &= memory->intact();
  if (!intact) {
    trial.outcome = TrialOutcome::OutOfBounds;
    trial.detail = "wrote beside its outputs or its workspace";
    prepared.live = false;
    return;
  }
  if (truth.empty())
    return;
  trial.compared = true;
  double bound = errorBound(problem, trial.candidate.numerics);
  for (size_t i = 0; i < outputs.size(); ++i)
    trial.maxError =
        std::max(trial.maxError, difference(i, trial, prepared.outputMemory[i]->data()));
  if (trial.maxError <= bound && runInPlace(prepared, trial, error) != DVT_OK) {
    trial.outcome = TrialOutcome::RunFailed;
    trial.detail = fmt::format("in place: {}", error.message);
    prepared.live = false;
    return;
  }
  if (!(trial.maxError <= bound)) {
    trial.outcome = TrialOutcome::WrongResult;
    trial.detail =
        std::isinf(trial.maxError)
            ? fmt::format("an integer differs from the reference's{}, or only one of two is finite",
                          allowedQuanta(problem, problem.outputs[0]) ? " by more than a quantum"
                                                                     : "")
            : fmt::format(
                  "differs from the reference by {:.2g} of the largest magnitude, allowed {:.2g}",
                  trial.maxError, bound);
    prepared.live = false;
  }
}

/// Microseconds of a run; negative where the device cannot tell.
double ProblemEvaluation::timeOnce(Prepared &prepared, uint32_t repeats) {
  dvt_error error{};
  auto runAll = [&] {
    for (uint32_t i = 0; i < repeats; ++i)
      prepared.run(error);
  };
  if (prepared.device) {
    auto micros = prepared.device->time(runAll);
    return micros ? *micros / repeats : -1;
  }
  auto start = Clock::now();
  runAll();
  return microsSince(start) / repeats;
}

/// Before a run: all is displaced but what the step before has just written.
void ProblemEvaluation::displaceCaches(Prepared &prepared, const Trial &trial, uint64_t footprint) {
  state.displaceCaches(footprint);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value->constant)
      continue;
    const std::string &layout = trial.candidate.inputLayouts[i];
    if (prepared.device) {
      (void)prepared.device->touch(inputs[i].copies[layout]);
      continue;
    }
    auto *bytes = static_cast<volatile uint8_t *>(prepared.inputs[i].data);
    uint64_t size = inputs[i].inLayout[layout]->size();
    for (uint64_t at = 0; at < size; at += 64)
      bytes[at] = bytes[at];
  }
}

void ProblemEvaluation::timeAll() {
  bool small = options.footprintBytes <= state.target.l2Bytes;
  size_t timed = 0;
  for (Prepared &prepared : ready) {
    bool reference = prepared.provider->name() == "reference";
    if (reference && ready.size() > 1 && !options.timeReference)
      prepared.live = false;
    timed += prepared.live;
    prepared.samples.clear();
  }
  if (timed == 0)
    return;
  auto start = Clock::now();
  // What matters little is timed briefly: fewer rounds, and caches swept only beyond the second.
  bool brief = options.budgetMillis < 50;
  uint64_t footprint =
      brief ? std::min(options.footprintBytes, 4 * state.target.l2Bytes) : options.footprintBytes;
  constexpr int kMaxRounds = 15;
  const int leastRounds = brief ? 3 : 5;
  std::map<std::string, double> bestOfLayout;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (round >= leastRounds && microsSince(start) / 1000 > options.budgetMillis)
      break;
    double best = std::numeric_limits<double>::infinity();
    for (Prepared &prepared : ready) {
      if (!prepared.live)
        continue;
      Trial &trial = result.trials[prepared.trial];
      tell(trial, "time");
      if (!small)
        displaceCaches(prepared, trial, footprint);
      uint32_t repeats = 1;
      if (small && !prepared.samples.empty())
        repeats = static_cast<uint32_t>(
            std::clamp(200 / std::max(prepared.samples.back(), 0.1), 1.0, 1000.0));
      double micros = timeOnce(prepared, repeats);
      if (state.isLost())
        return;
      if (micros < 0) {
        trial.outcome = TrialOutcome::RunFailed;
        trial.detail = "the device does not tell its time";
        prepared.live = false;
        prepared.samples.clear();
        continue;
      }
      if (round > 0 || !small)
        prepared.samples.push_back(micros);
      else
        prepared.samples.assign(1, micros);
      std::string layouts;
      for (const std::string &text : trial.candidate.inputLayouts)
        layouts += text + ",";
      for (const std::string &text : trial.candidate.outputLayouts)
        layouts += ">" + text;
      double least = *std::min_element(prepared.samples.begin(), prepared.samples.end());
      auto [slot, isNew] = bestOfLayout.try_emplace(layouts, least);
      slot->second = std::min(slot->second, least);
      best = std::min(best, least);
      if (round >= 1 && least > 1.5 * slot->second)
        prepared.live = false;
    }
    if (round >= 1)
      for (Prepared &prepared : ready)
        if (prepared.live &&
            *std::min_element(prepared.samples.begin(), prepared.samples.end()) > 8 * best)
          prepared.live = false;
  }
  for (Prepared &prepared : ready) {
    if (prepared.samples.empty())
      continue;
    Trial &trial = result.trials[prepared.trial];
    std::vector<double> samples = prepared.samples;
    if (samples.size() > 2 && small)
      samples.erase(samples.begin());
    std::sort(samples.begin(), samples.end());
    // Ranks of the binomial 95 % interval of a median.
    double n = static_cast<double>(samples.size());
    auto rank = [&](double value) {
      return samples[static_cast<size_t>(std::clamp(value, 0.0, n - 1))];
    };
    trial.micros = median(samples);
    trial.low = rank(std::floor(n / 2 - 0.98 * std::sqrt(n)));
    trial.high = rank(std::ceil(n / 2 + 0.98 * std::sqrt(n)));
    trial.outcome = TrialOutcome::Measured;
  }
}

Evaluation ProblemEvaluation::run(const Evaluation *given) {
  if (given) {
    take(*given);
    for (size_t i = 0; i < result.trials.size(); ++i)
      if (providerOf[i])
        load(i, *providerOf[i]);
  } else {
    proposeAll();
    for (Trial &trial : result.trials)
      trial.built = options.build;
    if (!options.build)
      return std::move(result);
    for (size_t i = 0; i < result.trials.size(); ++i)
      build(i, *providerOf[i]);
  }
  if (!runnable || state.isLost())
    return std::move(result);
  bool others = std::any_of(ready.begin(), ready.end(),
                            [](const Prepared &p) { return p.provider->name() != "reference"; });
  if (options.check && others)
    computeTruth();
  for (Prepared &prepared : ready)
    if (!state.isLost() && (prepared.provider->name() != "reference" || !others))
      check(prepared, result.trials[prepared.trial]);
  std::erase_if(ready, [](const Prepared &p) { return !p.live; });
  if (options.measure && !state.isLost())
    timeAll();
  return std::move(result);
}

} // namespace

Evaluation TrialRunner::evaluate(const Problem &problem, const EvaluationOptions &options,
                                 const PhaseReport &report, const Evaluation *given) {
  return ProblemEvaluation(*state, problem, options, report).run(given);
}

} // namespace dovetail::plan
