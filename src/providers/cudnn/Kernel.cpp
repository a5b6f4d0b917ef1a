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

Handles::~Handles() {
  for (const auto &[stream, handle] : handles)
    library->Destroy(handle);
}

LibraryHandle Handles::of(Backend &backend, DeviceStream stream) {
  if (auto found = handles.find(stream); found != handles.end())
    return found->second;
  LibraryHandle made = nullptr;
  if (!backend.check(library->Create(&made), "opening the device"))
    return nullptr;
  if (!backend.check(library->SetStream(made, stream), "taking the stream")) {
    library->Destroy(made);
    return nullptr;
  }
  handles[stream] = made;
  return made;
}

std::unique_ptr<Kernel> Kernel::make(std::shared_ptr<const Library> library,
                                     std::shared_ptr<Handles> handles, const Graph &graph,
                                     const providers::ProblemReader &problem,
                                     const std::string &json, const std::string &driver,
                                     dvt_code &code, std::string &reason) {
  code = DVT_UNAVAILABLE;
  reason = findDriverForRunning(driver);
  if (!reason.empty())
    return nullptr;
  auto kernel = std::make_unique<Kernel>();
  Backend backend(*library);
  const auto lock = handles->lock();
  LibraryHandle handle = handles->of(backend, nullptr);
  if (!handle) {
    reason = backend.reason();
    return nullptr;
  }
  code = DVT_FAILED;
  kernel->plan = Object(backend, DescriptorKind::ExecutionPlan);
  kernel->plan.set(backend, Attribute::PlanHandle, AttributeType::Handle, 1, &handle);
  kernel->plan.set(backend, Attribute::PlanJson, json);
  kernel->plan.finalize(backend, "loading the plan");
  if (!backend.ok()) {
    reason = backend.reason();
    return nullptr;
  }
  kernel->workspace = static_cast<uint64_t>(
      std::max<int64_t>(0, kernel->plan.integer(Attribute::PlanWorkspaceBytes, 0)));
  kernel->inputCount = problem.raw().input_count;
  kernel->outputCount = problem.raw().output_count;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor &tensor = graph.tensors[i];
    if (tensor.isVirtual())
      continue;
    Place place{Graph::uniqueId(i), false, 0, tensor.number};
    if (!tensor.number) {
      place.isResult = problem.outputPosition(tensor.value) >= 0;
      place.position = static_cast<uint32_t>(place.isResult ? problem.outputPosition(tensor.value)
                                                            : problem.inputPosition(tensor.value));
    }
    kernel->places.push_back(place);
  }
  kernel->library = std::move(library);
  kernel->handles = std::move(handles);
  code = DVT_OK;
  return kernel;
}

const Kernel::Pack *Kernel::packFor(Backend &backend, std::vector<void *> pointers) {
  for (const Pack &pack : packs)
    if (pack.pointers == pointers)
      return &pack;
  std::vector<int64_t> ids;
  for (const Place &place : places)
    ids.push_back(place.uniqueId);
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

dvt_code Kernel::run(const dvt_run_args &args, std::string &reason) {
  if (args.input_count != inputCount || args.output_count != outputCount) {
    reason = "run with another number of operands or results than the problem's";
    return DVT_BAD_INPUT;
  }
  if (args.workspace_bytes < workspace) {
    reason = "the workspace is smaller than workspace_bytes says";
    return DVT_BAD_INPUT;
  }
  std::vector<void *> pointers;
  for (Place &place : places) {
    if (place.number) {
      pointers.push_back(&*place.number);
      continue;
    }
    const dvt_tensor &tensor =
        place.isResult ? args.outputs[place.position] : args.inputs[place.position];
    if (tensor.memory != DVT_MEMORY_DEVICE || !tensor.data) {
      reason = "operands and results are taken in device memory only";
      return DVT_BAD_INPUT;
    }
    pointers.push_back(tensor.data);
  }
  pointers.push_back(args.workspace);
  Backend backend(*library);
  const auto lock = handles->lock();
  LibraryHandle handle = handles->of(backend, args.stream);
  const Pack *pack = handle ? packFor(backend, std::move(pointers)) : nullptr;
  if (pack)
    backend.check(library->BackendExecute(handle, plan.get(), pack->object.get()), "running");
  reason = backend.reason();
  return backend.ok() ? DVT_OK : DVT_FAILED;
}

} // namespace dovetail::cudnn
