// SPDX-License-Identifier: Apache-2.0
//
// How a product is spread over the host's threads where the library works on one: each thread gets
// a tile of the result, or some elements of the batch. Tiles follow from the extents and the number
// of threads alone, so that the same bits come out each time.
#pragma once

#include <functional>
#include <vector>

#include "dovetail/provider.h"

namespace dovetail::blas {

/// Rows and columns of some batch elements.
struct Tile {
  int64_t firstMatrix, matrices;
  int row, rows, column, columns;
};

/// About `team` tiles of about the same size; column borders are multiples of `columnStep`.
std::vector<Tile> tilesFor(int64_t batch, int rows, int columns, uint32_t team, int columnStep);

/// Calls `body` with numbers from 0 to `count` - 1, spread over the host's threads where they help.
/// While it lives, OpenMP teams that a library would start have one thread.
void spread(const dvt_parallel *parallel, size_t count, const std::function<void(size_t)> &body);

} // namespace dovetail::blas
