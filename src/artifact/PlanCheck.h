// SPDX-License-Identifier: Apache-2.0
//
// States what a plan must satisfy and checks it, before a plan is written, after one is read and
// before one runs. What passes can be executed without further checks of indices, sizes and order;
// buffers that live at the same time do not overlap.
#pragma once

#include <vector>

#include "artifact/Plan.h"

namespace dovetail {

/// The plan's problems, parsed; BadInput with what is wrong.
Expected<std::vector<Problem>> checkPlan(const Plan &plan);

} // namespace dovetail
