// SPDX-License-Identifier: Apache-2.0
//
// Emits depthwise convolutions with channels along vectors, in blocked and channels-last images. A
// task is some output rows of a block of channels, or of all blocks where these lie side by side.
// Window rows outside the image are left out by the bounds of their loop; window columns outside it
// by emitting the tiles at both ends of a row on their own, or, where extents are not known, by
// bounds again, one column at a time.
#include "codegen/contraction/DepthwiseEmission.h"
#include "codegen/contraction/TileEmission.h"

#include "codegen/Families.h"

namespace dovetail::codegen {
namespace {

class DepthwiseEmitter {
public:
  DepthwiseEmitter(Emitter &e, const Convolution &conv, const DepthwisePlan &plan,
                   const Schedule &schedule)
      : e(e), conv(conv), plan(plan), lanes(e.lanes()),
        finish(e, conv.fusion, convolutionFinish(e, conv, schedule, 1)) {
    outRows = e.extentOf(conv.outRows);
    outColumns = e.extentOf(conv.outColumns);
    inRows = e.extentOf(conv.inRows);
    inColumns = e.extentOf(conv.inColumns);
    chunks = e.ceilDiv(outRows, plan.chunkRows);
    blocks = (conv.groups + lanes - 1) / lanes;
    isBlocked = plan.layout == ImageLayout::Blocked;
    pixel = isBlocked ? lanes : conv.groups;
    inPlace = conv.fusion.cost * double(plan.tile) < 160;
  }

  Value taskCount() { return e.mul(e.mul(e.extentOf(conv.batch), isBlocked ? blocks : 1), chunks); }

  void tasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      Value chunk = e.rem(task, chunks);
      task = e.div(task, chunks);
      taskBlock = isBlocked ? e.rem(task, blocks) : Value();
      image = isBlocked ? e.div(task, blocks) : task;
      Value first = e.mul(chunk, plan.chunkRows);
      e.loop(first, e.minimum(e.add(first, plan.chunkRows), outRows), 1,
             [&](Value row) { this->row(row); });
    });
  }

