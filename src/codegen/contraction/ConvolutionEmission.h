// SPDX-License-Identifier: Apache-2.0
//
// What the emissions of convolutions share: where outputs stand and how they are finished, and the
// phase of a convolution for families that make the patches of its image themselves.
#pragma once

#include <functional>

#include "codegen/KernelModule.h"
#include "codegen/contraction/PatchEmission.h"
#include "codegen/contraction/TileEmission.h"

namespace dovetail::codegen {

/// How a convolution's outputs are finished; `column` is the dimension along vectors.
TileFinish::Layouts convolutionFinish(Emitter &e, const Convolution &conv, const Schedule &schedule,
                                      int column);

/// The bias as what is added to sums; nothing where there is none.
std::optional<Addend> convolutionBias(const Convolution &conv);

/// Index of an output.
Values convolutionIndex(const Convolution &conv, Value image, Value channel, Value row,
                        Value column);

/// Makes the patch of a chunk at the beginning of the worker's scratch memory.
using PatchMaker = std::function<void(Emitter &e, const PatchEmission::Chunk &chunk,
                                      const ConvolutionSizes &sizes)>;

/// Adds the phase that computes `conv`. Without a maker of patches, they are copied from the image
/// or, where the plan is direct, not needed.
void addConvolutionPhase(const Convolution &conv, const ConvolutionPlan &plan,
                         const Schedule &schedule, KernelModule &module, const PatchMaker &patch);

} // namespace dovetail::codegen
