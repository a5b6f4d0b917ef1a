// SPDX-License-Identifier: Apache-2.0
//
// The tiles of products on matrix units, and which of them suit a product.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "codegen/schedule/contraction/DeviceProduct.h"

namespace dovetail::codegen {

/// Shared memory that every device gives a block without being asked, less what is left to others.
static constexpr int64_t kFinishingBytes = 32 << 10;

int64_t MatrixTile::finishingParts() const {
  int64_t parts = 1;
  while (4 * rows * columns / parts > kFinishingBytes)
    parts *= 2;
  return parts;
}

uint64_t MatrixTile::sharedBytes() const {
  return 4 * uint64_t(std::max((rows + columns) * pitch(), rows * columns / finishingParts()));
}

std::string MatrixTile::text() const {
  return fmt::format("mma-{}:{}x{}x{}:{}x{}", unit->numerics, rows, columns, depth(), warpRows,
                     warpColumns);
}

std::vector<MatrixTile> MatrixTile::all(const MatrixUnit &unit) {
  struct Block {
    int64_t rows, columns, warpsDown[2]; ///< of eight warps, or of four
  };
  static constexpr Block kBlocks[] = {{128, 128, {2, 2}}, {128, 64, {4, 2}}, {64, 128, {2, 2}},
                                      {64, 64, {2, 2}},   {32, 128, {2, 2}}, {16, 128, {1, 1}}};
  const int64_t warps = kThreads / unit.lanes;
  std::vector<MatrixTile> tiles;
  for (const Block &block : kBlocks) {
    int64_t down = block.warpsDown[warps == 8 ? 0 : 1];
    tiles.push_back(
        {&unit, block.rows, block.columns, block.rows / down, block.columns * down / warps});
  }
  return tiles;
}

std::optional<MatrixTile> MatrixTile::read(const Schedule &schedule, const Machine &machine) {
  for (dvt_type type : {DVT_F16, DVT_BF16, DVT_F32})
    if (const MatrixUnit *unit = MatrixUnit::find(machine, type, type))
      for (const MatrixTile &tile : all(*unit))
        if (schedule.algorithm.ends_with(":" + tile.text()))
          return tile;
  return std::nullopt;
}

std::vector<MatrixTile> matrixTilesFor(const Machine &machine, const MatrixUnit &unit,
                                       const DeviceProductSizes &sizes) {
  // Fewer rows or columns leave half of the smallest instruction empty.
  constexpr double kFewest = 8, kMostWaste = 4;
  if (std::min({sizes.rows, sizes.columns, sizes.depth}) < kFewest)
    return {};
  // A compute unit multiplies and adds as fast as four cores of Machine::threads on f32; to bring a
  // word into shared memory takes it as long as so many multiply-adds on matrix units.
  constexpr double kCoresPerUnit = 4, kOperationsPerWord = 32;
  const double units = std::max(1.0, machine.threads / kCoresPerUnit);
  struct Weighed {
    MatrixTile tile;
    double cost;
  };
  std::vector<Weighed> weighed;
  for (const MatrixTile &tile : MatrixTile::all(unit)) {
    const double rows = double(tile.rows), columns = double(tile.columns);
    const double blocks =
        sizes.batches * std::ceil(sizes.rows / rows) * std::ceil(sizes.columns / columns);
    const double waste = blocks * rows * columns / (sizes.batches * sizes.rows * sizes.columns);
    if (waste > kMostWaste)
      continue;
    weighed.push_back({tile, std::ceil(blocks / units) *
                                 (rows * columns + kOperationsPerWord * (rows + columns))});
  }
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const Weighed &a, const Weighed &b) { return a.cost < b.cost; });
  std::vector<MatrixTile> tiles;
  for (const Weighed &one : weighed)
    tiles.push_back(one.tile);
  return tiles;
}

} // namespace dovetail::codegen
