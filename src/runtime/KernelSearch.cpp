// SPDX-License-Identifier: Apache-2.0
//
// Which kernel runs a step in this process. In order: what the plan prefers, its stored fallback
// unless that is the reference, the same algorithm of another version of the library, and what the
// providers at hand offer without a compiler, the reference last.
#include "runtime/KernelSearch.h"

#include <algorithm>
#include <cmath>

#include "artifact/BlockMemory.h"

namespace dovetail {

namespace {
constexpr size_t kMostKeys = 4096; ///< remembered before those of kernels that are gone are dropped
} // namespace

const Provider *Model::Search::providerOf(const KernelChoice &choice, bool sameVersion) {
  const Provider *provider = model.options.plugins->find(choice.candidate.provider);
  if (!provider) {
    if (sameVersion)
      because(fmt::format("provider {} is not there", choice.candidate.provider));
    return nullptr;
  }
  if (sameVersion &&
      loadableVersion(provider->version()) != loadableVersion(choice.providerVersion)) {
    because(fmt::format("provider {} has version {} instead of {}", choice.candidate.provider,
                        provider->version(), choice.providerVersion));
    return nullptr;
  }
  return provider;
}

std::string Model::Search::key(const Provider &provider, const Candidate &candidate) const {
  std::vector<uint32_t> roots = aliasRoots(block);
  // Kernels of the processor and of a device may have one name for the same problem.
  std::string text = fmt::format("{} {} {} {}", candidate.label(), int(candidate.memory),
                                 provider.version(), problem.text());
  for (uint32_t value : step.inputs)
    if (value != kNoValue && block.values[roots[value]].storage == Storage::Constant)
      text += fmt::format(" {}", block.values[roots[value]].index);
  return text;
}

std::shared_ptr<PreparedKernel> Model::Search::prepare(const Provider &provider,
                                                       const Candidate &candidate, int32_t kernel) {
  if (problem.hasSymbols() && !candidate.runtimeExtents) {
    because(fmt::format("{} takes no extents at run time", candidate.label()));
    return nullptr;
  }
  std::string identity = key(provider, candidate);
  if (auto known = model.kernelsByKey.find(identity); known != model.kernelsByKey.end())
    if (auto made = known->second.lock())
      return made;
  auto wanted = request(provider, candidate, kernel);
  if (!wanted)
    return nullptr;
  wanted->parallel = model.parallelFor;
  wanted->packingMicros = &model.packingMicros;
  auto prepared = PreparedKernel::prepare(*wanted, {model.options.plugins, model.artifact.file});
  if (!prepared) {
    because(prepared.error().message);
    return nullptr;
  }
  if (candidate.threading == DVT_THREADING_OPENMP)
    model.anyOpenMp = true;
  if (model.kernelsByKey.size() >= kMostKeys)
    std::erase_if(model.kernelsByKey, [](const auto &entry) { return entry.second.expired(); });
  model.kernelsByKey[identity] = *prepared;
  return std::move(*prepared);
}

std::optional<PreparedKernel::Request>
Model::Search::request(const Provider &provider, const Candidate &candidate, int32_t kernel) {
  PreparedKernel::Request request{&provider, &target(), &problem, &candidate, {}};
  if (onDevice())
    request.device = model.planDevice;
  request.threads = model.threads();
  request.memory = model.planMemory ? model.planMemory
                                    : std::make_shared<ConstantMemory>(model.options.allocator, 0);
  if (kernel >= 0) {
    const KernelBytes &bytes = model.plan().kernels[kernel];
    request.kernel = bytes.data();
    request.kernelBytes = bytes.size();
    request.kernelIsExecutable = model.kernelsAreExecutable;
  }
  std::vector<uint32_t> roots = aliasRoots(block);
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const ProblemValue &operand = problem.values[problem.inputs[i]];
    const PlanValue &root = block.values[roots[step.inputs[i]]];
    const void *data = nullptr;
    if (operand.constant) {
      std::vector<int64_t> extents;
      for (const Extent &extent : operand.extents)
        extents.push_back(extent.staticValue().value_or(-1));
      if (root.storage != Storage::Constant || checkedBytes(operand.type, extents, Layout()) !=
                                                   model.plan().constants[root.index].bytes) {
        because(fmt::format("operand {} is constant in the problem and not in the plan", i));
        return std::nullopt;
      }
      auto bytes = model.constantData(root.index, extents, candidate.inputLayouts[i]);
      if (!bytes) {
        because(bytes.error().message);
        return std::nullopt;
      }
      data = *bytes;
    }
    request.constants.push_back(data);
  }
  return request;
}

