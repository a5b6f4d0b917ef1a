// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by the three ways that the library has to choose an algorithm: its ranking without a
// trial, trials by algorithm, and trials by solution, which replace the former where they are
// there. What wants more workspace than the plan gives, or rounds in another class, is passed over.
#include <algorithm>

#include "providers/miopen/Step.h"

namespace dovetail::miopen {
namespace {

bool transforms(Algorithm algorithm) {
  return algorithm == Algorithm::Winograd || algorithm == Algorithm::Fft;
}

class Convolution : public Step {
public:
  Convolution(Turn &turn, const Call &call, const Choice &choice)
      : choice(choice), xAt(call.operands[0]), wAt(call.operands[1]),
        x(describe(turn, call.tensors[0])), w(describe(turn, call.tensors[1])),
        y(describe(turn, call.result)), convolution(describeConvolution(turn, call)) {}
  uint64_t workspaceBytes() const override { return workspace; }

protected:
  bool suits(Algorithm algorithm, uint64_t bytes) const {
    return bytes <= choice.workspaceBytes && (choice.mayTransform || !transforms(algorithm));
  }
  bool failWithoutAlgorithm(Turn &turn, size_t offered, const std::string &reason) const {
    return turn.fail("of " + std::to_string(offered) + " algorithms for this convolution none " +
                     (choice.mayTransform ? "" : "without transforms ") + "works with " +
                     std::to_string(choice.workspaceBytes) + " bytes of workspace" +
                     (reason.empty() ? "" : " (" + reason + ")"));
  }
  /// The library wants no address where it gets no bytes.
  void *scratch(const Pointers &pointers) const { return workspace ? pointers.workspace : nullptr; }

