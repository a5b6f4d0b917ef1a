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

} // namespace dovetail::codegen
