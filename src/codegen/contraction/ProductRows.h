// SPDX-License-Identifier: Apache-2.0
//
// What kernels of matrix products share beside the tile itself: code for every number of rows that
// a tile can have, and where a row of sums stands in the outputs.
#pragma once

#include "codegen/contraction/TileEmission.h"

namespace dovetail::codegen {

/// Calls `body` for each number of rows that a tile of at most `most` rows can have, where `rows`
/// in all are cut into such tiles, under the condition that `count` is it.
void emitForRows(Emitter &e, const Product &rows, Value count, unsigned most,
                 llvm::function_ref<void(unsigned)> body);

/// The index in the output of column `column` of row `row` of a batch.
Values outputIndex(Emitter &e, const MatMul &m, const Values &batch, Value row, Value column);

/// How the sums are finished.
TileFinish::Layouts finishLayouts(Emitter &e, const MatMul &m);

} // namespace dovetail::codegen
