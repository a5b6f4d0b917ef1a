// SPDX-License-Identifier: Apache-2.0
//
// The table of kernel families as compile sees it.
#include "codegen/Families.h"

#include <cstring>

#include "codegen/CompileSteps.h"
#include "codegen/gpu/IndexChecks.h"
#include "codegen/schedule/IndexDemands.h"

namespace dovetail::codegen {

static const EmissionFamily kFamilies[] = {
    {"pointwise", emitPointwiseKernel},
    {"rows", emitRowsKernel},
    {"affine", emitAffineKernel},
    {"pool", emitPoolKernel},
    {"move", emitMoveKernel},
    {"matmul", emitMatMulKernel},
    {"conv", emitConvolutionKernel},
    {"depthwise", emitDepthwiseKernel},
    {"attention", emitAttentionKernel},
    {"blockmatmul", emitBlockMatMulKernel},
    {"recurrent", emitRecurrentKernel},
    {"winograd", emitWinogradKernel},
    {"int8", emitInt8Kernel},
    {"separable", emitSeparableKernel},
    {"devicematmul", emitDeviceMatMulKernel},
    {"deviceconv", emitDeviceConvolutionKernel},
    {"deviceattention", emitDeviceAttentionKernel},
};

const EmissionFamily *findEmissionFamily(std::string_view name) {
  for (const EmissionFamily &family : kFamilies)
    if (name == family.name)
      return &family;
  return nullptr;
}

Status emitKernel(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                  KernelModule &module) {
  const EmissionFamily *family = findEmissionFamily(schedule.family());
  if (!family)
    return internalError("no native kernel family '{}'", schedule.family());
  if (machine.isDevice())
    emitIndexChecks(problem, checkWordsBegin(schedule.workspaceBytes), module);
  return family->emit(problem, machine, schedule, module);
}

Expected<std::vector<uint8_t>> finishKernel(const ProblemReader &problem, const Machine &machine,
                                            const Schedule &schedule, KernelModule &module) {
  if (!machine.isDevice())
    return module.finish(schedule);
  Schedule whole = schedule;
  whole.workspaceBytes = workspaceWithChecks(schedule.workspaceBytes, indexDemands(problem).size());
  return module.finish(whole);
}

Expected<std::vector<uint8_t>> compileKernel(const ProblemReader &problem, const Machine &machine,
                                             const Schedule &schedule) {
  KernelModule module(problem, machine);
  if (Status status = emitKernel(problem, machine, schedule, module); !status)
    return status.takeError();
  return finishKernel(problem, machine, schedule, module);
}

} // namespace dovetail::codegen
