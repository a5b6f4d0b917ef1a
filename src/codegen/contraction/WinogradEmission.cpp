// SPDX-License-Identifier: Apache-2.0
//
// Emits Winograd convolutions as scheduled: for each chunk of tiles, the transform of its part of
// the image; then for each panel of output channels and each place of the transform a product of
// tiles with weights; then the transform back and the finishing of the outputs. Tiles are numbered
// through all images; those that leave the image read zeros by masks, and what they would write
// past it is left out by the bounds of a loop.
#include "codegen/contraction/ConvolutionChunks.h"
#include "codegen/contraction/ConvolutionEmission.h"
#include "codegen/contraction/WinogradTransform.h"
#include "codegen/schedule/contraction/Winograd.h"

#include "codegen/Families.h"

namespace dovetail::codegen {
namespace {

class WinogradEmitter {
public:
  WinogradEmitter(Emitter &e, const Convolution &conv, const WinogradPlan &plan,
                  const Schedule &schedule)
      : e(e), conv(conv), plan(plan), schedule(schedule), sizes(conv, plan, e.machine),
        type(e.problem.value(conv.input).type) {
    isBlocked = plan.layout == ImageLayout::Blocked;
    pixel = isBlocked ? sizes.lanes : conv.inPerGroup;
    inRows = e.extentOf(conv.inRows);
    inColumns = e.extentOf(conv.inColumns);
    outRows = e.extentOf(conv.outRows);
    outColumns = e.extentOf(conv.outColumns);
    across = e.ceilDiv(outColumns, plan.size);
    perImage = e.mul(e.ceilDiv(outRows, plan.size), across);
    tiles = e.mul(e.extentOf(conv.batch), perImage);
    chunks = e.ceilDiv(tiles, plan.chunk);
  }

  Value transformCount() { return e.mul(chunks, sizes.blocks); }

  /// A task is a block of channels of a chunk.
  void transformTasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      startChunk(e.div(task, sizes.blocks));
      Value block = e.rem(task, sizes.blocks);
      transformChunk(block, e.add(block, 1));
    });
  }

  Value taskCount() { return plan.shared ? e.mul(chunks, sizes.panels) : chunks; }

  /// A task is a panel of a chunk, or all of them. Chunks of the same panel follow one another.
  void tasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      if (plan.shared) {
        startChunk(e.rem(task, chunks));
        Value panel = e.div(task, chunks);
        return panels(panel, e.add(panel, 1));
      }
      startChunk(task);
      transformChunk(e.index(0), e.index(sizes.blocks));
      panels(e.index(0), e.index(sizes.panels));
    });
  }

