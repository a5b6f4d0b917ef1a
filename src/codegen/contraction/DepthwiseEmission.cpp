// SPDX-License-Identifier: Apache-2.0
//
// Emits depthwise convolutions with channels along vectors, in blocked and channels-last images.
// Window rows outside the image are left out by the bounds of their loop; window columns outside it
// by emitting the tiles at both ends of a row on their own, or, where extents are not known, by
// bounds again, one column at a time.
#include "codegen/contraction/DepthwiseEmission.h"

#include "codegen/contraction/ConvolutionEmission.h"

#include "codegen/Families.h"

namespace dovetail::codegen {
DepthwiseRows::DepthwiseRows(Emitter &e, const Convolution &conv, const DepthwisePlan &plan,
                             Value buffer, Finish finish)
    : e(e), conv(conv), plan(plan), buffer(buffer), finish(std::move(finish)),
      type(e.problem.value(conv.input).type), lanes(e.lanes()) {
  outColumns = e.extentOf(conv.outColumns);
  inRows = e.extentOf(conv.inRows);
  inColumns = e.extentOf(conv.inColumns);
  blockCount = (conv.groups + lanes - 1) / lanes;
  isBlocked = plan.layout == ImageLayout::Blocked;
  pixel = isBlocked ? lanes : conv.groups;
  // Weights of all blocks are used again for each tile where they stay in the first-level cache.
  int64_t weightBytes = 4 * blockCount * lanes * conv.rows.size * conv.columns.size;
  blocksOutside = isBlocked || uint64_t(weightBytes) > e.machine.l1Bytes / 2;
  inPlace = conv.fusion.cost * double(plan.tile * plan.blocks) < 160;
}

void DepthwiseRows::forRows(Value first, Value end) {
  e.loop(first, end, 1, [&](Value row) { this->row(row); });
}

void DepthwiseRows::emitBlock(Value ofImage, Value number, Value first, Value end) {
  image = ofImage;
  startBlocks(number, 1);
  forRows(first, end);
}

void DepthwiseRows::emit(Value ofImage, Value first, Value end) {
  image = ofImage;
  if (isBlocked)
    return e.loop(e.index(0), e.index(blockCount), 1,
                  [&](Value number) { emitBlock(ofImage, number, first, end); });
  if (blocksOutside)
    return forBlocks([&] { forRows(first, end); });
  forRows(first, end);
}

/// Places of the window that lie in an image of `extent` for output `position`.
DepthwiseRows::WindowRange DepthwiseRows::inside(const Convolution::Window &window, Value position,
                                                 Value extent) {
  Value start = e.sub(e.mul(position, window.stride), window.padBegin);
  // ceil(-start / dilation) where that is positive, and ceil((extent - start) / dilation).
  Value from = e.ceilDiv(e.maximum(e.sub(e.index(0), start), 0), window.dilation);
  Value to = e.ceilDiv(e.maximum(e.sub(extent, start), 0), window.dilation);
  return {e.minimum(from, window.size), e.minimum(to, window.size)};
}

DepthwiseRows::WindowRange DepthwiseRows::rowRange(Value row) {
  if (!conv.rows.padBegin && !conv.rows.padEnd)
    return {e.index(0), e.index(conv.rows.size)};
  return inside(conv.rows, row, inRows);
}

/// Makes the `count` blocks from `number` on the current group.
void DepthwiseRows::startBlocks(Value number, int64_t count) {
  block = number;
  masks.assign(size_t(count), Value());
  if (conv.groups % lanes)
    masks.back() = e.tailMask(e.sub(e.index(conv.groups), e.mul(e.add(block, count - 1), lanes)));
  Value area = e.mul(inRows, inColumns);
  Value offset = isBlocked ? e.mul(e.add(e.mul(image, blockCount), block), e.mul(area, lanes))
                           : e.add(e.mul(image, e.mul(area, conv.groups)), e.mul(block, lanes));
  source = e.advance(e.pointerOf(conv.input), offset, elementBytes(type));
  int64_t window = conv.rows.size * conv.columns.size;
  weights = e.advance(e.pointerOf(conv.weight), e.mul(block, window * lanes), 4);
}

/// Calls `body` for each group of blocks of channels; the last group may be smaller.
void DepthwiseRows::forBlocks(llvm::function_ref<void()> body) {
  auto group = [&](Value number, int64_t count) {
    startBlocks(number, count);
    body();
  };
  int64_t whole = blockCount / plan.blocks * plan.blocks;
  e.loop(e.index(0), e.index(whole), plan.blocks, [&](Value first) { group(first, plan.blocks); });
  if (whole < blockCount)
    group(e.index(whole), blockCount - whole);
}

/// Around what is emitted for one tile, where blocks are not the outer loop.
void DepthwiseRows::forTileBlocks(llvm::function_ref<void()> body) {
  blocksOutside ? body() : forBlocks(body);
}

void DepthwiseRows::row(Value row) {
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
             [&](Value at) { forTileBlocks([&] { tile(row, range, at, plan.tile); }); });
      column += repeats * plan.tile;
    } else {
      forTileBlocks([&] { tile(row, range, e.index(column), width); });
      column += width;
    }
  }
}

