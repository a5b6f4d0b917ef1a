// SPDX-License-Identifier: Apache-2.0
//
// Declares the functions named in the schedule families' table, each written in a file of its
// family.
#pragma once

#include "codegen/schedule/Schedule.h"

namespace dovetail::codegen {

void proposePointwise(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink);
void proposeAffine(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink);
void proposePool(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink);
void packPool(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
              uint32_t input, const void *constant, void *packed);
void proposeMove(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink);
void proposeRows(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink);
void packRows(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
              uint32_t input, const void *constant, void *packed);
void packPointwise(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                   uint32_t input, const void *constant, void *packed);
void proposeMatMul(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink);
void packMatMul(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                uint32_t input, const void *constant, void *packed);
void proposeBlockMatMul(const ProblemReader &problem, const Machine &machine,
                        const ScheduleSink &sink);
void packBlockMatMul(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                     uint32_t input, const void *constant, void *packed);
void proposeConvolution(const ProblemReader &problem, const Machine &machine,
                        const ScheduleSink &sink);
void packConvolution(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                     uint32_t input, const void *constant, void *packed);
void proposeInt8(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink);
void packInt8(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
              uint32_t input, const void *constant, void *packed);
void proposeDepthwise(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink);
void packDepthwise(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                   uint32_t input, const void *constant, void *packed);
void proposeWinograd(const ProblemReader &problem, const Machine &machine,
                     const ScheduleSink &sink);
void packWinograd(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                  uint32_t input, const void *constant, void *packed);
void proposeSeparable(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink);
void packSeparable(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                   uint32_t input, const void *constant, void *packed);
void proposeAttention(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink);
void proposeDeviceMatMul(const ProblemReader &problem, const Machine &machine,
                         const ScheduleSink &sink);
void proposeDeviceConvolution(const ProblemReader &problem, const Machine &machine,
                              const ScheduleSink &sink);
void proposeDeviceAttention(const ProblemReader &problem, const Machine &machine,
                            const ScheduleSink &sink);
void proposeRecurrent(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink);
void packRecurrent(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                   uint32_t input, const void *constant, void *packed);
std::vector<ValueDemand> recurrentDemands(const ProblemReader &problem);

} // namespace dovetail::codegen
