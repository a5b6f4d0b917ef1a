// SPDX-License-Identifier: Apache-2.0
//
// Results of slices, splits and transposes as what they are in memory: every n-th element of
// something that is there. Each comes into the table a second time, as a view with strides that
// costs nothing; regions that read the dense result are on offer a second time with the view as
// their operand. The choice then weighs a kernel that walks strides against moving elements first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/OpTable.h"
#include "plan/Regions.h"

namespace dovetail::plan {

/// Appends the views to the table. For each value it had: the one that shows the same elements with
/// strides, or kNoValue. Strides are numbers, so the inner extents of what is shown must be.
std::vector<uint32_t> addStridedViews(OpTable &table);

/// The problem with every operand that has such a view replaced by it; nothing where none has.
std::optional<RegionProblem> overStridedViews(const OpTable &table, const RegionProblem &problem,
                                              const std::vector<uint32_t> &views);

} // namespace dovetail::plan