private:
  void startChunk(Value chunk) {
    firstTile = e.mul(chunk, plan.chunk);
    count = e.minimum(e.sub(tiles, firstTile), plan.chunk);
    transformed = plan.shared ? e.advance(e.workspace(), e.mul(chunk, sizes.imageElements), 4)
                              : e.workerScratch();
    sums = e.advance(e.workerScratch(), e.index(plan.shared ? 0 : sizes.imageElements), 4);
    outputs = e.advance(sums, e.index(sizes.sumElements), 4);
  }

  struct Tile {
    Value image, row, column; ///< of its first output
  };
  Tile tileAt(Value number) {
    Value rest = e.rem(number, perImage);
    return {e.div(number, perImage), e.mul(e.div(rest, across), plan.size),
            e.mul(e.rem(rest, across), plan.size)};
  }

  /// Blocks [from, to) of all tiles of the chunk.
  void transformChunk(Value from, Value to) {
    e.loop(e.index(0), count, 1, [&](Value t) {
      Tile tile = tileAt(e.add(firstTile, t));
      Value row = e.sub(tile.row, conv.rows.padBegin),
            column = e.sub(tile.column, conv.columns.padBegin);
      Value rowsInside = e.bitAnd(e.ge(row, e.index(0)), e.le(e.add(row, plan.reach()), inRows));
      Value columnsInside =
          e.bitAnd(e.ge(column, e.index(0)), e.le(e.add(column, plan.reach()), inColumns));
      Value area = e.mul(inRows, inColumns);
      Value start = e.mul(e.add(e.mul(row, inColumns), column), pixel);
      start = e.add(start, e.mul(tile.image, e.mul(area, isBlocked ? sizes.blocks * sizes.lanes
                                                                   : conv.inPerGroup)));
      auto blocks = [&](bool inside) {
        Values rowMasks, columnMasks;
        for (int64_t i = 0; i < plan.reach() && !inside; ++i) {
          rowMasks.push_back(insideMask(e.add(row, i), inRows));
          columnMasks.push_back(insideMask(e.add(column, i), inColumns));
        }
        e.loop(from, to, 1, [&](Value block) {
          Value blockStride = isBlocked ? e.mul(area, sizes.lanes) : e.index(sizes.lanes);
          Value source = e.advance(e.pointerOf(conv.input), e.add(start, e.mul(block, blockStride)),
                                   elementBytes(type));
          transformTile(source, block, t, rowMasks, columnMasks);
        });
        return Values();
      };
      e.ifElse(
          e.bitAnd(rowsInside, columnsInside), [&] { return blocks(true); },
          [&] { return blocks(false); });
    });
  }

  Value insideMask(Value position, Value extent) {
    Value inside = e.bitAnd(e.ge(position, e.index(0)), e.lt(position, extent));
    return e.splat(inside, unsigned(sizes.lanes));
  }

  /// One block of channels of one tile; masks are empty where the tile lies in the image.
  void transformTile(Value source, Value block, Value t, const Values &rowMasks,
                     const Values &columnMasks) {
    int64_t reach = plan.reach();
    Value channels;
    if (!isBlocked && conv.inPerGroup % sizes.lanes)
      channels = e.tailMask(e.sub(e.index(conv.inPerGroup), e.mul(block, sizes.lanes)));
    std::vector<Values> columns;
    for (int64_t x = 0; x < reach; ++x) {
      Values line;
      for (int64_t y = 0; y < reach; ++y) {
        Value mask = channels;
        if (!rowMasks.empty()) {
          Value inside = e.bitAnd(rowMasks[size_t(y)], columnMasks[size_t(x)]);
          mask = channels ? e.bitAnd(channels, inside) : inside;
        }
        Value offset = e.mul(e.add(e.mul(inColumns, y), x), pixel);
        line.push_back(e.loadVector(type, source, offset, unsigned(sizes.lanes), mask));
      }
      columns.push_back(emitImageLine(e, plan.size, line));
    }
    Value place = e.mul(e.add(e.mul(block, plan.chunk), t), sizes.lanes);
    for (int64_t y = 0; y < reach; ++y) {
      Values line;
      for (int64_t x = 0; x < reach; ++x)
        line.push_back(columns[size_t(x)][size_t(y)]);
      line = emitImageLine(e, plan.size, line);
      for (int64_t x = 0; x < reach; ++x)
        e.storeVector(DVT_F32, line[size_t(x)], transformed,
                      e.add(place, (y * reach + x) * sizes.placePitch));
    }
  }

  PanelCut cut() const { return {sizes.vectors, plan.tile.vectors}; }

  void panels(Value from, Value to) {
    cut().forPanels(e, from, to,
                    [&](Value panel, unsigned vectors) { this->panel(panel, vectors); });
  }

  void panel(Value panel, unsigned vectors) {
    int64_t panelWidth = int64_t(plan.tile.vectors) * sizes.lanes,
            width = int64_t(vectors) * sizes.lanes;
    Value weights = e.advance(e.pointerOf(conv.weight),
                              e.mul(panel, plan.places() * conv.inPerGroup * panelWidth), 4);
    e.loop(e.index(0), e.index(plan.places()), 1, [&](Value place) {
      Value right = e.advance(weights, e.mul(place, conv.inPerGroup * width), 4);
      Value left = e.advance(transformed, e.mul(place, sizes.placePitch), 4);
      e.loop(e.index(0), count, plan.tile.rows, [&](Value t) {
        emitForCount(e, e.minimum(e.sub(count, t), plan.tile.rows), rowCounts(),
                     [&](unsigned rows) { product(left, right, place, t, vectors, rows); });
      });
    });
    e.loop(e.index(0), count, 1,
           [&](Value t) { finishTile(t, e.mul(panel, panelWidth), vectors); });
  }

  /// Numbers of tiles that a register tile can have.
  llvm::SmallVector<unsigned> rowCounts() {
    unsigned most = plan.tile.rows;
    std::optional<int64_t> known = Emitter::constantIndex(tiles);
    llvm::SmallVector<unsigned> counts = tileCounts(known ? e.index(plan.chunk) : tiles, most);
    unsigned last = known ? unsigned(*known % plan.chunk % most) : 0;
    if (last && !llvm::is_contained(counts, last))
      counts.push_back(last);
    return counts;
  }

  /// Sums over all channels for `rows` tiles from `t` on, at one place.
  void product(Value left, Value right, Value place, Value t, unsigned vectors, unsigned rows) {
    int64_t lanes = sizes.lanes, width = int64_t(vectors) * lanes;
    TileOperands operands;
    operands.left = e.advance(left, e.mul(t, lanes), 4);
    operands.right = right;
    for (unsigned r = 0; r < rows; ++r)
      operands.rowOffsets.push_back(e.index(int64_t(r) * lanes));
    Value block = e.index(plan.chunk * lanes);
    auto nest = [&](int64_t first, int64_t blocks, int64_t channels) {
      TileNest nest;
      nest.leftOffset = e.mul(block, first);
      nest.rightOffset = e.index(first * lanes * width);
      nest.loops.push_back({e.index(blocks), block, e.index(lanes * width)});
      nest.loops.push_back({e.index(channels), e.index(1), e.index(width)});
      return nest;
    };
    llvm::SmallVector<TileNest> nests;
    int64_t whole = conv.inPerGroup / lanes;
    nests.push_back(nest(0, whole, lanes));
    if (int64_t rest = conv.inPerGroup % lanes)
      nests.push_back(nest(whole, 1, rest));
    Values found = emitTile(e, vectors, operands, nests);
    Value at = e.add(e.mul(t, plan.places() * width), e.mul(place, lanes));
    for (unsigned i = 0; i < found.size(); ++i)
      e.storeVector(DVT_F32, found[i], sums, e.add(at, int64_t(i) * plan.places() * lanes));
  }

  /// Transforms the sums of one tile back, into outputs by vector, row and column of the tile, and
  /// finishes those.
  void finishTile(Value t, Value channel, unsigned vectors) {
    int64_t reach = plan.reach(), size = plan.size, lanes = sizes.lanes;
    int64_t tileElements = plan.places() * lanes;
    e.loop(e.index(0), e.index(vectors), 1, [&](Value v) {
      Value from = e.advance(sums, e.mul(e.add(e.mul(t, int64_t(vectors)), v), tileElements), 4);
      Value to = e.advance(outputs, e.mul(v, size * size * lanes), 4);
      std::vector<Values> rows;
      for (int64_t y = 0; y < reach; ++y) {
        Values line;
        for (int64_t x = 0; x < reach; ++x)
          line.push_back(
              e.loadVector(DVT_F32, from, e.index((y * reach + x) * lanes), unsigned(lanes)));
        rows.push_back(emitOutputLine(e, size, line));
      }
      for (int64_t x = 0; x < size; ++x) {
        Values line;
        for (int64_t y = 0; y < reach; ++y)
          line.push_back(rows[size_t(y)][size_t(x)]);
        line = emitOutputLine(e, size, line);
        for (int64_t y = 0; y < size; ++y)
          e.storeVector(DVT_F32, line[size_t(y)], to, e.index((y * size + x) * lanes));
      }
    });
    Values masks = cut().masks(e, conv.outPerGroup, channel, vectors);
    Tile tile = tileAt(e.add(firstTile, t));
    TileFinish finish(e, conv.fusion, convolutionFinish(e, conv, schedule, 1));
    e.loop(e.index(0), e.minimum(e.sub(outRows, tile.row), size), 1, [&](Value y) {
      e.loop(e.index(0), e.minimum(e.sub(outColumns, tile.column), size), 1, [&](Value x) {
        Value at = e.mul(e.add(e.mul(y, size), x), lanes);
        Values found;
        for (unsigned v = 0; v < vectors; ++v)
          found.push_back(e.loadVector(
              DVT_F32, outputs, e.add(at, int64_t(v) * size * size * lanes), unsigned(lanes)));
        finish.emit({tile.image, channel, e.add(tile.row, y), e.add(tile.column, x)}, found, masks);
      });
    });
  }

  Emitter &e;
  const Convolution &conv;
  const WinogradPlan &plan;
  const Schedule &schedule;
  WinogradSizes sizes;
  dvt_type type; ///< of the image
  bool isBlocked;
  int64_t pixel; ///< elements from one to the next
  Value inRows, inColumns, outRows, outColumns, across, perImage, tiles, chunks;
  Value firstTile, count, transformed, sums, outputs; ///< of the current chunk
};

} // namespace

Status emitWinogradKernel(const ProblemReader &problem, const Machine &, const Schedule &schedule,
                          KernelModule &module) {
  auto found = Convolution::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const Convolution &conv = **found;
  WinogradPlan plan = WinogradPlan::read(schedule);
  auto emitter = [&](Emitter &e) { return WinogradEmitter(e, conv, plan, schedule); };
  if (plan.shared)
    module.addPhase(
        [&](Emitter &e) { return emitter(e).transformCount(); },
        [&](Emitter &e, Value begin, Value end) { emitter(e).transformTasks(begin, end); });
  module.addPhase([&](Emitter &e) { return emitter(e).taskCount(); },
                  [&](Emitter &e, Value begin, Value end) { emitter(e).tasks(begin, end); });
  return Status::success();
}

} // namespace dovetail::codegen
