// SPDX-License-Identifier: Apache-2.0
//
// The kernels that a plan's steps name, prepared by several threads at once before the steps are
// gone through one by one: libraries generate code for each primitive, and that is most of loading.
// Providers that do not allow it have their turn afterwards, with all threads for their packing.
// Only what succeeds is kept. What fails is tried again in its turn, where the reasons are
// collected and something else is looked for, so that neither results nor messages depend on which
// thread was first.
#include <algorithm>
#include <set>

#include "runtime/KernelSearch.h"

namespace dovetail {

namespace {

struct Task {
  std::string key;
  PreparedKernel::Request request;
  double packingMicros = 0;
  std::shared_ptr<PreparedKernel> made = nullptr; ///< null where it failed
};

/// Tasks in the order in which threads take them: large ones first. Equal problems share what is
/// made first, so a problem's second kernel waits until each has its first.
std::vector<Task *> inOrder(std::vector<Task> &tasks) {
  std::vector<Task *> first, repeated;
  std::set<std::string> seen;
  for (Task &task : tasks) {
    const PreparedKernel::Request &request = task.request;
    bool isNew = seen.insert(request.candidate->label() + " " + request.problem->text()).second;
    (isNew ? first : repeated).push_back(&task);
  }
  for (std::vector<Task *> *list : {&first, &repeated})
    std::stable_sort(list->begin(), list->end(), [](const Task *a, const Task *b) {
      return a->request.candidate->packedBytes > b->request.candidate->packedBytes;
    });
  first.insert(first.end(), repeated.begin(), repeated.end());
  return first;
}

} // namespace

std::vector<std::shared_ptr<PreparedKernel>> Model::prepareAhead() {
  std::vector<std::shared_ptr<PreparedKernel>> made;
  std::vector<Task> tasks;
  std::set<std::string> keys;
  for (const PlanBlock &block : plan().blocks)
    for (const PlanStep &step : block.steps) {
      if (step.kind != StepKind::Kernel && step.kind != StepKind::LateBound)
        continue;
      const Problem &problem = problems[step.problem];
      const Candidate &candidate = step.choice.candidate;
      if (candidate.provider.empty() || (problem.hasSymbols() && !candidate.runtimeExtents))
        continue;
      if (candidate.memory == DVT_MEMORY_DEVICE)
        continue; // its device is current in one thread
      Search search{*this, block, step, problem};
      const Provider *provider = search.providerOf(step.choice, true);
      if (!provider || !provider->preparesConcurrently())
        continue;
      std::string key = search.key(*provider, candidate);
      if (!keys.insert(key).second)
        continue;
      auto request = search.request(*provider, candidate, step.choice.kernel);
      if (!request)
        continue;
      if (candidate.packing != DVT_PACKING_NONE)
        request->share = planMemory->reserve(packedShare(step));
      tasks.push_back({std::move(key), std::move(*request)});
    }
  std::vector<std::shared_ptr<const void>> keepAlive{options.plugins, artifact.file};
  {
    ProviderLock lock;
    for (Task *task : inOrder(tasks))
      crew->addSoon([task, &keepAlive] {
        ProviderLock::Lent lent;
        task->request.packingMicros = &task->packingMicros;
        if (auto made = PreparedKernel::prepare(task->request, keepAlive))
          task->made = std::move(*made);
      });
    crew->finish();
  }
  for (Task &task : tasks) {
    packingMicros += task.packingMicros / crew->size();
    if (!task.made)
      continue;
    if (task.made->candidate().threading == DVT_THREADING_OPENMP)
      anyOpenMp = true;
    kernelsByKey[task.key] = task.made;
    made.push_back(std::move(task.made));
  }
  return made;
}

} // namespace dovetail
