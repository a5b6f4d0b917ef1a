// SPDX-License-Identifier: Apache-2.0
//
// The loops of a convolution around the sums of a tile: tasks are chunks of output positions of an
// image's group for some panels of output channels, a panel goes through the chunk by tiles of
// pixels, and a tile's operands are the image itself or the patch that was copied of it. Products
// of bytes are walked the same way. What is summed, and what becomes of the sums, is the family's.
#pragma once

#include "codegen/contraction/PatchEmission.h"
#include "codegen/contraction/TileEmission.h"

namespace dovetail::codegen {

/// `vectors` of output channels cut into panels of `panelVectors`, the last of which may be
/// narrower.
struct PanelCut {
  int64_t vectors;
  unsigned panelVectors;
  unsigned lastVectors() const { return unsigned(vectors % panelVectors); } ///< 0: it is whole
  /// Calls `body` with the number and the vectors of the panels [from, to).
  void forPanels(Emitter &e, Value from, Value to,
                 llvm::function_ref<void(Value panel, unsigned vectors)> body) const;
  /// Masks of the vectors of the panel that starts at `channel`, of `channels` in all; null where
  /// all lanes are wanted.
  Values masks(Emitter &e, int64_t channels, Value channel, unsigned vectors) const;
};

class ConvolutionChunks {
public:
  using Chunk = PatchEmission::Chunk;
  using Phase = Convolution::Window::Phase;
  /// `rows` x `columns` are the positions of each of `images`; the tensors need not be `conv`'s.
  ConvolutionChunks(Emitter &e, const Convolution &conv, const ConvolutionPlan &plan,
                    const ConvolutionSizes &sizes, Value images, Value rows, Value columns);

  Value taskCount();
  /// Calls `body` for each task of [begin, end) with its chunk and panels [from, to).
  void forTasks(Value begin, Value end,
                llvm::function_ref<void(const Chunk &chunk, Value from, Value to)> body);
  PanelCut panels() const { return {sizes.vectors, plan.tile.vectors}; }

  /// Goes through a chunk by tiles. `sum` is called for each number of pixels that a tile can have
  /// and leaves their sums in the tile buffer, `finish` once behind them.
  void forTiles(const Chunk &chunk,
                llvm::function_ref<void(Value row, Value column, unsigned pixels)> sum,
                llvm::function_ref<void(Value row, Value column, Value count)> finish);
  /// Row and column of pixel `number` of the tile at (row, column).
  std::pair<Value, Value> pixelAt(Value row, Value column, Value number);

  /// The left side of sums, strides in elements: the image itself or the patch.
  struct Left {
    Value pointer, row, pixel, block, channel;
  };
  Left patch() {
    return {e.workerScratch(), e.index(sizes.patchColumns * sizes.pitch), e.index(sizes.pitch),
            e.index(sizes.patchBlock), e.index(1)};
  }
  /// Operands and loops of the sums of `pixels` pixels from (row, column) on over the phases y and
  /// x; `right` is the panel's part for them.
  TileOperands operands(const Chunk &chunk, const Left &left, const Phase &y, const Phase &x,
                        Value row, Value column, Value right, unsigned vectors, unsigned pixels);
  llvm::SmallVector<TileNest> nests(const Left &left, const Phase &y, const Phase &x,
                                    unsigned vectors);

  /// Behind the patch, tileElements wide.
  Value tileBuffer();

private:
  Emitter &e;
  const Convolution &conv;
  const ConvolutionPlan &plan;
  const ConvolutionSizes &sizes;
  Value images, rows, columns, rowChunks, columnChunks;
  int64_t parts;
};

} // namespace dovetail::codegen
