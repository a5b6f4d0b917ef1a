// SPDX-License-Identifier: Apache-2.0
//
// What 'dovetail check' found right before is kept in the plan cache by problem, target, provider
// and version, the reference's included, so that an interrupted check goes on where it ended and a
// later one does what is new. Kernels are not kept, and nothing of a provider that failed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/PlanCache.h"
#include "plan/Planner.h"

namespace dovetail::cli {

class CheckRecords {
public:
  /// `versions`: by the names of the providers that are checked.
  CheckRecords(std::unique_ptr<plan::PlanCache> cache, const Target &target,
               std::map<std::string, std::string> versions, const std::string &referenceVersion);

  /// What is known of the problem; `missing` are the providers of which nothing is.
  plan::Evaluation find(const plan::PosedProblem &posed, std::vector<std::string> &missing);
  void store(const plan::PosedProblem &posed, const plan::Evaluation &evaluation,
             const std::vector<std::string> &providers);

private:
  plan::PlanCache::Key keyOf(const plan::PosedProblem &posed, const std::string &provider) const;

  std::unique_ptr<plan::PlanCache> cache;
  std::string target;
  std::map<std::string, std::string> versions;
  std::string mode;
};

/// A problem's text with the values of its symbols: symbols of different models may have the same
/// names and other values.
std::string identityOf(const plan::PosedProblem &posed);

} // namespace dovetail::cli
