// SPDX-License-Identifier: Apache-2.0
//
// What else a chosen region could have been: the cheapest way to split it among the regions on
// offer, and the best region that would have taken it in together with its neighbours. For the
// report only; the choice itself has compared them all.
#pragma once

#include <vector>

#include "plan/Assembly.h"

namespace dovetail::plan {

/// At most one split and one fused alternative of a chosen kernel option. Microseconds are what the
/// choice went by, conversions inside included.
std::vector<Alternative> otherCovers(const ChosenCover &chosen, uint32_t option);

} // namespace dovetail::plan
