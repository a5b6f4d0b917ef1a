// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan: checks what it is given now, and gives the device the work. Numbers handed over by
// value are read at once, memory when the device comes to it.
#include "Execution.h"

#include <cstring>

#include "../Elements.h"
#include "ElementTypes.h"
#include "Engines.h"

using namespace cudnn_double;

namespace cudnn_double {
namespace {

using A = api::Attribute;
using K = api::DescriptorKind;

constexpr uint64_t kWorkspaceAlignment = 16;

/// Tensors at their addresses.
class DeviceTensors : public GraphMemory {
public:
  DeviceTensors(const api::Graph &graph, const std::vector<void *> &addresses)
      : graph(graph), addresses(addresses) {}
  double load(size_t tensor, int64_t offset) override {
    return simulated::loadElement(addresses[tensor], elementType(graph.tensors[tensor].type),
                                  static_cast<size_t>(offset));
  }
  void store(size_t tensor, int64_t offset, double value) override {
    simulated::storeElement(addresses[tensor], elementType(graph.tensors[tensor].type),
                            static_cast<size_t>(offset), value);
  }

private:
  const api::Graph &graph;
  const std::vector<void *> &addresses;
};

void bindTensor(Entry &entry, Run &run, size_t index, int64_t id, void *address) {
  api::Tensor &tensor = run.graph.tensors[index];
  if (tensor.number) {
    float number = 0;
    std::memcpy(&number, address, sizeof number);
    tensor.number = number;
    return;
  }
  bindMemory(entry, run, index, fmt::format("tensor {}", id), address);
}

void bind(Entry &entry, Run &run, const KnownGraph &known, const Descriptor &pack) {
  const std::vector<int64_t> ids = pack.list<int64_t>(A::PackUniqueIds);
  const auto pointers = pack.list<void *>(A::PackDataPointers);
  run.addresses.assign(known.ids.size(), nullptr);
  size_t bound = 0;
  for (size_t i = 0; i < known.ids.size() && entry.isFine(); ++i) {
    if (run.graph.tensors[i].isVirtual())
      continue;
    size_t at = 0;
    while (at < ids.size() && ids[at] != known.ids[i])
      ++at;
    if (!entry.need(at < ids.size(), BadParam, "the variant pack has nothing for tensor {}",
                    known.ids[i]) ||
        !entry.need(pointers[at], NullPointer, "tensor {} has no address", known.ids[i]))
      return;
    bindTensor(entry, run, i, known.ids[i], pointers[at]);
    ++bound;
  }
  entry.need(bound == ids.size(), BadParam,
             "the variant pack has an id that no tensor in memory has");
}

void bindWorkspace(Entry &entry, Run &run, const Plan &plan, const Descriptor &pack) {
  run.workspaceBytes = plan.workspaceBytes;
  run.workspace = pack.get<void *>(A::PackWorkspace);
  checkWorkspace(entry, run);
}

/// What an operation gives lies apart from everything else.
void expectApart(Entry &entry, const Run &run) {
  for (const api::Operation &op : run.graph.operations) {
    const auto *result = static_cast<const char *>(run.addresses[op.result]);
    if (!result)
      continue;
    const uint64_t bytes = spanBytes(run.graph.tensors[op.result]);
    if (const auto *workspace = static_cast<const char *>(run.workspace))
      entry.need(workspace + run.workspaceBytes <= result || result + bytes <= workspace, BadParam,
                 "a result overlaps the workspace");
    for (const simulated::Range &other : run.ranges) {
      const auto *begin = static_cast<const char *>(other.memory);
      entry.need(begin == result || begin + other.bytes <= result || result + bytes <= begin,
                 BadParam, "a result overlaps {}", other.what);
    }
    for (size_t i = 0; i < run.addresses.size(); ++i)
      entry.need(i == op.result || run.addresses[i] != result, BadParam,
                 "a result lies where another tensor does");
  }
}

} // namespace

uint64_t spanBytes(const api::Tensor &tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    last += (tensor.dims[i] - 1) * tensor.strides[i];
  return static_cast<uint64_t>((last + 1) * elementBytes(tensor.type));
}

void bindMemory(Entry &entry, Run &run, size_t tensor, const std::string &name, void *address) {
  const api::Tensor &of = run.graph.tensors[tensor];
  entry.need(address, NullPointer, "{} has no address", name);
  entry.need(reinterpret_cast<uint64_t>(address) % static_cast<uint64_t>(of.alignment) == 0,
             MisalignedPointer, "{} does not lie at a multiple of {} bytes, as was stated", name,
             of.alignment);
  run.addresses[tensor] = address;
  run.ranges.push_back({name, address, spanBytes(of)});
}

void checkWorkspace(Entry &entry, Run &run) {
  if (run.workspaceBytes == 0) {
    run.workspace = nullptr;
    return;
  }
  entry.need(run.workspace, NullPointer, "the work takes {} bytes of workspace and gets none",
             run.workspaceBytes);
  entry.need(reinterpret_cast<uint64_t>(run.workspace) % kWorkspaceAlignment == 0,
             MisalignedPointer, "the workspace does not lie at a multiple of {} bytes",
             kWorkspaceAlignment);
  run.ranges.push_back({"workspace", run.workspace, run.workspaceBytes});
}

void enqueue(Entry &entry, const char *name, const Handle &handle, std::shared_ptr<Run> run) {
  static const char anchor = 0;
  if (entry.isFine())
    expectApart(entry, *run);
  if (!entry.isFine())
    return;
  const auto driver = simulated::LoadedDriver::beside(&anchor, "../libcuda-sim.so");
  const std::string why = driver.enqueue(name, handle.stream, run->ranges, [run] {
    // Nobody may count on what the workspace held.
    if (run->workspace)
      std::memset(run->workspace, 0x5A, run->workspaceBytes);
    DeviceTensors tensors(run->graph, run->addresses);
    (void)runGraph(run->graph, tensors, run->rounding); // checked before
  });
  entry.need(why.empty(), ExecutionFailed, "{}", why);
}

} // namespace cudnn_double

CUDNN_ENTRY int cudnnBackendExecute(Ref handleRef, Ref planRef, Ref packRef) {
  Entry entry("cudnnBackendExecute");
  const Handle *handle = entry.handle(handleRef);
  const Descriptor *planned = entry.final(planRef, K::ExecutionPlan, "the plan");
  const Descriptor *pack = entry.final(packRef, K::VariantPack, "the variant pack");
  if (!handle || !planned || !pack)
    return entry.end();
  const Plan &plan = *planned->plan;
  entry.need(plan.hasHandle, BadParam, "the plan was made for a described device and not loaded");
  auto run = std::make_shared<Run>();
  run->graph = plan.graph->graph;
  std::string reason;
  run->rounding = findEngine(run->graph, plan.settings, reason)->rounding;
  bind(entry, *run, *plan.graph, *pack);
  bindWorkspace(entry, *run, plan, *pack);
  enqueue(entry, "cudnnBackendExecute", *handle, run);
  return entry.end();
}
