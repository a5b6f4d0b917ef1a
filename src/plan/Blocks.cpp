// SPDX-License-Identifier: Apache-2.0
//
// Everything that a block names by its number gets the number it has in the joint plan.
#include "plan/Blocks.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace dovetail::plan {
namespace {

/// Appends to `outer` what it lacks; where each entry of `inner` is found then. Equal are entries
/// with equal keys.
template <typename T, typename KeyOf>
std::vector<uint32_t> merge(std::vector<T> &outer, std::vector<T> &inner, KeyOf keyOf) {
  std::map<decltype(keyOf(outer[0])), uint32_t> known;
  for (uint32_t i = 0; i < outer.size(); ++i)
    known.emplace(keyOf(outer[i]), i);
  std::vector<uint32_t> places;
  for (T &entry : inner) {
    auto [place, isNew] = known.emplace(keyOf(entry), static_cast<uint32_t>(outer.size()));
    if (isNew)
      outer.push_back(std::move(entry));
    places.push_back(place->second);
  }
  return places;
}

} // namespace

uint32_t appendBlocks(Plan &outer, Plan inner) {
  std::vector<uint32_t> constants =
      merge(outer.constants, inner.constants, [](const PlanConstant &constant) {
        return std::make_tuple(constant.data, constant.bytes, constant.type, constant.extents);
      });
  std::vector<uint32_t> problems =
      merge(outer.problems, inner.problems, [](const std::string &problem) { return problem; });
  std::vector<uint32_t> kernels =
      merge(outer.kernels, inner.kernels,
            [](const KernelBytes &kernel) { return std::string(kernel.begin(), kernel.end()); });
  auto firstReport = static_cast<uint32_t>(outer.reports.size()),
       firstBlock = static_cast<uint32_t>(outer.blocks.size());
  auto renumber = [&](KernelChoice &choice) {
    if (choice.kernel >= 0)
      choice.kernel = static_cast<int32_t>(kernels[static_cast<size_t>(choice.kernel)]);
  };
  inner.blocks.front().growing = std::move(inner.states);
  for (PlanBlock &block : inner.blocks) {
    for (PlanValue &value : block.values)
      if (value.storage == Storage::Constant)
        value.index = constants[value.index];
    for (PlanStep &step : block.steps) {
      if (step.kind == StepKind::Kernel || step.kind == StepKind::LateBound)
        step.problem = problems[step.problem];
      renumber(step.choice);
      if (step.fallback)
        renumber(*step.fallback);
      if (step.report != UINT32_MAX)
        step.report += firstReport;
      for (uint32_t &body : step.bodies)
        body += firstBlock;
    }
    outer.blocks.push_back(std::move(block));
  }
  outer.typicalSizes.merge(inner.typicalSizes);
  for (RegionReport &report : inner.reports) {
    report.problem = problems[report.problem];
    outer.reports.push_back(std::move(report));
  }
  return firstBlock;
}

} // namespace dovetail::plan
