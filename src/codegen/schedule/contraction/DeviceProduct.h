// SPDX-License-Identifier: Apache-2.0
//
// Products on devices: matrix products, and convolutions taken as products of weights with the
// windows of pixels. Either a block of threads computes a tile of the result through shared memory,
// each thread a small tile of it in registers or each warp a larger one on matrix units, or each
// thread computes one element on its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/MatrixUnit.h"

namespace dovetail::codegen {

struct DeviceTile {
  static constexpr int64_t kThreads = 256; ///< of a block

  int64_t rows = 1, columns = 1; ///< of the result, for a block
  int64_t depth = 1;             ///< summed between two barriers
  int64_t threadRows = 1, threadColumns = 1;

  /// Bytes for the tiles of both sides and, later, of the result, which takes their place.
  uint64_t sharedBytes() const;
  std::string text() const; ///< "64x64x16:4x4"
  /// Nothing where the algorithm is another one.
  static std::optional<DeviceTile> read(const Schedule &schedule);
  /// Those offered, largest first.
  static const std::vector<DeviceTile> &all();
};

/// A tile of the result whose block multiplies on matrix units: each warp a part of it.
struct MatrixTile {
  static constexpr int64_t kThreads = DeviceTile::kThreads;
  static constexpr int64_t kDepthWords = 16; ///< brought in between two barriers, of 32 bits

  const MatrixUnit *unit;
  int64_t rows, columns;         ///< of the result, for a block
  int64_t warpRows, warpColumns; ///< for a warp, multiples of the unit's

  int64_t depth() const { return kDepthWords * unit->elementsPerWord(); }
  /// Words from one row, or column, of a staged tile to the next: lanes that read eight of them
  /// and four words of each meet every bank once.
  static constexpr int64_t pitch() { return kDepthWords + 4; }
  /// The tile of sums passes through shared memory in so many parts, each some rows of every warp.
  int64_t finishingParts() const;
  /// Bytes for the tiles of both sides and, later, of a part of the result, which takes their
  /// place.
  uint64_t sharedBytes() const;
  std::string text() const; ///< "mma-f16:128x64x32:32x32"
  /// Nothing where the algorithm is another one.
  static std::optional<MatrixTile> read(const Schedule &schedule, const Machine &machine);
  /// Those offered for a unit, largest first.
  static std::vector<MatrixTile> all(const MatrixUnit &unit);
};

/// rows x depth times depth x columns, `batches` of them.
struct DeviceProductSizes {
  double batches, rows, columns, depth;
};

/// A guess for a tile, or for a thread for each element where there is none.
double deviceProductMicros(const Machine &machine, const DeviceProductSizes &sizes,
                           const std::optional<DeviceTile> &tile, double bytes);

/// The tiles on matrix units that are worth offering, best guess first: such as do not waste most
/// of their work on what lies outside of the result.
std::vector<MatrixTile> matrixTilesFor(const Machine &machine, const MatrixUnit &unit,
                                       const DeviceProductSizes &sizes);

} // namespace dovetail::codegen
