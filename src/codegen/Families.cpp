// SPDX-License-Identifier: Apache-2.0
//
// The table of kernel families as compile sees it.
#include "codegen/Families.h"

#include <cstring>

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

Expected<std::vector<uint8_t>> compileKernel(const ProblemReader &problem, const Machine &machine,
                                             const Schedule &schedule) {
  const EmissionFamily *family = findEmissionFamily(schedule.family());
  if (!family)
    return internalError("no native kernel family '{}'", schedule.family());
  KernelModule module(problem, machine);
  if (machine.isDevice())
    emitIndexChecks(problem, checkWordsBegin(schedule.workspaceBytes), module);
  if (Status status = family->emit(problem, machine, schedule, module); !status)
    return status.takeError();
  if (!machine.isDevice())
    return module.finish(schedule);
  Schedule whole = schedule;
  whole.workspaceBytes = workspaceWithChecks(schedule.workspaceBytes, indexDemands(problem).size());
  return module.finish(whole);
}

} // namespace dovetail::codegen
