// SPDX-License-Identifier: Apache-2.0
//
// Emits convolutions as scheduled. A task computes a chunk of output pixels for some panels of
// output channels; where windows leave the image, or the image's layout does not suit, it copies
// the chunk's part of the image into a patch first.
#include "codegen/contraction/DepthwiseEmission.h"
#include "codegen/contraction/PatchEmission.h"
#include "codegen/contraction/TileEmission.h"

#include "codegen/Families.h"

namespace dovetail::codegen {
namespace {

class ConvolutionEmitter {
public:
  ConvolutionEmitter(Emitter &e, const Convolution &conv, const ConvolutionPlan &plan,
                     const Schedule &schedule)
      : e(e), conv(conv), plan(plan), sizes(conv, plan, e.machine), schedule(schedule) {
    Value rows = e.extentOf(conv.outRows), columns = e.extentOf(conv.outColumns);
    outRows = plan.flat ? e.index(1) : rows;
    outColumns = plan.flat ? e.mul(rows, columns) : columns;
    rowPositions = e.ceilDiv(outRows, conv.rows.outStep());
    columnPositions = e.ceilDiv(outColumns, conv.columns.outStep());
    rowChunks = e.ceilDiv(rowPositions, plan.chunkRows);
    columnChunks = e.ceilDiv(columnPositions, plan.chunkColumns);
    parts = (sizes.panels + plan.panelsPerTask - 1) / plan.panelsPerTask;
  }

  Value taskCount() {
    return e.mul(e.mul(e.mul(e.extentOf(conv.batch), conv.groups), e.mul(rowChunks, columnChunks)),
                 parts);
  }

  void tasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      Value part = e.rem(task, parts);
      task = e.div(task, parts);
      Value columnChunk = e.rem(task, columnChunks);
      task = e.div(task, columnChunks);
      Value rowChunk = e.rem(task, rowChunks);
      task = e.div(task, rowChunks);
      group = e.rem(task, conv.groups);
      image = e.div(task, conv.groups);
      firstRow = e.mul(rowChunk, plan.chunkRows);
      endRow = e.minimum(e.add(firstRow, plan.chunkRows), rowPositions);
      firstColumn = e.mul(columnChunk, plan.chunkColumns);
      endColumn = e.minimum(e.add(firstColumn, plan.chunkColumns), columnPositions);
      if (!plan.direct)
        PatchEmission(e, conv, plan, sizes)
            .copy({image, group, firstRow, endRow, firstColumn, endColumn});
      panels(part);
    });
  }

