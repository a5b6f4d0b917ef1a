// SPDX-License-Identifier: Apache-2.0
//
// Trials by solution; version 2 of this double has none.
#if DOUBLE_MAJOR >= 3
#include <algorithm>

#include "Convolution.h"

using namespace miopen_double;

namespace {

constexpr int kX = 1, kW = 2, kY = 3;

ConvTensors tensorsOf(Entry &entry, const ConvProblem &problem) {
  auto find = [&](int id) {
    auto found = problem.tensors.find(id);
    entry.need(found != problem.tensors.end(), BadParm, "the problem has no tensor {}", id);
    return found == problem.tensors.end() ? nullptr : &found->second;
  };
  ConvTensors tensors{find(kX), find(kW), find(kY), &problem.convolution};
  check(entry, tensors);
  return tensors;
}

} // namespace

MIOPEN_ENTRY int miopenCreateConvProblem(Ref *problem, Ref convolution, int direction) {
  Entry entry("miopenCreateConvProblem");
  const Convolution *found = entry.described(state().convolutions, convolution, "the convolution");
  entry.need(problem && direction == 0, BadParm, "direction {} is not forward", direction);
  if (entry.isFine())
    *problem = state().problems.add({*found, {}});
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyProblem(Ref problem) {
  Entry entry("miopenDestroyProblem");
  entry.need(state().problems.remove(problem), BadParm, "there is no such problem");
  return entry.end();
}

MIOPEN_ENTRY int miopenSetProblemTensorDescriptor(Ref problem, int id, Ref tensor) {
  Entry entry("miopenSetProblemTensorDescriptor");
  ConvProblem *found = entry.find(state().problems, problem, "problem");
  const Tensor *described = entry.tensor(tensor, "a tensor of the problem");
  entry.need(id >= kX && id <= kY, BadParm, "convolutions have no tensor {}", id);
  if (entry.isFine())
    found->tensors[id] = *described;
  return entry.end();
}

MIOPEN_ENTRY int miopenCreateFindOptions(Ref *options) {
  Entry entry("miopenCreateFindOptions");
  if (entry.need(options, BadParm, "there is no place for the options"))
    *options = state().options.add({});
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyFindOptions(Ref options) {
  Entry entry("miopenDestroyFindOptions");
  entry.need(state().options.remove(options), BadParm, "there are no such options");
  return entry.end();
}

MIOPEN_ENTRY int miopenSetFindOptionWorkspaceLimit(Ref options, size_t bytes) {
  Entry entry("miopenSetFindOptionWorkspaceLimit");
  if (FindOptions *found = entry.find(state().options, options, "options"))
    found->workspaceLimit = bytes;
  return entry.end();
}

MIOPEN_ENTRY int miopenFindSolutions(Ref handle, Ref problem, Ref options, Ref *solutions,
                                     size_t *count, size_t most) {
  Entry entry("miopenFindSolutions");
  Handle *with = entry.handle(handle);
  const ConvProblem *found = entry.find(state().problems, problem, "problem");
  const FindOptions *given = options ? entry.find(state().options, options, "options") : nullptr;
  entry.need(solutions && count, BadParm, "there is no place for the solutions");
  if (!entry.isFine())
    return entry.end();
  const ConvTensors tensors = tensorsOf(entry, *found);
  if (!entry.isFine())
    return entry.end();
  *count = 0;
  for (const Algorithm &algorithm : algorithmsFor(tensors)) {
    if (*count >= most || (given && algorithm.workspaceBytes > given->workspaceLimit))
      continue;
    solutions[(*count)++] = state().solutions.add({*found, algorithm.id, algorithm.workspaceBytes});
    with->found.insert(tensors.text() + "#" + std::to_string(algorithm.id));
  }
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroySolution(Ref solution) {
  Entry entry("miopenDestroySolution");
  entry.need(state().solutions.remove(solution), BadParm, "there is no such solution");
  return entry.end();
}

MIOPEN_ENTRY int miopenGetSolutionWorkspaceSize(Ref solution, size_t *bytes) {
  Entry entry("miopenGetSolutionWorkspaceSize");
  if (const Solution *found = entry.find(state().solutions, solution, "solution"))
    *bytes = found->workspaceBytes;
  return entry.end();
}

MIOPEN_ENTRY int miopenGetSolutionSolverId(Ref solution, uint64_t *id) {
  Entry entry("miopenGetSolutionSolverId");
  if (const Solution *found = entry.find(state().solutions, solution, "solution"))
    *id = found->id;
  return entry.end();
}

MIOPEN_ENTRY int miopenGetSolverIdConvAlgorithm(uint64_t id, int *algorithm) {
  Entry entry("miopenGetSolverIdConvAlgorithm");
  const std::map<uint64_t, int> kinds{
      {11, kWinograd}, {7, kImplicitGemm}, {5, kGemm}, {3, kDirect}};
  if (entry.need(kinds.contains(id), BadParm, "there is no solver {}", id))
    *algorithm = kinds.at(id);
  return entry.end();
}

/// As the interface has it.
struct ArgumentEntry {
  int id;
  Ref *descriptor;
  void *buffer;
};

MIOPEN_ENTRY int miopenRunSolution(Ref handle, Ref solution, size_t count,
                                   const ArgumentEntry *arguments, void *workspace, size_t bytes) {
  Entry entry("miopenRunSolution");
  const Handle *with = entry.handle(handle);
  const Solution *found = entry.find(state().solutions, solution, "solution");
  if (!entry.isFine())
    return entry.end();
  std::map<int, void *> memory;
  for (size_t i = 0; i < count; ++i) {
    entry.need(memory.emplace(arguments[i].id, arguments[i].buffer).second, BadParm,
               "tensor {} is given twice", arguments[i].id);
    entry.need(!arguments[i].descriptor, NotImplemented,
               "other descriptors than the problem's are not supported here");
  }
  const ConvTensors tensors = tensorsOf(entry, found->problem);
  if (!entry.isFine())
    return entry.end();
  entry.need(with->found.contains(tensors.text() + "#" + std::to_string(found->id)), BadParm,
             "the solution is another handle's");
  run(entry, *with, tensors, memory[kX], memory[kW], memory[kY], workspace, bytes,
      found->workspaceBytes);
  return entry.end();
}
#endif
