// SPDX-License-Identifier: Apache-2.0
//
// The table of kernel families as compile sees it, with the functions named in it. Each line has
// its counterpart in schedule/Families.cpp.
#pragma once

#include <string_view>

#include "codegen/KernelModule.h"
#include "codegen/schedule/Schedule.h"

namespace dovetail::codegen {

struct EmissionFamily {
  const char *name;
  /// Emits the phases of a schedule that the family's propose offered for this problem and machine.
  Status (*emit)(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                 KernelModule &module);
};

const EmissionFamily *findEmissionFamily(std::string_view name);

/// Kernel bytes of a schedule.
Expected<std::vector<uint8_t>> compileKernel(const ProblemReader &problem, const Machine &machine,
                                             const Schedule &schedule);

Status emitAffineKernel(const ProblemReader &problem, const Machine &machine,
                        const Schedule &schedule, KernelModule &module);
Status emitPoolKernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module);
Status emitMoveKernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module);
Status emitRowsKernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module);
Status emitPointwiseKernel(const ProblemReader &problem, const Machine &machine,
                           const Schedule &schedule, KernelModule &module);
Status emitMatMulKernel(const ProblemReader &problem, const Machine &machine,
                        const Schedule &schedule, KernelModule &module);
Status emitBlockMatMulKernel(const ProblemReader &problem, const Machine &machine,
                             const Schedule &schedule, KernelModule &module);
Status emitConvolutionKernel(const ProblemReader &problem, const Machine &machine,
                             const Schedule &schedule, KernelModule &module);
Status emitInt8Kernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module);
Status emitDepthwiseKernel(const ProblemReader &problem, const Machine &machine,
                           const Schedule &schedule, KernelModule &module);
Status emitWinogradKernel(const ProblemReader &problem, const Machine &machine,
                          const Schedule &schedule, KernelModule &module);
Status emitSeparableKernel(const ProblemReader &problem, const Machine &machine,
                           const Schedule &schedule, KernelModule &module);
Status emitAttentionKernel(const ProblemReader &problem, const Machine &machine,
                           const Schedule &schedule, KernelModule &module);
Status emitDeviceMatMulKernel(const ProblemReader &problem, const Machine &machine,
                              const Schedule &schedule, KernelModule &module);
Status emitDeviceConvolutionKernel(const ProblemReader &problem, const Machine &machine,
                                   const Schedule &schedule, KernelModule &module);
Status emitDeviceAttentionKernel(const ProblemReader &problem, const Machine &machine,
                                 const Schedule &schedule, KernelModule &module);
Status emitRecurrentKernel(const ProblemReader &problem, const Machine &machine,
                           const Schedule &schedule, KernelModule &module);

} // namespace dovetail::codegen