private:
  unsigned lastVectors() const { return unsigned(sizes.vectors % plan.tile.vectors); }

  void panels(Value part) {
    Value from = e.mul(part, plan.panelsPerTask);
    Value to = e.minimum(e.add(from, plan.panelsPerTask), sizes.panels);
    int64_t whole = sizes.vectors / plan.tile.vectors;
    e.loop(from, e.minimum(to, whole), 1,
           [&](Value panel) { this->panel(panel, plan.tile.vectors); });
    if (lastVectors())
      e.ifTrue(e.gt(to, e.index(whole)), [&] { panel(e.index(whole), lastVectors()); });
  }

  void panel(Value panel, unsigned vectors) {
    int64_t width = int64_t(plan.tile.vectors) * sizes.lanes;
    Value channel = e.mul(panel, width);
    Value weights = e.add(e.mul(group, sizes.groupElements), e.mul(panel, sizes.depth * width));
    Value right = e.advance(e.pointerOf(conv.weight), weights, 4);
    std::vector<Convolution::Window::Phase> rowPhases = conv.rows.phases(),
                                            columnPhases = conv.columns.phases();
    int64_t steps = 0; // of the reductions of the phases before
    for (rowPhase = 0; rowPhase < int64_t(rowPhases.size()); ++rowPhase)
      for (columnPhase = 0; columnPhase < int64_t(columnPhases.size()); ++columnPhase) {
        y = rowPhases[size_t(rowPhase)];
        x = columnPhases[size_t(columnPhase)];
        Value weights = e.advance(right, e.index(steps * vectors * sizes.lanes), 4);
        e.loop(firstRow, endRow, plan.tileRows, [&](Value row) {
          if (plan.tileRows > 1)
            return tileOfRows(row, channel, weights, vectors);
          e.loop(firstColumn, endColumn, plan.tile.rows, [&](Value column) {
            Value count = e.minimum(e.sub(endColumn, column), plan.tile.rows);
            emitForRows(count, [&](unsigned rows) { tile(row, column, weights, vectors, rows); });
            finish(row, column, count, channel, vectors);
          });
        });
        steps += conv.inPerGroup * y.count * x.count;
      }
  }

  /// Calls `body` for each number of pixels that a tile within a row can have.
  void emitForRows(Value count, llvm::function_ref<void(unsigned)> body) {
    unsigned most = plan.tile.rows;
    if (std::optional<int64_t> known = Emitter::constantIndex(columnPositions)) {
      // Chunks are multiples of the tile or whole rows.
      llvm::SmallVector<unsigned> wanted{most};
      if (unsigned rest = unsigned(*known % most))
        wanted.push_back(rest);
      choose(count, wanted, body);
      return;
    }
    llvm::SmallVector<unsigned> wanted;
    for (unsigned rows = most; rows >= 1; --rows)
      wanted.push_back(rows);
    choose(count, wanted, body);
  }

  void choose(Value count, llvm::ArrayRef<unsigned> wanted,
              llvm::function_ref<void(unsigned)> body) {
    if (wanted.size() == 1)
      return body(wanted[0]);
    e.ifElse(
        e.eq(count, e.index(wanted[0])),
        [&] {
          body(wanted[0]);
          return Values();
        },
        [&] {
          choose(count, wanted.drop_front(), body);
          return Values();
        });
  }

  /// Tiles of several whole output rows.
  void tileOfRows(Value row, Value channel, Value right, unsigned vectors) {
    unsigned columns = unsigned(conv.outColumns.value), most = plan.tile.rows;
    unsigned rest = unsigned(conv.outRows.value % plan.tileRows) * columns;
    Value count = e.mul(e.minimum(e.sub(endRow, row), plan.tileRows), columns);
    llvm::SmallVector<unsigned> wanted{most};
    if (rest)
      wanted.push_back(rest);
    choose(count, wanted, [&](unsigned rows) { tile(row, e.index(0), right, vectors, rows); });
    finish(row, e.index(0), count, channel, vectors);
  }

  /// Strides of the left side: the image itself or the patch.
  struct Left {
    Value pointer, row, pixel, block, channel;
  };

  Left left() {
    if (!plan.direct)
      return {e.workerScratch(), e.index(sizes.patchColumns * sizes.pitch), e.index(sizes.pitch),
              e.index(sizes.patchBlock), e.index(1)};
    int64_t channels = conv.groups * conv.inPerGroup;
    Value columns = e.extentOf(conv.inColumns), area = e.mul(e.extentOf(conv.inRows), columns);
    Value base = e.pointerOf(conv.input);
    auto at = [&](int64_t stored, Value groupStride) {
      Value offset = e.add(e.mul(image, e.mul(area, stored)), e.mul(group, groupStride));
      return e.advance(base, offset, 4);
    };
    switch (plan.in) {
    case ImageLayout::Blocked: {
      int64_t block = sizes.lanes, stored = (channels + block - 1) / block * block;
      return {at(stored, e.mul(area, conv.inPerGroup)), e.mul(columns, block), e.index(block),
              e.mul(area, block), e.index(1)};
    }
    case ImageLayout::ChannelsLast:
      return {at(channels, e.index(conv.inPerGroup)), e.mul(columns, channels), e.index(channels),
              e.index(0), e.index(1)};
    case ImageLayout::Plain:
      return {at(channels, e.mul(area, conv.inPerGroup)), columns, e.index(1), e.index(0), area};
    }
    return {};
  }

  /// Sums `rows` pixels from (row, column) on and leaves them in the tile buffer.
  void tile(Value row, Value column, Value right, unsigned vectors, unsigned rows) {
    Left l = left();
    // The patch starts with the first input that its first position needs in any phase.
    Value pixelRow = plan.direct ? row : e.sub(row, firstRow);
    Value pixelColumn = plan.direct ? column : e.sub(column, firstColumn);
    int64_t rowShift = y.count ? y.in - (plan.direct ? 0 : conv.rows.firstInput()) : 0;
    int64_t columnShift = x.count ? x.in - (plan.direct ? 0 : conv.columns.firstInput()) : 0;
    int64_t rowStep = conv.rows.inStep(), columnStep = conv.columns.inStep();
    TileOperands operands;
    operands.left =
        e.advance(l.pointer,
                  e.add(e.mul(e.add(e.mul(pixelRow, rowStep), rowShift), l.row),
                        e.mul(e.add(e.mul(pixelColumn, columnStep), columnShift), l.pixel)),
                  4);
    operands.right = right;
    if (!conv.transposed && uint64_t(sizes.groupElements) * 4 > e.machine.l2Bytes / 4) {
      int64_t across = (plan.chunkColumns + plan.tile.rows - 1) / plan.tile.rows,
              down = plan.chunkRows / plan.tileRows;
      Value number = e.div(e.sub(row, firstRow), plan.tileRows);
      if (plan.tileRows == 1)
        number = e.add(e.mul(number, across), e.div(e.sub(column, firstColumn), plan.tile.rows));
      operands.prefetchRight(e, e.index(sizes.depth * vectors * sizes.lanes), number,
                             plan.tileRows == 1 ? across * down : down, vectors);
    }
    for (unsigned r = 0; r < rows; ++r) {
      int64_t width = plan.tileRows > 1 ? conv.outColumns.value : int64_t(rows);
      operands.rowOffsets.push_back(e.add(e.mul(l.row, int64_t(r) / width * rowStep),
                                          e.mul(l.pixel, int64_t(r) % width * columnStep)));
    }
    int64_t width = int64_t(vectors) * sizes.lanes;
    int64_t window = y.count * x.count;
    auto nest = [&](int64_t blocks, int64_t firstBlock, int64_t channels) {
      TileNest nest;
      int64_t blockElements = window * channels * width;
      nest.leftOffset = e.mul(l.block, firstBlock);
      nest.rightOffset = e.index(firstBlock * window * sizes.channelBlock * width);
      nest.loops.push_back({e.index(blocks), l.block, e.index(blockElements)});
      nest.loops.push_back(
          {e.index(y.count), e.mul(l.row, y.inStride), e.index(x.count * channels * width)});
      bool joined = x.inStride == 1 && Emitter::constantIndex(l.pixel) == channels &&
                    Emitter::constantIndex(l.channel) == 1;
      if (joined) {
        nest.loops.push_back({e.index(x.count * channels), l.channel, e.index(width)});
      } else {
        nest.loops.push_back(
            {e.index(x.count), e.mul(l.pixel, x.inStride), e.index(channels * width)});
        nest.loops.push_back({e.index(channels), l.channel, e.index(width)});
      }
      return nest;
    };
    llvm::SmallVector<TileNest> nests;
    if (sizes.fullBlocks)
      nests.push_back(nest(sizes.fullBlocks, 0, sizes.channelBlock));
    if (sizes.restChannels)
      nests.push_back(nest(1, sizes.fullBlocks, sizes.restChannels));
    Values sums = emitTile(e, vectors, operands, nests);
    plan.out == ImageLayout::Plain ? keepTurned(sums, rows, vectors) : keep(sums);
  }

  Value tileBuffer() {
    int64_t patch = (sizes.patchElements + sizes.lanes - 1) / sizes.lanes * sizes.lanes;
    return e.advance(e.workerScratch(), e.index(patch), 4);
  }

  void keep(const Values &sums) {
    Value buffer = tileBuffer();
    for (unsigned i = 0; i < sums.size(); ++i)
      e.storeVector(DVT_F32, sums[i], buffer, e.index(int64_t(i) * sizes.lanes));
  }

  /// Keeps a tile with pixels innermost: for each channel, the pixels rounded up to whole vectors.
  void keepTurned(const Values &sums, unsigned rows, unsigned vectors) {
    Value buffer = tileBuffer();
    int64_t lanes = sizes.lanes, pitch = turnedPitch();
    for (unsigned first = 0; first < rows; first += unsigned(lanes))
      for (unsigned v = 0; v < vectors; ++v) {
        Values square;
        for (unsigned r = first; r < first + lanes; ++r)
          square.push_back(r < rows ? sums[r * vectors + v] : e.constant(e.f32Vector(), 0));
        square = e.transpose(square);
        for (int64_t channel = 0; channel < lanes; ++channel)
          e.storeVector(DVT_F32, square[size_t(channel)], buffer,
                        e.index((v * lanes + channel) * pitch + first));
      }
  }

  int64_t turnedPitch() const {
    return (plan.tile.rows + sizes.lanes - 1) / sizes.lanes * sizes.lanes;
  }

  void finish(Value row, Value column, Value count, Value channel, unsigned vectors) {
    auto emit = [&](Value count) {
      plan.out == ImageLayout::Plain ? finishTurned(row, column, count, channel, vectors)
                                     : finishPixels(row, column, count, channel, vectors);
    };
    if (!conv.transposed)
      return emit(count);
    // The last positions of later phases may lie past the output.
    Value left =
        e.ceilDiv(e.maximum(e.sub(outColumns, outColumn(column)), 0), conv.columns.outStep());
    e.ifTrue(e.lt(outRow(row), outRows), [&] { emit(e.minimum(count, left)); });
  }

  Value outRow(Value position) { return e.add(e.mul(position, conv.rows.outStep()), rowPhase); }
  Value outColumn(Value position) {
    return e.add(e.mul(position, conv.columns.outStep()), columnPhase);
  }

  Values index(Value row, Value column, Value channel) {
    Values index(conv.fusion.extents.size());
    index[0] = image;
    index[1] = e.add(e.mul(group, conv.outPerGroup), channel);
    if (conv.rowDimension() >= 0)
      index[unsigned(conv.rowDimension())] = outRow(row);
    index[conv.columnDimension()] = outColumn(column);
    return index;
  }

  void finishPixels(Value row, Value column, Value count, Value channel, unsigned vectors) {
    Values masks(vectors, Value());
    if (int64_t rest = conv.outPerGroup % sizes.lanes)
      masks.back() = lastMask(channel, vectors, rest);
    TileFinish finish(e, conv.fusion, layouts(1));
    Value buffer = tileBuffer();
    e.loop(e.index(0), count, 1, [&](Value r) {
      Values sums;
      for (unsigned v = 0; v < vectors; ++v)
        sums.push_back(
            e.loadVector(DVT_F32, buffer,
                         e.add(e.mul(r, int64_t(vectors) * sizes.lanes), int64_t(v) * sizes.lanes),
                         sizes.lanes));
      Value atRow = row, atColumn = e.add(column, r);
      if (plan.tileRows > 1) {
        atRow = e.add(row, e.div(r, outColumns));
        atColumn = e.rem(r, outColumns);
      }
      finish.emit(index(atRow, atColumn, channel), sums, masks);
    });
  }

  /// Of the last vector of a panel; only the group's last panel is cut.
  Value lastMask(Value channel, unsigned vectors, int64_t rest) {
    if (lastVectors() && vectors != lastVectors())
      return {};
    if (lastVectors() || sizes.panels == 1)
      return e.tailMask(e.index(rest));
    Value remaining = e.sub(e.index(conv.outPerGroup), channel);
    return e.tailMask(e.sub(remaining, int64_t(vectors - 1) * sizes.lanes));
  }

  void finishTurned(Value row, Value column, Value count, Value channel, unsigned vectors) {
    TileFinish::Layouts finishLayouts = layouts(int(conv.columnDimension()));
    finishLayouts.columnStep = conv.columns.outStep();
    TileFinish finish(e, conv.fusion, std::move(finishLayouts));
    Value buffer = tileBuffer();
    Value channels =
        e.minimum(e.sub(e.index(conv.outPerGroup), channel), int64_t(vectors) * sizes.lanes);
    unsigned pieces = unsigned(turnedPitch() / sizes.lanes);
    Values masks;
    for (unsigned piece = 0; piece < pieces; ++piece)
      masks.push_back(e.tailMask(e.sub(count, int64_t(piece) * sizes.lanes)));
    e.loop(e.index(0), channels, 1, [&](Value c) {
      Values sums;
      for (unsigned piece = 0; piece < pieces; ++piece)
        sums.push_back(e.loadVector(DVT_F32, buffer,
                                    e.add(e.mul(c, turnedPitch()), int64_t(piece) * sizes.lanes),
                                    sizes.lanes));
      finish.emit(index(row, column, e.add(channel, c)), sums, masks);
    });
  }

  TileFinish::Layouts layouts(int column) const {
    return convolutionFinish(e, conv, schedule, column);
  }

  Emitter &e;
  const Convolution &conv;
  const ConvolutionPlan &plan;
  ConvolutionSizes sizes;
  const Schedule &schedule;
  Value outRows, outColumns, rowPositions, columnPositions, rowChunks, columnChunks;
  int64_t parts;
  Convolution::Window::Phase y, x; ///< being emitted
  int64_t rowPhase = 0, columnPhase = 0;
  Value image, group, firstRow, endRow, firstColumn, endColumn; ///< of the current task
};

} // namespace

