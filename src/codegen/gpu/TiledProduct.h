// SPDX-License-Identifier: Apache-2.0
//
// The part that tiled products on devices share: a block of threads brings tiles of both sides into
// shared memory, multiplies them, and finishes the tile of sums. Families say where elements lie.
#pragma once

#include "codegen/Emitter.h"
#include "codegen/schedule/contraction/DeviceProduct.h"

namespace dovetail::codegen {

/// Neighbours of one side of a product that lie side by side in memory and can be loaded at once.
struct SideVectors {
  int64_t elements = 1; ///< a power of two; what begins at a multiple of it, does so in memory
  /// Where the element at a row or column and a depth lies.
  llvm::function_ref<Value(Value place, Value k)> address;
};

struct TiledOperands {
  Value rows, columns, depth; ///< i64, of the product that the block works at
  /// Element of the left side at (row, depth) and of the right one at (depth, column), as a scalar
  /// f32. Called for places inside only.
  llvm::function_ref<Value(Value row, Value k)> left;
  llvm::function_ref<Value(Value k, Value column)> right;
  /// Whether neighbours along depth lie side by side in memory: threads then load along it.
  bool leftAlongDepth = false, rightAlongDepth = false;
  /// Stores a sum, a vector of one lane; called for places inside only.
  llvm::function_ref<void(Value row, Value column, Value sum)> finish;
  /// Along the depth where so said above, else along rows or columns; the extent in that direction
  /// is a multiple of them.
  SideVectors leftVectors = {}, rightVectors = {};
};

/// Emits what the threads of a block do for the tile whose first place is (firstRow, firstColumn).
void emitTiledProduct(Emitter &e, const DeviceTile &tile, Value firstRow, Value firstColumn,
                      const TiledOperands &operands);

} // namespace dovetail::codegen