void DepthwiseRows::rowOfAnyLength(Value row, WindowRange range) {
  const Convolution::Window &x = conv.columns;
  int64_t firstInner = (x.padBegin + x.stride - 1) / x.stride;
  Value first = e.minimum(e.index(firstInner), outColumns);
  Value room = e.add(inColumns, x.padBegin - x.reach());
  Value end = e.add(e.div(e.maximum(room, 0), x.stride), 1);
  end = e.maximum(e.minimum(e.select(e.lt(room, e.index(0)), e.index(0), end), outColumns), first);
  Value tiles = e.div(e.sub(end, first), plan.tile);
  Value endTiles = e.add(first, e.mul(tiles, plan.tile));
  auto single = [&](Value column) { forTileBlocks([&] { oneColumn(row, range, column); }); };
  e.loop(e.index(0), first, 1, single);
  e.loop(first, endTiles, plan.tile,
         [&](Value at) { forTileBlocks([&] { tile(row, range, at, plan.tile); }); });
  e.loop(endTiles, outColumns, 1, single);
}

Value DepthwiseRows::lineOf(Value row, Value windowRow) {
  const Convolution::Window &y = conv.rows;
  Value imageRow = e.add(e.sub(e.mul(row, y.stride), y.padBegin), e.mul(windowRow, y.dilation));
  return e.mul(e.mul(imageRow, inColumns), pixel);
}

Value DepthwiseRows::loadPixel(Value line, Value imageColumn, size_t number) {
  Value offset = e.add(e.add(line, e.mul(imageColumn, pixel)), int64_t(number) * lanes);
  return e.loadVector(type, source, offset, unsigned(lanes), isBlocked ? Value() : masks[number]);
}

Value DepthwiseRows::loadWeight(Value windowRow, Value tap, size_t number) {
  int64_t window = conv.rows.size * conv.columns.size;
  Value place = e.add(e.mul(windowRow, conv.columns.size), tap);
  return e.loadVector(DVT_F32, weights,
                      e.add(e.mul(place, lanes), int64_t(number) * window * lanes),
                      unsigned(lanes));
}

/// `width` columns from `column` on. Where the column is a constant, places outside the image are
/// left out; otherwise all are inside.
void DepthwiseRows::tile(Value row, WindowRange range, Value column, int64_t width) {
  const Convolution::Window &x = conv.columns;
  auto known = Emitter::constantIndex(column), knownIn = Emitter::constantIndex(inColumns);
  Value start = e.sub(e.mul(column, x.stride), x.padBegin);
  prefetchRows(row, start, width);
  size_t count = masks.size();
  Values sums(size_t(width) * count, e.constant(e.f32Vector(), 0));
  sums = e.loop(range.from, range.to, 1, sums, [&](Value windowRow, ValueRange carried) {
    Values next(carried);
    Value line = e.add(lineOf(row, windowRow), e.mul(start, pixel));
    for (size_t number = 0; number < count; ++number) {
      Values taps;
      for (int64_t tap = 0; tap < x.size; ++tap)
        taps.push_back(loadWeight(windowRow, e.index(tap), number));
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
            vector = loadPixel(line, e.index(reach), number);
          size_t place = size_t(rest / x.stride) * count + number;
          next[place] = e.fma(vector, taps[size_t(tap)], next[place]);
        }
      }
    }
    return next;
  });
  store(row, column, sums);
}

