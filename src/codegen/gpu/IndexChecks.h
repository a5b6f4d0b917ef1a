// SPDX-License-Identifier: Apache-2.0
//
// On a device nothing looks at indices before a kernel runs, so kernels that gather begin with that
// (see schedule/IndexDemands.h).
#pragma once

#include "codegen/KernelModule.h"

namespace dovetail::codegen {

/// The first phases of a device's kernel; none where it demands nothing of indices.
void emitIndexChecks(const ProblemReader &problem, uint64_t wordsBegin, KernelModule &module);

} // namespace dovetail::codegen
