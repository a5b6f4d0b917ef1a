// SPDX-License-Identifier: Apache-2.0
//
// What kernels that gather need of their indices, beside indexDemands of Schedule.h: indices that
// nothing could check are no business of a kernel.
#pragma once

#include <optional>
#include <string>

#include "codegen/schedule/ProblemReader.h"

namespace dovetail::codegen {

/// Why nothing can check the indices of a gather before the kernel runs: they are computed inside
/// the problem, by more than a widening or a view of an input. Nothing where they can be checked,
/// were checked when shapes were inferred (literals), or `op` gathers nothing.
std::optional<std::string> uncheckedIndices(const ProblemReader &problem, const dvt_op &op);

/// On a device kernels check their demands themselves: their first launches are one for each of
/// indexDemands(), which leaves, for an element that breaks it, one more than that element's place
/// among those that the demand is about (every `parts`-th) in a word of 64 bits of the workspace,
/// where there was zero. Words stand in the order of the demands, from here on: behind what the
/// schedule asks for.
constexpr uint64_t checkWordsBegin(uint64_t scheduledBytes) {
  return (scheduledBytes + 255) / 256 * 256;
}
/// Of the workspace of such a kernel, with the words.
constexpr uint64_t workspaceWithChecks(uint64_t scheduledBytes, uint64_t demands) {
  return demands ? checkWordsBegin(scheduledBytes) + 8 * demands : scheduledBytes;
}

} // namespace dovetail::codegen