/// Asks for image rows that later output rows need, far enough ahead for memory to answer.
void DepthwiseRows::prefetchRows(Value row, Value start, int64_t width) {
  if (!isBlocked)
    return;
  const Convolution::Window &y = conv.rows, &x = conv.columns;
  constexpr int64_t kCycles = 400;
  int64_t perRow = Emitter::constantIndex(outColumns).value_or(64) * y.size * x.size;
  int64_t ahead = (kCycles + perRow - 1) / std::max<int64_t>(1, perRow);
  for (int64_t step = 0; step < std::min(y.stride, y.reach()); ++step) {
    Value imageRow = e.add(e.mul(e.add(row, ahead), y.stride), y.reach() - 1 - y.padBegin - step);
    Value line = e.mul(e.add(e.mul(imageRow, inColumns), start), pixel);
    for (int64_t place = 0; place < width * x.stride; ++place)
      e.prefetch(source, e.add(line, place * pixel), elementBytes(type));
  }
}

void DepthwiseRows::oneColumn(Value row, WindowRange range, Value column) {
  const Convolution::Window &x = conv.columns;
  WindowRange across = inside(x, column, inColumns);
  Value start = e.sub(e.mul(column, x.stride), x.padBegin);
  size_t count = masks.size();
  Values sums(count, e.constant(e.f32Vector(), 0));
  sums = e.loop(range.from, range.to, 1, sums, [&](Value windowRow, ValueRange outer) {
    Value line = lineOf(row, windowRow);
    return e.loop(across.from, across.to, 1, Values(outer), [&](Value tap, ValueRange carried) {
      Values next;
      Value imageColumn = e.add(start, e.mul(tap, x.dilation));
      for (size_t number = 0; number < count; ++number)
        next.push_back(e.fma(loadPixel(line, imageColumn, number),
                             loadWeight(windowRow, tap, number), carried[number]));
      return next;
    });
  });
  store(row, column, sums);
}

/// Sums of columns from `column` on, each for all blocks of the group.
void DepthwiseRows::store(Value row, Value column, const Values &sums) {
  size_t count = masks.size(), columns = sums.size() / count;
  if (inPlace || columns == 1) {
    for (size_t i = 0; i < columns; ++i)
      finish(block, row, e.add(column, int64_t(i)),
             Values(sums.begin() + i * count, sums.begin() + (i + 1) * count), masks);
    return;
  }
  for (size_t i = 0; i < sums.size(); ++i)
    e.storeVector(DVT_F32, sums[i], buffer, e.index(int64_t(i) * lanes));
  e.loop(e.index(0), e.index(int64_t(columns)), 1, [&](Value i) {
    Values kept;
    for (size_t number = 0; number < count; ++number)
      kept.push_back(e.loadVector(DVT_F32, buffer,
                                  e.mul(e.add(e.mul(i, int64_t(count)), int64_t(number)), lanes),
                                  unsigned(lanes)));
    finish(block, row, e.add(column, i), kept, masks);
  });
}

namespace {

/// A task is some output rows of a block of channels, or of all blocks where these lie side by
/// side.
class DepthwiseEmitter {
public:
  DepthwiseEmitter(Emitter &e, const Convolution &conv, const DepthwisePlan &plan,
                   const Schedule &schedule)
      : e(e), conv(conv), plan(plan),
        finish(e, conv.fusion, convolutionFinish(e, conv, schedule, 1)),
        blocks((conv.groups + e.lanes() - 1) / e.lanes()),
        isBlocked(plan.layout == ImageLayout::Blocked),
        chunks(e.ceilDiv(e.extentOf(conv.outRows), plan.chunkRows)) {}

  Value taskCount() { return e.mul(e.mul(e.extentOf(conv.batch), isBlocked ? blocks : 1), chunks); }

  void tasks(Value begin, Value end) {
    Value image; // of the current task
    auto keep = [&](Value block, Value row, Value column, const Values &sums, const Values &masks) {
      finish.emit(convolutionIndex(conv, image, e.mul(block, e.lanes()), row, column), sums, masks);
    };
    DepthwiseRows rows(e, conv, plan, e.workerScratch(), keep);
    e.loop(begin, end, 1, [&](Value task) {
      Value chunk = e.rem(task, chunks);
      task = e.div(task, chunks);
      Value first = e.mul(chunk, plan.chunkRows);
      Value end = e.minimum(e.add(first, plan.chunkRows), e.extentOf(conv.outRows));
      if (!isBlocked) {
        image = task;
        return rows.emit(image, first, end);
      }
      image = e.div(task, blocks);
      rows.emitBlock(image, e.rem(task, blocks), first, end);
    });
  }

private:
  Emitter &e;
  const Convolution &conv;
  const DepthwisePlan &plan;
  TileFinish finish;
  int64_t blocks; ///< of channels
  bool isBlocked;
  Value chunks;
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
