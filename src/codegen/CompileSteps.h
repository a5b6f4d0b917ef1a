// SPDX-License-Identifier: Apache-2.0
//
// The two steps of compileKernel() (Families.h), for whoever looks at the module between them.
#pragma once

#include "codegen/KernelModule.h"
#include "codegen/schedule/Schedule.h"

namespace dovetail::codegen {

/// Fills a module with the kernel's phases, on devices behind those that check indices. An internal
/// error where no family has the schedule.
Status emitKernel(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                  KernelModule &module);

/// The container of what emitKernel() filled.
Expected<std::vector<uint8_t>> finishKernel(const ProblemReader &problem, const Machine &machine,
                                            const Schedule &schedule, KernelModule &module);

} // namespace dovetail::codegen
