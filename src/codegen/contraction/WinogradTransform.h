// SPDX-License-Identifier: Apache-2.0
//
// The linear maps of Winograd's algorithm on vectors, one line of a tile at a time. They belong to
// the transform of weights in WinogradSchedule.cpp, as the points of interpolation do that
// schedule/contraction/Winograd.h names.
#pragma once

#include "codegen/Emitter.h"

namespace dovetail::codegen {

/// size + 2 numbers of the image -> as many.
Values emitImageLine(Emitter &e, int64_t size, const Values &d);

/// size + 2 sums -> size outputs.
Values emitOutputLine(Emitter &e, int64_t size, const Values &m);

} // namespace dovetail::codegen
