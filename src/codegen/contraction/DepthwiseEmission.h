// SPDX-License-Identifier: Apache-2.0
//
// What the two emissions of depthwise convolutions share with each other and with the other
// convolutions.
#pragma once

#include "codegen/KernelModule.h"
#include "codegen/contraction/TileEmission.h"
#include "codegen/schedule/contraction/Depthwise.h"

namespace dovetail::codegen {

/// How a convolution's outputs are finished; `column` is the dimension along vectors.
TileFinish::Layouts convolutionFinish(Emitter &e, const Convolution &conv, const Schedule &schedule,
                                      int column);

/// Columns along vectors, in plain images.
Status emitPlainDepthwise(const Convolution &conv, const DepthwisePlan &plan,
                          const Schedule &schedule, KernelModule &module);

} // namespace dovetail::codegen
