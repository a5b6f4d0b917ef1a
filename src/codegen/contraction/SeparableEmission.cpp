// SPDX-License-Identifier: Apache-2.0
//
// Emits depthwise separable convolutions: the pointwise one's phase, whose patches are rows of the
// depthwise one with what follows it.
#include "codegen/contraction/ConvolutionEmission.h"
#include "codegen/contraction/DepthwiseEmission.h"
#include "codegen/schedule/contraction/Separable.h"

#include "codegen/Families.h"

namespace dovetail::codegen {

static void makePatch(Emitter &e, const Separable &pair, const SeparablePlan &plan,
                      const Schedule &schedule, const PatchEmission::Chunk &chunk,
                      const ConvolutionSizes &sizes) {
  const Convolution &conv = pair.depthwise;
  TileFinish::Layouts layouts;
  layouts.leaves = *conv.fusion.leafAccesses(e.problem, schedule.inputLayouts);
  layouts.addend = convolutionBias(conv);
  layouts.column = 1;
  TileFinish finish(e, conv.fusion, std::move(layouts));
  Value patch = e.workerScratch(),
        buffer = e.advance(patch, e.index(int64_t(sizes.scratchBytes())), 1);
  auto keep = [&](Value block, Value row, Value column, const Values &sums, const Values &masks) {
    Values index = convolutionIndex(conv, chunk.image, e.mul(block, sizes.lanes), row, column);
    Values vectors = finish.evaluate(index, sums, masks, pair.between);
    Value pixel = e.add(e.mul(e.sub(row, chunk.firstRow), sizes.patchColumns), column);
    Value place = e.add(e.mul(block, sizes.patchBlock), e.mul(pixel, sizes.pitch));
    for (unsigned i = 0; i < vectors.size(); ++i)
      e.storeVector(DVT_F32, vectors[i], patch, e.add(place, int64_t(i) * sizes.patchBlock));
  };
  DepthwiseRows(e, conv, plan.depthwise, buffer, keep)
      .emit(chunk.image, chunk.firstRow, chunk.endRow);
}

Status emitSeparableKernel(const ProblemReader &problem, const Machine &, const Schedule &schedule,
                           KernelModule &module) {
  auto found = Separable::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const Separable &pair = **found;
  SeparablePlan plan = SeparablePlan::read(schedule);
  addConvolutionPhase(
      pair.pointwise, plan.pointwise, schedule, module,
      [&](Emitter &e, const PatchEmission::Chunk &chunk, const ConvolutionSizes &sizes) {
        makePatch(e, pair, plan, schedule, chunk, sizes);
      });
  return Status::success();
}

} // namespace dovetail::codegen
