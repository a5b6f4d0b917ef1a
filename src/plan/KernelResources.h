// SPDX-License-Identifier: Apache-2.0
//
// What a compiled kernel for a device says of itself becomes known to the plan and to estimates.
#pragma once

#include <cstdint>
#include <span>

#include "support/Plugin.h"

namespace dovetail::plan {

/// Where `kernel` is a device kernel (support/DeviceKernel.h) whose images tell what they take, the
/// most that any of its launches takes of registers, shared memory and spilled bytes enters the
/// candidate. Other kernels leave it as it is.
void takeResources(std::span<const uint8_t> kernel, Candidate &candidate);

} // namespace dovetail::plan