TileFinish::Layouts convolutionFinish(Emitter &e, const Convolution &conv, const Schedule &schedule,
                                      int column) {
  TileFinish::Layouts layouts;
  layouts.leaves = *conv.fusion.leafAccesses(e.problem, schedule.inputLayouts);
  for (uint32_t i = 0; i < e.problem.problem().output_count; ++i)
    layouts.outputs.push_back(*denseAccess(e.problem.value(e.problem.problem().outputs[i]),
                                           *Layout::parse(schedule.outputLayouts[i])));
  if (conv.bias) {
    Addend bias{*conv.bias, {}, 1};
    bias.access.strides.assign(conv.fusion.extents.size(), Product(0));
    bias.access.strides[1] = 1;
    layouts.addend = std::move(bias);
  }
  layouts.column = column;
  return layouts;
}

Status emitConvolutionKernel(const ProblemReader &problem, const Machine &,
                             const Schedule &schedule, KernelModule &module) {
  auto found = Convolution::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const Convolution &conv = **found;
  ConvolutionPlan plan = ConvolutionPlan::read(schedule);
  module.addPhase(
      [&](Emitter &e) { return ConvolutionEmitter(e, conv, plan, schedule).taskCount(); },
      [&](Emitter &e, Value begin, Value end) {
        ConvolutionEmitter(e, conv, plan, schedule).tasks(begin, end);
      });
  return Status::success();
}

} // namespace dovetail::codegen
