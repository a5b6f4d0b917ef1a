// SPDX-License-Identifier: Apache-2.0
//
// What the runtime does without a kernel, as options of the cover that cost nothing: views, extents
// written as data, and control flow, which costs what its bodies cost, whatever is chosen around
// it.
#pragma once

#include <optional>
#include <vector>

#include "plan/Assembly.h"

namespace dovetail::plan {

/// Views also of what lies row-major on the device, whose number `device` is.
void addFreeOptions(const OpTable &table, std::optional<uint32_t> device,
                    std::vector<CoverOption> &options, std::vector<OptionMeaning> &meanings);

/// CoverProblem::ranks of the table's values.
std::vector<uint32_t> ranksOf(const OpTable &table);

} // namespace dovetail::plan
