// SPDX-License-Identifier: Apache-2.0
//
// Products on devices: matrix products, and convolutions taken as products of weights with the
// windows of pixels. Either a block of threads computes a tile of the result through shared memory,
// each thread a small tile of it in registers, or each thread one element on its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/Schedule.h"

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

/// rows x depth times depth x columns, `batches` of them.
struct DeviceProductSizes {
  double batches, rows, columns, depth;
};

/// A guess for a tile, or for a thread for each element where there is none.
double deviceProductMicros(const Machine &machine, const DeviceProductSizes &sizes,
                           const std::optional<DeviceTile> &tile, double bytes);

} // namespace dovetail::codegen