  Choice choice;
  uint32_t xAt, wAt; ///< among the problem's inputs
  TensorDescriptor x, w, y;
  ConvolutionDescriptor convolution;
  uint64_t workspace = 0;
};

class Immediate final : public Convolution {
public:
  Immediate(Turn &turn, const Call &call, const Choice &choice) : Convolution(turn, call, choice) {
    const Library &api = turn.api();
    size_t count = 0;
    if (!turn.isFine() ||
        !turn.check(api.ConvolutionForwardGetSolutionCount(turn.handle(), w.get(), x.get(),
                                                           convolution.get(), y.get(), &count),
                    "counting the algorithms"))
      return;
    std::vector<ConvSolution> solutions(count);
    if (count > 0 && !turn.check(api.ConvolutionForwardGetSolution(
                                     turn.handle(), w.get(), x.get(), convolution.get(), y.get(),
                                     solutions.size(), &count, solutions.data()),
                                 "asking for the algorithms"))
      return;
    solutions.resize(std::min(solutions.size(), count));
    std::string reason;
    for (const ConvSolution &solution : solutions) {
      if (!suits(solution.algorithm, solution.workspaceBytes))
        continue;
      const Status status = api.ConvolutionForwardCompileSolution(
          turn.handle(), w.get(), x.get(), convolution.get(), y.get(), solution.id);
      if (status == 0) {
        id = solution.id;
        workspace = solution.workspaceBytes;
        return;
      }
      reason = "compiling solution " + std::to_string(solution.id) + ": " + api.describe(status);
    }
    failWithoutAlgorithm(turn, solutions.size(), reason);
  }
  void run(Turn &turn, const Pointers &pointers) override {
    turn.check(turn.api().ConvolutionForwardImmediate(
                   turn.handle(), w.get(), pointers.inputs[wAt], x.get(), pointers.inputs[xAt],
                   convolution.get(), y.get(), pointers.result, scratch(pointers), workspace, id),
               "convolution");
  }

private:
  uint64_t id = 0;
};

/// Memory on the device while a kernel is prepared.
class Scratch {
public:
  Scratch(const Library &api, uint64_t bytes) : api(api) {
    if (bytes > 0 && api.hipMalloc(&memory, bytes) != 0)
      memory = nullptr;
  }
  ~Scratch() {
    if (memory)
      (void)api.hipFree(memory);
  }
  Scratch(const Scratch &) = delete;
  void *get() const { return memory; }

private:
  const Library &api;
  void *memory = nullptr;
};

uint64_t bytesOf(const Tensor &tensor) {
  return static_cast<uint64_t>(providers::product(tensor.dims)) * elementBytes(tensor.type);
}

class Find final : public Convolution {
public:
  Find(Turn &turn, const Call &call, const Choice &choice) : Convolution(turn, call, choice) {
    const Library &api = turn.api();
    if (!turn.isFine())
      return;
    if (!api.hipMalloc) {
      turn.fail("memory to try algorithms with is not to be had: HIP's hipMalloc was not found");
      return;
    }
    size_t wanted = 0;
    if (!turn.check(api.ConvolutionForwardGetWorkSpaceSize(turn.handle(), w.get(), x.get(),
                                                           convolution.get(), y.get(), &wanted),
                    "asking for the workspace"))
      return;
    const uint64_t given = std::min<uint64_t>(wanted, choice.workspaceBytes);
    const Scratch source(api, bytesOf(call.tensors[0])), weights(api, bytesOf(call.tensors[1])),
        result(api, bytesOf(call.result)), space(api, given);
    if (!source.get() || !weights.get() || !result.get() || (given && !space.get())) {
      turn.fail("the device has too little memory to try algorithms");
      return;
    }
    FoundAlgorithm found[kMostAlgorithms] = {};
    int count = 0;
    if (!turn.check(api.FindConvolutionForwardAlgorithm(turn.handle(), x.get(), source.get(),
                                                        w.get(), weights.get(), convolution.get(),
                                                        y.get(), result.get(), kMostAlgorithms,
                                                        &count, found, space.get(), given, false),
                    "trying the algorithms"))
      return;
    count = std::clamp(count, 0, kMostAlgorithms);
    std::stable_sort(found, found + count, [](const FoundAlgorithm &a, const FoundAlgorithm &b) {
      return a.millis < b.millis;
    });
    for (int i = 0; i < count; ++i)
      if (suits(found[i].algorithm, found[i].workspaceBytes)) {
        algorithm = found[i].algorithm;
        workspace = found[i].workspaceBytes;
        return;
      }
    failWithoutAlgorithm(turn, static_cast<size_t>(count), "");
  }
  void run(Turn &turn, const Pointers &pointers) override {
    turn.check(turn.api().ConvolutionForward(turn.handle(), &kOne, x.get(), pointers.inputs[xAt],
                                             w.get(), pointers.inputs[wAt], convolution.get(),
                                             algorithm, &kZero, y.get(), pointers.result,
                                             scratch(pointers), workspace),
               "convolution");
  }

private:
  static constexpr int kMostAlgorithms = 8; ///< the library knows five
  Algorithm algorithm = Algorithm::Gemm;
};

/// The library takes memory for its trials by itself.
class FindSolution final : public Convolution {
public:
  FindSolution(Turn &turn, const Call &call, const Choice &choice)
      : Convolution(turn, call, choice) {
    const Library &api = turn.api();
    if (!turn.isFine())
      return;
    Owned<FindOptionsRef> options(turn, api.CreateFindOptions, api.DestroyFindOptions,
                                  "making options");
    ProblemRef made = nullptr;
    if (!turn.isFine() ||
        !turn.check(api.CreateConvProblem(&made, convolution.get(), ProblemDirection::Forward),
                    "making a problem"))
      return;
    const Owned<ProblemRef> problem(made, api.DestroyProblem);
    const std::pair<ArgumentId, TensorRef> tensors[] = {
        {ArgumentId::X, x.get()}, {ArgumentId::W, w.get()}, {ArgumentId::Y, y.get()}};
    for (const auto &[id, tensor] : tensors)
      if (!turn.check(api.SetProblemTensorDescriptor(made, id, tensor), "describing a problem"))
        return;
    SolutionRef found[kMostSolutions] = {};
    size_t count = 0;
    if (!turn.check(api.SetFindOptionWorkspaceLimit(options.get(), choice.workspaceBytes),
                    "limiting the workspace") ||
        !turn.check(
            api.FindSolutions(turn.handle(), made, options.get(), found, &count, kMostSolutions),
            "trying the algorithms"))
      return;
    std::vector<Owned<SolutionRef>> solutions;
    for (size_t i = 0; i < std::min(count, kMostSolutions); ++i)
      solutions.emplace_back(found[i], api.DestroySolution);
    take(turn, std::move(solutions));
  }
  void run(Turn &turn, const Pointers &pointers) override {
    const TensorArgument arguments[] = {
        {ArgumentId::X, nullptr, const_cast<void *>(pointers.inputs[xAt])},
        {ArgumentId::W, nullptr, const_cast<void *>(pointers.inputs[wAt])},
        {ArgumentId::Y, nullptr, pointers.result}};
    turn.check(turn.api().RunSolution(turn.handle(), solution.get(), std::size(arguments),
                                      arguments, scratch(pointers), workspace),
               "convolution");
  }

private:
  /// The first that suits; the library has them in the order of the times it took.
  void take(Turn &turn, std::vector<Owned<SolutionRef>> solutions) {
    const Library &api = turn.api();
    for (Owned<SolutionRef> &offered : solutions) {
      size_t bytes = 0;
      uint64_t solver = 0;
      Algorithm algorithm{};
      if (!turn.check(api.GetSolutionWorkspaceSize(offered.get(), &bytes), "reading a solution") ||
          !turn.check(api.GetSolutionSolverId(offered.get(), &solver), "reading a solution") ||
          !turn.check(api.GetSolverIdConvAlgorithm(solver, &algorithm), "reading a solution"))
        return;
      if (!suits(algorithm, bytes))
        continue;
      workspace = bytes;
      solution = std::move(offered);
      return;
    }
    failWithoutAlgorithm(turn, solutions.size(), "");
  }
  static constexpr size_t kMostSolutions = 32;
  Owned<SolutionRef> solution;
};

} // namespace

std::unique_ptr<Step> makeConvolution(Turn &turn, const Call &call, const Choice &choice) {
  std::unique_ptr<Step> step;
  if (choice.by == Choice::By::Immediate)
    step = std::make_unique<Immediate>(turn, call, choice);
  else if (turn.api().hasFind2())
    step = std::make_unique<FindSolution>(turn, call, choice);
  else
    step = std::make_unique<Find>(turn, call, choice);
  return turn.isFine() ? std::move(step) : nullptr;
}

} // namespace dovetail::miopen
