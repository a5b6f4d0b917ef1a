// SPDX-License-Identifier: Apache-2.0
//
// Register tiles of contractions: `rows` broadcast elements of one operand times `vectors` vectors
// of the other are summed in registers. Says which tiles an instruction set can hold and how fast
// they run, and ranks them for an output of given size. The costs are relative; a port model of one
// fused multiply-add a cycle fits AVX-512 of the Zen 4 kind.
#pragma once

#include <vector>

#include "codegen/schedule/Machine.h"

namespace dovetail::codegen {

struct RegisterTile {
  unsigned rows = 1, vectors = 1;
};

/// Accumulators, one row of vectors and a broadcast fit the registers.
bool fitsRegisters(const Isa &isa, RegisterTile tile);

/// Cycles of one step of the reduction.
double stepCycles(const Isa &isa, RegisterTile tile);

/// Cycles to compute `rows` x `vectors` outputs with `steps` of reduction, by tiles of the given
/// size with smaller ones at the ends. `finish` is the cost in cycles of finishing one vector of
/// outputs.
double tiledCycles(const Isa &isa, RegisterTile tile, int64_t rows, int64_t vectors, double steps,
                   double finish);

/// Rows that lie `stride` elements apart without crowding the same sets of the first-level cache.
unsigned rowsWithoutConflict(int64_t stride);

/// Tiles for that, fastest first; at most `maxRows` rows.
std::vector<RegisterTile> rankTiles(const Isa &isa, int64_t rows, int64_t vectors, double steps,
                                    double finish, unsigned maxRows);

} // namespace dovetail::codegen
