// SPDX-License-Identifier: Apache-2.0
//
// Makes one plan of several: every body of control flow is planned as a model of its own, then its
// blocks join those of the plan around it.
#pragma once

#include <cstdint>

#include "artifact/Plan.h"

namespace dovetail::plan {

/// Appends the blocks of `inner`, a plan for the same target, with the constants, problems, kernels
/// and reports that they use; what both have is there once. Gives the number that its block 0 has
/// in `outer`; no step runs it yet.
uint32_t appendBlocks(Plan &outer, Plan inner);

} // namespace dovetail::plan
