// SPDX-License-Identifier: Apache-2.0
//
// Which outputs of a model become which inputs of its next run: as the caller says, or as exporters
// name them (past_* and present_*).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/Expected.h"

namespace dovetail {

/// Numbers of inputs and outputs that are states. Each of `wanted` is "IN=OUT", or "auto" for those
/// whose names tell. BadInput where names are unknown or given twice, or where "auto" finds none.
Expected<std::vector<std::pair<uint32_t, uint32_t>>>
findStates(const std::vector<std::string> &wanted, const std::vector<std::string> &inputs,
           const std::vector<std::string> &outputs);

} // namespace dovetail
