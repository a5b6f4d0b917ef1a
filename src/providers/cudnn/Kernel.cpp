// SPDX-License-Identifier: Apache-2.0
//
// Runs bind pointers once for each set of them: sessions keep their memory, so a run makes nothing
// anew.
#include "providers/cudnn/Kernel.h"

#include "providers/cudnn/Driver.h"

namespace dovetail::cudnn {
namespace {

constexpr size_t kMostPacks = 16; ///< sets of pointers that a kernel remembers

} // namespace

SharedHandle::~SharedHandle() {
  if (handle)
    library->Destroy(handle);
}

LibraryHandle SharedHandle::on(Backend &backend, DeviceStream stream) {
  if (!handle && !backend.check(library->Create(&handle), "opening the device")) {
    handle = nullptr;
    return nullptr;
  }
  return backend.check(library->SetStream(handle, stream), "taking the stream") ? handle : nullptr;
}

Places::Places(const Graph &graph, const providers::ProblemReader &problem)
    : inputCount(problem.raw().input_count), outputCount(problem.raw().output_count) {
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor &tensor = graph.tensors[i];
    if (tensor.isVirtual())
      continue;
    Place place{i, false, 0, tensor.number};
    if (!tensor.number) {
      place.isResult = problem.outputPosition(tensor.value) >= 0;
      place.position = static_cast<uint32_t>(place.isResult ? problem.outputPosition(tensor.value)
                                                            : problem.inputPosition(tensor.value));
    }
    places.push_back(place);
  }
}

std::vector<size_t> Places::tensors() const {
  std::vector<size_t> all;
  for (const Place &place : places)
    all.push_back(place.tensor);
  return all;
}

dvt_code Places::find(const dvt_run_args &args, uint64_t workspaceBytes,
                      std::vector<void *> &addresses, std::string &reason) {
  if (args.input_count != inputCount || args.output_count != outputCount) {
    reason = "run with another number of operands or results than the problem's";
    return DVT_BAD_INPUT;
  }
  if (args.workspace_bytes < workspaceBytes || (workspaceBytes && !args.workspace)) {
    reason = "the workspace is smaller than workspace_bytes says";
    return DVT_BAD_INPUT;
  }
  for (Place &place : places) {
    if (place.number) {
      addresses.push_back(&*place.number);
      continue;
    }
    const dvt_tensor &tensor =
        place.isResult ? args.outputs[place.position] : args.inputs[place.position];
    if (tensor.memory != DVT_MEMORY_DEVICE || !tensor.data) {
      reason = "operands and results are taken in device memory only";
      return DVT_BAD_INPUT;
    }
    addresses.push_back(tensor.data);
  }
  return DVT_OK;
}

namespace {

class PlanKernel final : public Kernel {
public:
  PlanKernel(const Surroundings &surroundings, const Graph &graph,
             const providers::ProblemReader &problem)
      : library(surroundings.library), shared(surroundings.handle), places(graph, problem) {
    for (size_t tensor : places.tensors())
      ids.push_back(Graph::uniqueId(tensor));
  }
  /// Whether it worked; what went wrong is in `backend`. Under the lock of the handle.
  bool load(Backend &backend, LibraryHandle handle, const std::string &json) {
    plan = Object(backend, DescriptorKind::ExecutionPlan);
    plan.set(backend, Attribute::PlanHandle, AttributeType::Handle, 1, &handle);
    plan.set(backend, Attribute::PlanJson, json);
    plan.finalize(backend, "loading the plan");
    if (backend.ok())
      workspace = static_cast<uint64_t>(
          std::max<int64_t>(0, plan.integer(Attribute::PlanWorkspaceBytes, 0)));
    return backend.ok();
  }
  uint64_t workspaceBytes() const override { return workspace; }
  dvt_code run(const dvt_run_args &args, std::string &reason) override {
    std::vector<void *> pointers;
    if (dvt_code code = places.find(args, workspace, pointers, reason); code != DVT_OK)
      return code;
    pointers.push_back(args.workspace);
    Backend backend(*library);
    const auto lock = shared->lock();
    LibraryHandle handle = shared->on(backend, args.stream);
    const Pack *pack = handle ? packFor(backend, std::move(pointers)) : nullptr;
    if (pack)
      backend.check(library->BackendExecute(handle, plan.get(), pack->object.get()), "running");
    reason = backend.reason();
    return backend.ok() ? DVT_OK : DVT_FAILED;
  }

private:
  struct Pack {
    std::vector<void *> pointers;
    Object object;
  };
  const Pack *packFor(Backend &backend, std::vector<void *> pointers);

  std::shared_ptr<const Library> library;
  std::shared_ptr<SharedHandle> shared;
  Places places;
  std::vector<int64_t> ids;
  Object plan;
  std::vector<Pack> packs; ///< of the last runs, the newest last; under the lock of the handle
  uint64_t workspace = 0;
};

const PlanKernel::Pack *PlanKernel::packFor(Backend &backend, std::vector<void *> pointers) {
  for (const Pack &pack : packs)
    if (pack.pointers == pointers)
      return &pack;
  Pack made{std::move(pointers), Object(backend, DescriptorKind::VariantPack)};
  made.object.set(backend, Attribute::PackUniqueIds, ids);
  made.object.set(backend, Attribute::PackDataPointers, AttributeType::VoidPointer,
                  static_cast<int64_t>(ids.size()), made.pointers.data());
  made.object.set(backend, Attribute::PackWorkspace, AttributeType::VoidPointer, 1,
                  &made.pointers.back());
  made.object.finalize(backend, "binding memory");
  if (!backend.ok())
    return nullptr;
  if (packs.size() >= kMostPacks)
    packs.erase(packs.begin());
  packs.push_back(std::move(made));
  return &packs.back();
}

} // namespace

std::unique_ptr<Kernel> loadKernel(const Surroundings &surroundings, const Graph &graph,
                                   const providers::ProblemReader &problem, const std::string &plan,
                                   dvt_code &code, std::string &reason) {
  code = DVT_UNAVAILABLE;
  reason = findDriverForRunning(surroundings.driver);
  if (!reason.empty())
    return nullptr;
  Backend backend(*surroundings.library);
  const auto lock = surroundings.handle->lock();
  LibraryHandle handle = surroundings.handle->on(backend, nullptr);
  auto kernel = std::make_unique<PlanKernel>(surroundings, graph, problem);
  const bool isLoaded = handle && kernel->load(backend, handle, plan);
  code = isLoaded ? DVT_OK : handle ? DVT_FAILED : DVT_UNAVAILABLE;
  reason = backend.reason();
  return isLoaded ? std::move(kernel) : nullptr;
}

} // namespace dovetail::cudnn
