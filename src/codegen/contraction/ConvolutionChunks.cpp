// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/contraction/ConvolutionChunks.h"

namespace dovetail::codegen {

void PanelCut::forPanels(Emitter &e, Value from, Value to,
                         llvm::function_ref<void(Value panel, unsigned vectors)> body) const {
  int64_t whole = vectors / panelVectors;
  e.loop(from, e.minimum(to, whole), 1, [&](Value panel) { body(panel, panelVectors); });
  if (unsigned last = lastVectors())
    e.ifTrue(e.gt(to, e.index(whole)), [&] { body(e.index(whole), last); });
}

Values PanelCut::masks(Emitter &e, int64_t channels, Value channel, unsigned panel) const {
  Values masks(panel, Value());
  int64_t rest = channels % e.lanes();
  if (!rest || (lastVectors() && panel != lastVectors()))
    return masks;
  if (lastVectors() || vectors == panelVectors) {
    masks.back() = e.tailMask(e.index(rest));
    return masks;
  }
  Value remaining = e.sub(e.index(channels), channel);
  masks.back() = e.tailMask(e.sub(remaining, int64_t(panel - 1) * e.lanes()));
  return masks;
}

ConvolutionChunks::ConvolutionChunks(Emitter &e, const Convolution &conv,
                                     const ConvolutionPlan &plan, const ConvolutionSizes &sizes,
                                     Value images, Value rows, Value columns)
    : e(e), conv(conv), plan(plan), sizes(sizes), images(images), rows(rows), columns(columns) {
  rowChunks = e.ceilDiv(rows, plan.chunkRows);
  columnChunks = e.ceilDiv(columns, plan.chunkColumns);
  parts = (sizes.panels + plan.panelsPerTask - 1) / plan.panelsPerTask;
}

Value ConvolutionChunks::taskCount() {
  return e.mul(e.mul(e.mul(images, conv.groups), e.mul(rowChunks, columnChunks)), parts);
}

void ConvolutionChunks::forTasks(
    Value begin, Value end,
    llvm::function_ref<void(const Chunk &chunk, Value from, Value to)> body) {
  e.loop(begin, end, 1, [&](Value task) {
    Value part = e.rem(task, parts);
    task = e.div(task, parts);
    Value columnChunk = e.rem(task, columnChunks);
    task = e.div(task, columnChunks);
    Value rowChunk = e.rem(task, rowChunks);
    task = e.div(task, rowChunks);
    Chunk chunk;
    chunk.group = e.rem(task, conv.groups);
    chunk.image = e.div(task, conv.groups);
    chunk.firstRow = e.mul(rowChunk, plan.chunkRows);
    chunk.endRow = e.minimum(e.add(chunk.firstRow, plan.chunkRows), rows);
    chunk.firstColumn = e.mul(columnChunk, plan.chunkColumns);
    chunk.endColumn = e.minimum(e.add(chunk.firstColumn, plan.chunkColumns), columns);
    Value from = e.mul(part, plan.panelsPerTask);
    body(chunk, from, e.minimum(e.add(from, plan.panelsPerTask), sizes.panels));
  });
}

void ConvolutionChunks::forTiles(
    const Chunk &chunk, llvm::function_ref<void(Value row, Value column, unsigned pixels)> sum,
    llvm::function_ref<void(Value row, Value column, Value count)> finish) {
  e.loop(chunk.firstRow, chunk.endRow, plan.tileRows, [&](Value row) {
    if (plan.tileRows > 1) { // whole rows, of static extents
      int64_t width = *Emitter::constantIndex(columns);
      llvm::SmallVector<unsigned> counts{plan.tile.rows};
      if (int64_t rest = *Emitter::constantIndex(rows) % plan.tileRows)
        counts.push_back(unsigned(rest * width));
      Value count = e.mul(e.minimum(e.sub(chunk.endRow, row), plan.tileRows), width);
      emitForCount(e, count, counts, [&](unsigned pixels) { sum(row, e.index(0), pixels); });
      return finish(row, e.index(0), count);
    }
    e.loop(chunk.firstColumn, chunk.endColumn, plan.tile.rows, [&](Value column) {
      Value count = e.minimum(e.sub(chunk.endColumn, column), plan.tile.rows);
      // Chunks are multiples of the tile or whole rows.
      emitForCount(e, count, tileCounts(columns, plan.tile.rows),
                   [&](unsigned pixels) { sum(row, column, pixels); });
      finish(row, column, count);
    });
  });
}

std::pair<Value, Value> ConvolutionChunks::pixelAt(Value row, Value column, Value number) {
  if (plan.tileRows > 1)
    return {e.add(row, e.div(number, columns)), e.rem(number, columns)};
  return {row, e.add(column, number)};
}

TileOperands ConvolutionChunks::operands(const Chunk &chunk, const Left &left, const Phase &y,
                                         const Phase &x, Value row, Value column, Value right,
                                         unsigned vectors, unsigned pixels) {
  // The patch starts with the first input that its first position needs in any phase.
  Value pixelRow = plan.direct ? row : e.sub(row, chunk.firstRow);
  Value pixelColumn = plan.direct ? column : e.sub(column, chunk.firstColumn);
  int64_t rowShift = y.count ? y.in - (plan.direct ? 0 : conv.rows.firstInput()) : 0;
  int64_t columnShift = x.count ? x.in - (plan.direct ? 0 : conv.columns.firstInput()) : 0;
  int64_t rowStep = conv.rows.inStep(), columnStep = conv.columns.inStep();
  TileOperands operands;
  operands.left =
      e.advance(left.pointer,
                e.add(e.mul(e.add(e.mul(pixelRow, rowStep), rowShift), left.row),
                      e.mul(e.add(e.mul(pixelColumn, columnStep), columnShift), left.pixel)),
                4);
  operands.right = right;
  if (!conv.transposed && uint64_t(sizes.groupElements) * 4 > e.machine.l2Bytes / 4) {
    int64_t across = (plan.chunkColumns + plan.tile.rows - 1) / plan.tile.rows,
            down = plan.chunkRows / plan.tileRows;
    Value number = e.div(e.sub(row, chunk.firstRow), plan.tileRows);
    if (plan.tileRows == 1)
      number =
          e.add(e.mul(number, across), e.div(e.sub(column, chunk.firstColumn), plan.tile.rows));
    operands.prefetchRight(e, e.index(sizes.depth * vectors * sizes.lanes), number,
                           plan.tileRows == 1 ? across * down : down, vectors);
  }
  int64_t width = plan.tileRows > 1 ? *Emitter::constantIndex(columns) : int64_t(pixels);
  for (int64_t pixel = 0; pixel < int64_t(pixels); ++pixel)
    operands.rowOffsets.push_back(e.add(e.mul(left.row, pixel / width * rowStep),
                                        e.mul(left.pixel, pixel % width * columnStep)));
  return operands;
}

llvm::SmallVector<TileNest> ConvolutionChunks::nests(const Left &left, const Phase &y,
                                                     const Phase &x, unsigned vectors) {
  int64_t width = int64_t(vectors) * sizes.lanes, window = y.count * x.count;
  auto nest = [&](int64_t blocks, int64_t firstBlock, int64_t channels) {
    TileNest nest;
    nest.leftOffset = e.mul(left.block, firstBlock);
    nest.rightOffset = e.index(firstBlock * window * sizes.channelBlock * width);
    nest.loops.push_back({e.index(blocks), left.block, e.index(window * channels * width)});
    nest.loops.push_back(
        {e.index(y.count), e.mul(left.row, y.inStride), e.index(x.count * channels * width)});
    bool joined = x.inStride == 1 && Emitter::constantIndex(left.pixel) == channels &&
                  Emitter::constantIndex(left.channel) == 1;
    if (joined) {
      nest.loops.push_back({e.index(x.count * channels), left.channel, e.index(width)});
    } else {
      nest.loops.push_back(
          {e.index(x.count), e.mul(left.pixel, x.inStride), e.index(channels * width)});
      nest.loops.push_back({e.index(channels), left.channel, e.index(width)});
    }
    return nest;
  };
  llvm::SmallVector<TileNest> nests;
  if (sizes.fullBlocks)
    nests.push_back(nest(sizes.fullBlocks, 0, sizes.channelBlock));
  if (sizes.restChannels)
    nests.push_back(nest(1, sizes.fullBlocks, sizes.restChannels));
  return nests;
}

Value ConvolutionChunks::tileBuffer() {
  int64_t patch = (sizes.patchElements + sizes.lanes - 1) / sizes.lanes * sizes.lanes;
  return e.advance(e.workerScratch(), e.index(patch), 4);
}

} // namespace dovetail::codegen
