// SPDX-License-Identifier: Apache-2.0
//
// One search for the kernel of a step; collects the reasons why earlier choices fell out.
#pragma once

#include <memory>
#include <string>

#include "runtime/Model.h"

namespace dovetail {

struct Model::Search {
  Model &model;
  const PlanBlock &block;
  const PlanStep &step;
  const Problem &problem;
  std::string reasons = {};

  bool onDevice() const { return step.choice.candidate.memory == DVT_MEMORY_DEVICE; }
  const Target &target() const { return onDevice() ? *model.plan().device : model.target; }

  void because(const std::string &reason) { reasons += (reasons.empty() ? "" : "; ") + reason; }
  /// The provider of a choice, in the version that the plan was made with or in any; null where it
  /// is not there.
  const Provider *providerOf(const KernelChoice &choice, bool sameVersion);
  /// Of a choice as the plan states it.
  std::shared_ptr<PreparedKernel> stored(const KernelChoice &choice);
  std::shared_ptr<PreparedKernel> otherVersion(const KernelChoice &choice);
  std::shared_ptr<PreparedKernel> offered(const Provider &provider, bool mayConvert,
                                          const std::string &preferred = "");
  /// The kernel that the model has already, or a new one. `kernel` is the number of its bytes, or
  /// -1.
  std::shared_ptr<PreparedKernel> prepare(const Provider &provider, const Candidate &candidate,
                                          int32_t kernel);
  /// All that preparing needs; nothing, with a reason, where constants do not fit the problem.
  /// `candidate` must outlive it.
  std::optional<PreparedKernel::Request> request(const Provider &provider,
                                                 const Candidate &candidate, int32_t kernel);
  bool fitsLayouts(const Candidate &candidate) const;
  /// Problem, candidate and constants: what makes two kernels the same.
  std::string key(const Provider &provider, const Candidate &candidate) const;
};

} // namespace dovetail