private:
  struct WindowRange {
    Value from, to;
  };

  /// Places of the window that lie in an image of `extent` for output `position`.
  WindowRange inside(const Convolution::Window &window, Value position, Value extent) {
    Value start = e.sub(e.mul(position, window.stride), window.padBegin);
    // ceil(-start / dilation) where that is positive, and ceil((extent - start) / dilation).
    Value from = e.ceilDiv(e.maximum(e.sub(e.index(0), start), 0), window.dilation);
    Value to = e.ceilDiv(e.maximum(e.sub(extent, start), 0), window.dilation);
    return {e.minimum(from, window.size), e.minimum(to, window.size)};
  }

  WindowRange rowRange(Value row) {
    if (!conv.rows.padBegin && !conv.rows.padEnd)
      return {e.index(0), e.index(conv.rows.size)};
    return inside(conv.rows, row, inRows);
  }

  /// Calls `body` for each block of channels of the task.
  void forBlocks(llvm::function_ref<void()> body) {
    auto emit = [&](Value number) {
      block = number;
      mask = conv.groups % lanes ? e.tailMask(e.sub(e.index(conv.groups), e.mul(block, lanes)))
                                 : Value();
      Value area = e.mul(inRows, inColumns);
      Value offset = isBlocked ? e.mul(e.add(e.mul(image, blocks), block), e.mul(area, lanes))
                               : e.add(e.mul(image, e.mul(area, conv.groups)), e.mul(block, lanes));
      source = e.advance(e.pointerOf(conv.input), offset, 4);
      int64_t window = conv.rows.size * conv.columns.size;
      weights = e.advance(e.pointerOf(conv.weight), e.mul(block, window * lanes), 4);
      body();
    };
    if (isBlocked)
      emit(taskBlock);
    else
      e.loop(e.index(0), e.index(blocks), 1, emit);
  }

  void row(Value row) {
    const Convolution::Window &x = conv.columns;
    WindowRange range = rowRange(row);
    auto knownOut = Emitter::constantIndex(outColumns), knownIn = Emitter::constantIndex(inColumns);
    if (!knownOut || !knownIn)
      return rowOfAnyLength(row, range);
    InnerColumns inner = innerColumns(x, *knownIn, *knownOut);
    int64_t column = 0;
    while (column < *knownOut) {
      int64_t width = std::min(plan.tile, *knownOut - column);
      int64_t repeats = 0; // whole tiles from here on of which all windows lie inside
      if (column >= inner.first && column + plan.tile <= inner.end)
        repeats = (inner.end - column) / plan.tile;
      if (repeats > 1) {
        e.loop(e.index(column), e.index(column + repeats * plan.tile), plan.tile,
               [&](Value at) { forBlocks([&] { tile(row, range, at, plan.tile); }); });
        column += repeats * plan.tile;
      } else {
        forBlocks([&] { tile(row, range, e.index(column), width); });
        column += width;
      }
    }
  }

  void rowOfAnyLength(Value row, WindowRange range) {
    const Convolution::Window &x = conv.columns;
    int64_t firstInner = (x.padBegin + x.stride - 1) / x.stride;
    Value first = e.minimum(e.index(firstInner), outColumns);
    Value room = e.add(inColumns, x.padBegin - x.reach());
    Value end = e.add(e.div(e.maximum(room, 0), x.stride), 1);
    end =
        e.maximum(e.minimum(e.select(e.lt(room, e.index(0)), e.index(0), end), outColumns), first);
    Value tiles = e.div(e.sub(end, first), plan.tile);
    Value endTiles = e.add(first, e.mul(tiles, plan.tile));
    auto single = [&](Value column) { forBlocks([&] { oneColumn(row, range, column); }); };
    e.loop(e.index(0), first, 1, single);
    e.loop(first, endTiles, plan.tile,
           [&](Value at) { forBlocks([&] { tile(row, range, at, plan.tile); }); });
    e.loop(endTiles, outColumns, 1, single);
  }

  Value lineOf(Value row, Value windowRow) {
    const Convolution::Window &y = conv.rows;
    Value imageRow = e.add(e.sub(e.mul(row, y.stride), y.padBegin), e.mul(windowRow, y.dilation));
    return e.mul(e.mul(imageRow, inColumns), pixel);
  }

  Value loadPixel(Value line, Value imageColumn) {
    Value offset = e.add(line, e.mul(imageColumn, pixel));
    return e.loadVector(DVT_F32, source, offset, unsigned(lanes), isBlocked ? Value() : mask);
  }

  /// `width` columns from `column` on. Where the column is a constant, places outside the image are
  /// left out; otherwise all are inside.
  void tile(Value row, WindowRange range, Value column, int64_t width) {
    const Convolution::Window &x = conv.columns;
    auto known = Emitter::constantIndex(column), knownIn = Emitter::constantIndex(inColumns);
    Value start = e.sub(e.mul(column, x.stride), x.padBegin);
    prefetchRows(row, start, width);
    Values sums(size_t(width), e.constant(e.f32Vector(), 0));
    sums = e.loop(range.from, range.to, 1, sums, [&](Value windowRow, ValueRange carried) {
      Values next(carried);
      Value line = e.add(lineOf(row, windowRow), e.mul(start, pixel));
      Values taps;
      for (int64_t tap = 0; tap < x.size; ++tap)
        taps.push_back(e.loadVector(
            DVT_F32, weights, e.mul(e.add(e.mul(windowRow, x.size), tap), lanes), unsigned(lanes)));
      for (int64_t reach = 0; reach < (width - 1) * x.stride + x.reach(); ++reach) {
        if (known && knownIn) {
          int64_t imageColumn = *known * x.stride - x.padBegin + reach;
          if (imageColumn < 0 || imageColumn >= *knownIn)
            continue;
        }
        Value vector;
        for (int64_t tap = 0; tap < x.size; ++tap) {
          int64_t rest = reach - tap * x.dilation;
          if (rest < 0 || rest % x.stride || rest / x.stride >= width)
            continue;
          if (!vector)
            vector = loadPixel(line, e.index(reach));
          size_t place = size_t(rest / x.stride);
          next[place] = e.fma(vector, taps[size_t(tap)], next[place]);
        }
      }
      return next;
    });
    store(row, column, sums);
  }

  /// Asks for the image rows that the next output row needs besides those of this one.
  void prefetchRows(Value row, Value start, int64_t width) {
    const Convolution::Window &y = conv.rows, &x = conv.columns;
    for (int64_t ahead = 1; ahead <= std::min(y.stride, y.reach()); ++ahead) {
      Value imageRow = e.add(e.mul(row, y.stride), y.reach() - 1 - y.padBegin + ahead);
      Value line = e.mul(e.add(e.mul(imageRow, inColumns), start), pixel);
      for (int64_t place = 0; place < width * x.stride; ++place)
        e.prefetch(source, e.add(line, place * pixel), 4);
    }
  }

  void oneColumn(Value row, WindowRange range, Value column) {
    const Convolution::Window &x = conv.columns;
    WindowRange across = inside(x, column, inColumns);
    Value start = e.sub(e.mul(column, x.stride), x.padBegin);
    Values sums(1, e.constant(e.f32Vector(), 0));
    sums = e.loop(range.from, range.to, 1, sums, [&](Value windowRow, ValueRange outer) {
      Value line = lineOf(row, windowRow);
      return e.loop(across.from, across.to, 1, Values(outer), [&](Value tap, ValueRange carried) {
        Value weight = e.loadVector(
            DVT_F32, weights, e.mul(e.add(e.mul(windowRow, x.size), tap), lanes), unsigned(lanes));
        Value vector = loadPixel(line, e.add(start, e.mul(tap, x.dilation)));
        return Values{e.fma(vector, weight, carried[0])};
      });
    });
    store(row, column, sums);
  }

  void finishOne(Value row, Value column, Value sum) {
    Values index(conv.fusion.extents.size());
    index[0] = image;
    index[1] = e.mul(block, lanes);
    if (conv.rowDimension() >= 0)
      index[unsigned(conv.rowDimension())] = row;
    index[conv.columnDimension()] = column;
    finish.emit(index, {sum}, {mask});
  }

  void store(Value row, Value column, const Values &sums) {
    if (inPlace || sums.size() == 1) {
      for (size_t i = 0; i < sums.size(); ++i)
        finishOne(row, e.add(column, int64_t(i)), sums[i]);
      return;
    }
    for (size_t i = 0; i < sums.size(); ++i)
      e.storeVector(DVT_F32, sums[i], e.workerScratch(), e.index(int64_t(i) * lanes));
    e.loop(e.index(0), e.index(int64_t(sums.size())), 1, [&](Value i) {
      finishOne(row, e.add(column, i),
                e.loadVector(DVT_F32, e.workerScratch(), e.mul(i, lanes), unsigned(lanes)));
    });
  }

  Emitter &e;
  const Convolution &conv;
  const DepthwisePlan &plan;
  int64_t lanes, blocks, pixel;
  bool isBlocked, inPlace;
  TileFinish finish;
  Value outRows, outColumns, inRows, inColumns, chunks;
  Value image, taskBlock, block, mask, source, weights; ///< of the current task
};

} // namespace

Status emitDepthwiseKernel(const ProblemReader &problem, const Machine &, const Schedule &schedule,
                           KernelModule &module) {
  auto found = Convolution::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const Convolution &conv = **found;
  DepthwisePlan plan = DepthwisePlan::read(schedule);
  if (plan.layout == ImageLayout::Plain)
    return emitPlainDepthwise(conv, plan, schedule, module);
  module.addPhase([&](Emitter &e) { return DepthwiseEmitter(e, conv, plan, schedule).taskCount(); },
                  [&](Emitter &e, Value begin, Value end) {
                    DepthwiseEmitter(e, conv, plan, schedule).tasks(begin, end);
                  });
  return Status::success();
}

} // namespace dovetail::codegen
