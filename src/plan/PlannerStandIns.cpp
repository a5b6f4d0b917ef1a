// SPDX-License-Identifier: Apache-2.0
//
// Own kernels that stand beside those of libraries and run where a library is gone, is of another
// version or refuses. What the budget did not reach was never built, so they are built here: on a
// device for each plan, as they take part in its memory, and on the processor for the plan that was
// chosen in the end.
#include "plan/PlannerState.h"

#include <algorithm>

namespace dovetail::plan {
namespace {

/// Whether both work on the operands as they lie; constants come in any layout.
bool worksAlike(const Problem &problem, const Candidate &one, const Candidate &other) {
  auto areAlike = [&](const std::vector<uint32_t> &values, const std::vector<std::string> &a,
                      const std::vector<std::string> &b) {
    for (size_t i = 0; i < values.size(); ++i)
      if (const ProblemValue &value = problem.values[values[i]];
          !value.constant && !isSameLayout(a[i], b[i], value.extents))
        return false;
    return true;
  };
  return areAlike(problem.inputs, one.inputLayouts, other.inputLayouts) &&
         areAlike(problem.outputs, one.outputLayouts, other.outputLayouts);
}

} // namespace

/// The best own kernel that works like one of a library: on the same operands, laid out alike.
const Trial *Planner::State::ownRival(const Evaluation &evaluation, const Trial &chosen,
                                      const Problem &problem) const {
  const Trial *best = nullptr;
  for (const Trial &trial : evaluation.trials)
    if (trial.candidate.provider == "native" && allowed(trial) &&
        trial.candidate.memory == chosen.candidate.memory &&
        worksAlike(problem, trial.candidate, chosen.candidate) &&
        (!best || rankOf(trial, problem) < rankOf(*best, problem)))
      best = &trial;
  return best;
}

/// On a device nothing was built but what was chosen. A library's kernels may be refused there, or
/// find too little memory for their workspace: then an own one takes over, which is built here.
Status Planner::State::buildRivals(const CoverSolution &solution) {
  for (uint32_t index : solution.options) {
    const OptionMeaning &meaning = optionMeanings[index];
    if (meaning.kind != OptionMeaning::Kind::Kernel ||
        meaning.trial->candidate.memory != DVT_MEMORY_DEVICE ||
        !isLibrary(meaning.trial->candidate.provider))
      continue;
    const Problem &problem = problems[meaning.region].problem;
    const Trial *own = ownRival(*onDevice[meaning.region], *meaning.trial, problem);
    if (!own || own->built)
      continue;
    announce("building stand-ins", 0, 0, summary(problem));
    if (Status status = deviceEvaluations->build(problem, *own, representative); !status)
      return status;
  }
  return Status::success();
}

const Trial *standIn(const Evaluation &evaluation, const Candidate &chosen, const Problem &problem,
                     const CostModel &costs, const std::function<bool(const Trial &)> &mayBeTaken) {
  constexpr double kConversionMicros = 20; // that a kernel in other layouts needs around it
  const Trial *best = nullptr;
  std::pair<bool, double> bestRank;
  for (const Trial &other : evaluation.trials) {
    const Candidate &candidate = other.candidate;
    bool isReference = candidate.provider == "reference";
    if ((candidate.provider != "native" && !isReference) || !other.usable() ||
        candidate.memory != chosen.memory || !mayBeTaken(other))
      continue;
    bool sameLayouts = worksAlike(problem, candidate, chosen);
    if (!sameLayouts && candidate.memory == DVT_MEMORY_DEVICE)
      continue; // there nothing is converted around a kernel that takes another's place
    std::pair rank(isReference,
                   costs.of(other, problem, {}) + (sameLayouts ? 0 : kConversionMicros));
    if (!best || rank < bestRank) {
      best = &other;
      bestRank = rank;
    }
  }
  return best;
}

/// The kernel that runs where the library of `chosen` is gone; built, if it was only proposed, and
/// where it turns out not to work the next. Null where there is none.
Expected<const Trial *> Planner::State::builtStandIn(const std::string &text,
                                                     const Candidate &chosen) {
  const Evaluation *evaluation = evaluations.known(text);
  auto problem = Problem::parse(text);
  if (!evaluation || !problem)
    return nullptr;
  auto find = [&] {
    return standIn(*evaluation, chosen, *problem, costs,
                   [&](const Trial &trial) { return allowed(trial); });
  };
  const Trial *best = find();
  // The reference is plain code, of which there is nothing to build.
  while (best && !best->built && best->candidate.provider != "reference") {
    if (Status status = evaluations.build(*problem, *best, evaluations.representativeOf(text));
        !status)
      return status.takeError();
    best = find();
  }
  return best;
}

Status Planner::addStandIns(Plan &plan) {
  size_t done = 0;
  const size_t total = plan.stepCount();
  for (PlanBlock &block : plan.blocks)
    for (PlanStep &step : block.steps) {
      ++done;
      const Candidate &chosen = step.choice.candidate;
      if (step.kind != StepKind::Kernel || chosen.memory == DVT_MEMORY_DEVICE ||
          !isLibrary(chosen.provider))
        continue;
      state->announce("building stand-ins", done - 1, total, step.label);
      auto found = state->builtStandIn(plan.problems[step.problem], chosen);
      if (!found)
        return found.takeError();
      if (!*found)
        continue;
      const Trial &trial = **found;
      KernelChoice &choice = step.fallback.emplace();
      choice.candidate = trial.candidate;
      if (auto version = plan.providers.find(trial.candidate.provider);
          version != plan.providers.end())
        choice.providerVersion = version->second;
      if (trial.kernel.empty())
        continue;
      const KernelBytes bytes(trial.kernel);
      auto known = std::find(plan.kernels.begin(), plan.kernels.end(), bytes);
      choice.kernel = static_cast<int32_t>(known - plan.kernels.begin());
      if (known == plan.kernels.end())
        plan.kernels.push_back(bytes);
    }
  return Status::success();
}

} // namespace dovetail::plan
