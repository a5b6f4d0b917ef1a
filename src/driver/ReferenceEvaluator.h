// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a problem once, in this process, by one provider: what constant folding calls.
#pragma once

#include <cstdint>
#include <vector>

#include "support/Plugin.h"

namespace dovetail {

/// Row-major bytes of the outputs. `inputs` are row-major, one for each problem input.
Expected<std::vector<std::vector<uint8_t>>> evaluateOnce(const Provider &provider,
                                                         const Target &target,
                                                         const Problem &problem,
                                                         const std::vector<const void *> &inputs);

} // namespace dovetail