std::shared_ptr<PreparedKernel> Model::Search::stored(const KernelChoice &choice) {
  const Provider *provider = providerOf(choice, true);
  return provider ? prepare(*provider, choice.candidate, choice.kernel) : nullptr;
}

std::shared_ptr<PreparedKernel> Model::Search::otherVersion(const KernelChoice &choice) {
  const Provider *provider = providerOf(choice, false);
  if (!provider || choice.kernel >= 0 ||
      loadableVersion(provider->version()) == loadableVersion(choice.providerVersion))
    return nullptr;
  ProviderLock lock;
  Proposal proposal = provider->propose(target(), problem);
  for (const Candidate &candidate : proposal.candidates)
    if (candidate.label() == choice.candidate.label())
      return prepare(*provider, candidate, -1);
  return nullptr;
}

bool Model::Search::fitsLayouts(const Candidate &candidate) const {
  std::vector<uint32_t> roots = aliasRoots(block);
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (!block.values[step.inputs[i]].isLaidOut(candidate.inputLayouts[i]) &&
        block.values[roots[step.inputs[i]]].storage != Storage::Constant)
      return false;
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (!block.values[step.outputs[i]].isLaidOut(candidate.outputLayouts[i]))
      return false;
  return true;
}

/// The first that can be prepared, an algorithm that is preferred before others.
std::shared_ptr<PreparedKernel> Model::Search::offered(const Provider &provider, bool mayConvert,
                                                       const std::string &preferred) {
  if (provider.functions().compile)
    return nullptr; // its kernels need a compiler, which is not here
  ProviderLock lock;
  Proposal proposal = provider.propose(target(), problem);
  auto rank = [&](const Candidate &candidate) {
    return std::make_pair(preferred.empty() || candidate.algorithm != preferred,
                          candidate.estimateMicros < 0 ? INFINITY : candidate.estimateMicros);
  };
  std::stable_sort(proposal.candidates.begin(), proposal.candidates.end(),
                   [&](const Candidate &a, const Candidate &b) { return rank(a) < rank(b); });
  for (const Candidate &candidate : proposal.candidates)
    if (mayConvert || fitsLayouts(candidate))
      if (auto kernel = prepare(provider, candidate, -1))
        return kernel;
  for (const Refusal &refusal : proposal.refusals)
    if (proposal.candidates.empty())
      because(fmt::format("{}: {}", provider.name(), refusal.reason));
  return nullptr;
}

Expected<std::shared_ptr<PreparedKernel>> Model::search(uint32_t blockNumber, uint32_t stepNumber,
                                                        const Problem &problem, bool specialised,
                                                        std::string &note) {
  const PlanBlock &block = plan().blocks[blockNumber];
  const PlanStep &step = block.steps[stepNumber];
  const auto &anyExtents = stepKernels[firstStep(blockNumber) + stepNumber];
  Search search{*this, block, step, problem, {}};
  std::shared_ptr<PreparedKernel> kernel;
  if (specialised && step.kind == StepKind::LateBound)
    for (size_t i = 0; i < step.lateProviders.size() && !kernel; ++i)
      if (const Provider *provider = options.plugins->find(step.lateProviders[i]))
        kernel = search.offered(*provider, false, i == 0 ? step.lateAlgorithm : "");
  if (kernel)
    return kernel;
  if (specialised && anyExtents) {
    note = search.reasons;
    return anyExtents;
  }
  // The bytes stored for a kernel are those of the problem with symbols; without run-time extents
  // they serve none.
  bool storedServes = !specialised || step.choice.kernel < 0;
  if (storedServes && !step.choice.candidate.provider.empty())
    kernel = search.stored(step.choice);
  // The reference takes anything, and comes after all that someone else offers here.
  auto isLastResort = [](const std::string &provider) { return provider == "reference"; };
  const bool hasFallback = step.fallback && !isLastResort(step.fallback->candidate.provider);
  if (!kernel && hasFallback && (!specialised || step.fallback->kernel < 0))
    kernel = search.stored(*step.fallback);
  if (!kernel && storedServes)
    kernel = search.otherVersion(step.choice);
  if (!kernel && hasFallback)
    kernel = search.otherVersion(*step.fallback);
  for (bool last : {false, true})
    for (bool mayConvert : {false, true})
      for (const auto &provider : options.plugins->providers())
        if (!kernel && isLastResort(provider->name()) == last &&
            (!mayConvert || !search.onDevice()))
          kernel = search.offered(*provider, mayConvert);
  if (!kernel)
    return unavailable("step '{}' ({}): no kernel can run it here: {}", step.label,
                       summary(problem), search.reasons);
  note = std::move(search.reasons);
  return kernel;
}

} // namespace dovetail
