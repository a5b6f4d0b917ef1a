// SPDX-License-Identifier: Apache-2.0
//
// Emits contractions of bytes as scheduled. A task computes a chunk of output pixels (rows, of a
// product) for some panels of output channels: a tile's sums start at what the left side's zero
// point takes from them, and are scaled, followed and stored from a buffer, row after row. Patches
// and rows that are copied first leave all left sides as words of unsigned bytes.
#include "codegen/contraction/DepthwiseEmission.h"
#include "codegen/contraction/PatchEmission.h"
#include "codegen/contraction/ProductRows.h"
#include "codegen/contraction/TileEmission.h"

#include "codegen/Families.h"
#include "codegen/schedule/Expression.h"
#include "codegen/schedule/contraction/Int8.h"

namespace dovetail::codegen {
namespace {

class Int8Emitter {
public:
  Int8Emitter(Emitter &e, const Int8 &m, const Int8Plan &plan, const Schedule &schedule)
      : e(e), m(m), conv(m.words), plan(plan.tiles), sizes(m, plan, e.machine), schedule(schedule) {
    e.quantizesByProduct = true;
    if (m.product) {
      outRows = e.index(1);
      outColumns = emitProduct(e, m.product->rows);
      images = emitProduct(e, m.product->batches());
    } else {
      Value rows = e.extentOf(conv.outRows), columns = e.extentOf(conv.outColumns);
      outRows = this->plan.flat ? e.index(1) : rows;
      outColumns = this->plan.flat ? e.mul(rows, columns) : columns;
      images = e.extentOf(conv.batch);
    }
    rowChunks = e.ceilDiv(outRows, this->plan.chunkRows);
    columnChunks = e.ceilDiv(outColumns, this->plan.chunkColumns);
    parts = (sizes.panels + this->plan.panelsPerTask - 1) / this->plan.panelsPerTask;
  }

  // --- Rows of a product that are no whole number of words ---

  Value padCount() { return e.ceilDiv(e.mul(images, outColumns), kPadChunk); }

  void padTasks(Value begin, Value end) {
    Value from = e.mul(begin, kPadChunk),
          to = e.minimum(e.mul(end, kPadChunk), e.mul(images, outColumns));
    Value fill = zeroWord();
    int64_t whole = m.channels / 4, rest = m.channels % 4;
    e.loop(from, to, 1, [&](Value number) {
      Value image = e.div(number, outColumns), row = e.rem(number, outColumns);
      Value start = e.add(sideOffset(image), e.mul(row, emitProduct(e, m.product->left.row)));
      Value source = e.advance(e.pointerOf(m.left.value), start, 1);
      Value target = e.advance(e.workspace(), e.mul(number, m.paddedRowWords()), 4);
      e.vectorLoop(e.index(0), e.index(whole), e.lanes(), 1, [&](Value i, Value mask) {
        Value words = e.loadVector(DVT_I32, source, i, e.lanes(), mask);
        e.storeVector(DVT_I32, unsignedBytes(words), target, i, mask);
      });
      auto number32 = [&](int64_t bits) { return e.integerConstant(e.i32Type(), bits); };
      Value last = number32(0);
      for (int64_t i = 0; i < rest; ++i)
        last = e.bitOr(
            last, e.shiftLeft(e.load(DVT_U8, source, e.index(4 * whole + i)), number32(8 * i)));
      Value there = number32((int64_t(1) << 8 * rest) - 1);
      last = e.bitOr(e.bitAnd(unsignedBytes(last), there), e.bitAnd(fill, e.bitNot(there)));
      e.store(DVT_I32, last, target, e.index(whole));
    });
  }

  // --- Tiles ---

  Value taskCount() {
    return e.mul(e.mul(e.mul(images, conv.groups), e.mul(rowChunks, columnChunks)), parts);
  }

  void tasks(Value begin, Value end) {
    readGrids();
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
      endRow = e.minimum(e.add(firstRow, plan.chunkRows), outRows);
      firstColumn = e.mul(columnChunk, plan.chunkColumns);
      endColumn = e.minimum(e.add(firstColumn, plan.chunkColumns), outColumns);
      if (!plan.direct) {
        PatchEmission patch(e, conv, plan, sizes);
        patch.takeBytes({m.channels, m.left.isSigned, leftZeroWord});
        patch.copy({image, group, firstRow, endRow, firstColumn, endColumn});
      }
      panels(part);
    });
  }

private:
  static constexpr int64_t kPadChunk = 16;

  bool flips() const { return m.left.isSigned && plan.direct && !m.padsLeft(); }

  Value unsignedBytes(Value words) {
    if (!m.left.isSigned)
      return words;
    return e.bitXor(words, e.integerConstant(words.getType(), int32_t(0x80808080)));
  }

  /// The left side's zero point as the packed bytes have it, i32.
  Value leftZeroPoint() {
    int64_t shift = m.left.isSigned ? 128 : 0;
    if (m.left.isCentred)
      return e.integerConstant(e.i32Type(), 0);
    Value zero = e.integerConstant(e.i32Type(), 0);
    if (m.left.zero)
      zero = e.load(e.problem.value(*m.left.zero).type, e.pointerOf(*m.left.zero), e.index(0));
    return e.add(zero, e.integerConstant(e.i32Type(), shift));
  }

  Value zeroWord() { return e.mul(leftZeroPoint(), e.integerConstant(e.i32Type(), 0x01010101)); }

  Value scaleOf(const Int8::Grid &grid) {
    return grid.scale ? e.load(DVT_F32, e.pointerOf(*grid.scale), e.index(0)) : e.f32(1);
  }

  void readGrids() {
    if (flips())
      flip =
          e.loadVector(DVT_I32, e.pointerOf(m.right.value), e.index(sizes.flipOffset), e.lanes());
    leftZero = leftZeroPoint();
    leftZeroWord = zeroWord();
    if (m.result == Int8::Result::Integer)
      return;
    scale = scaleOf(m.left);
    if (!m.right.scaleByColumn)
      scale = e.mul(scale, scaleOf(m.right));
    if (m.result == Int8::Result::Requantised)
      scale = e.fdiv(scale, scaleOf(m.to));
  }

  Value sideOffset(Value batch) {
    Value offset = e.index(0);
    const std::vector<unsigned> &dimensions = m.product->batchDimensions;
    for (unsigned i = dimensions.size(); i-- > 0;) {
      Value extent = e.extentOf(conv.fusion.extents[dimensions[i]]);
      Value index = i ? e.rem(batch, extent) : batch;
      batch = e.div(batch, extent);
      if (!m.product->left.batch[i].is(0))
        offset = e.add(offset, e.mul(index, emitProduct(e, m.product->left.batch[i])));
    }
    return offset;
  }

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
    channel = e.mul(panel, width);
    Value packed = e.pointerOf(m.right.value);
    right = e.advance(
        packed, e.add(e.mul(group, sizes.groupElements), e.mul(panel, sizes.depth * width)), 4);
    readColumns(packed, vectors);
    TileFinish::Layouts layouts = finishLayouts();
    TileFinish finish(e, conv.fusion, layouts);
    finish.keepColumns(index(e.index(0), e.index(0)), masks);
    e.loop(firstRow, endRow, plan.tileRows, [&](Value row) {
      if (plan.tileRows > 1)
        return tileOfRows(row, vectors, finish);
      e.loop(firstColumn, endColumn, plan.tile.rows, [&](Value column) {
        Value count = e.minimum(e.sub(endColumn, column), plan.tile.rows);
        emitForRows(count, [&](unsigned rows) { tile(row, column, vectors, rows); });
        finishPixels(row, column, count, vectors, finish);
      });
    });
  }

  /// What differs by column, for the panel.
  void readColumns(Value packed, unsigned vectors) {
    masks.assign(vectors, Value());
    if (int64_t rest = conv.outPerGroup % sizes.lanes)
      masks.back() = lastMask(vectors, rest);
    Value sums = e.advance(
        packed, e.add(e.index(sizes.sumsOffset), e.mul(group, sizes.vectors * sizes.lanes)), 4);
    Value first = e.add(e.mul(group, conv.outPerGroup), channel);
    initial.clear();
    scales.clear();
    rightZeros.clear();
    for (unsigned v = 0; v < vectors; ++v) {
      Value at = e.add(channel, int64_t(v) * sizes.lanes), place = e.add(first, v * sizes.lanes);
      if (m.left.isCentred)
        initial.push_back(e.integerConstant(vectorType(), 0));
      else
        initial.push_back(e.neg(e.mul(e.loadVector(DVT_I32, sums, at, e.lanes()), leftZero)));
      if (m.result != Int8::Result::Integer) {
        Value own = e.splat(scale);
        if (m.right.scaleByColumn)
          own = e.mul(
              own, e.loadVector(DVT_F32, e.pointerOf(*m.right.scale), place, e.lanes(), masks[v]));
        scales.push_back(own);
      }
      if (!m.right.isCentred)
        rightZeros.push_back(rightZero(place, masks[v]));
    }
    if (m.result == Int8::Result::Requantised && conv.bias)
      for (unsigned v = 0; v < vectors; ++v)
        initial[v] =
            e.add(initial[v], e.loadVector(DVT_I32, e.pointerOf(*conv.bias),
                                           e.add(first, v * sizes.lanes), e.lanes(), masks[v]));
    rowInitial =
        e.neg(e.splat(e.mul(leftZero, e.integerConstant(e.i32Type(), 4 * m.depthWords()))));
  }

  Value rightZero(Value place, Value mask) {
    Value shift = e.integerConstant(vectorType(), m.right.isSigned ? 0 : 128);
    Value zero = e.integerConstant(vectorType(), 0);
    if (m.right.zero) {
      dvt_type type = e.problem.value(*m.right.zero).type;
      Value pointer = e.pointerOf(*m.right.zero);
      zero = m.right.zeroByColumn ? e.loadVector(type, pointer, place, e.lanes(), mask)
                                  : e.loadSplat(type, pointer, e.index(0), e.lanes());
    }
    return e.sub(zero, shift);
  }

  mlir::Type vectorType() { return e.vectorOf(e.i32Type(), e.lanes()); }

  /// Of the last vector of a panel; only the group's last panel is cut.
  Value lastMask(unsigned vectors, int64_t rest) {
    if (lastVectors() && vectors != lastVectors())
      return {};
    if (lastVectors() || sizes.panels == 1)
      return e.tailMask(e.index(rest));
    Value remaining = e.sub(e.index(conv.outPerGroup), channel);
    return e.tailMask(e.sub(remaining, int64_t(vectors - 1) * sizes.lanes));
  }

  /// Calls `body` for each number of pixels that a tile within a row can have.
  void emitForRows(Value count, llvm::function_ref<void(unsigned)> body) {
    llvm::SmallVector<unsigned> wanted{plan.tile.rows};
    if (std::optional<int64_t> known = Emitter::constantIndex(outColumns)) {
      // Chunks are multiples of the tile or whole rows.
      if (unsigned rest = unsigned(*known % plan.tile.rows))
        wanted.push_back(rest);
    } else {
      for (unsigned rows = plan.tile.rows - 1; rows >= 1; --rows)
        wanted.push_back(rows);
    }
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
  void tileOfRows(Value row, unsigned vectors, TileFinish &finish) {
    unsigned columns = unsigned(conv.outColumns.value);
    unsigned rest = unsigned(conv.outRows.value % plan.tileRows) * columns;
    Value count = e.mul(e.minimum(e.sub(endRow, row), plan.tileRows), columns);
    llvm::SmallVector<unsigned> wanted{plan.tile.rows};
    if (rest)
      wanted.push_back(rest);
    choose(count, wanted, [&](unsigned rows) { tile(row, e.index(0), vectors, rows); });
    finishPixels(row, e.index(0), count, vectors, finish);
  }

  /// Strides of the left side in words: the image or matrix itself, the workspace or the patch.
  struct Left {
    Value pointer, row, pixel, block;
  };

  Left left() {
    if (!plan.direct)
      return {e.workerScratch(), e.index(sizes.patchColumns * sizes.pitch), e.index(sizes.pitch),
              e.index(sizes.patchBlock)};
    Value none = e.index(0);
    if (m.padsLeft()) {
      Value start = e.mul(e.mul(image, outColumns), m.paddedRowWords());
      return {e.advance(e.workspace(), start, 4), none, e.index(m.paddedRowWords()), none};
    }
    Value base = e.pointerOf(m.left.value);
    if (m.product)
      return {e.advance(base, sideOffset(image), 4), none, emitProduct(e, m.product->left.row),
              none};
    int64_t pixel = conv.groups * conv.inPerGroup;
    Value columns = e.extentOf(conv.inColumns), area = e.mul(e.extentOf(conv.inRows), columns);
    Value start = e.add(e.mul(image, e.mul(area, pixel)), e.mul(group, conv.inPerGroup));
    return {e.advance(base, start, 4), e.mul(columns, pixel), e.index(pixel), none};
  }

  /// Sums `rows` pixels from (row, column) on and leaves them in the tile buffer.
  void tile(Value row, Value column, unsigned vectors, unsigned rows) {
    Left l = left();
    // The patch starts with the first input that its first position needs.
    Value pixelRow = plan.direct ? row : e.sub(row, firstRow);
    Value pixelColumn = plan.direct ? column : e.sub(column, firstColumn);
    int64_t rowShift = plan.direct ? -conv.rows.padBegin : 0;
    int64_t columnShift = plan.direct ? -conv.columns.padBegin : 0;
    int64_t rowStep = conv.rows.stride, columnStep = conv.columns.stride;
    TileOperands operands;
    operands.bytes = TileBytes{flip, !m.right.isCentred};
    operands.leftType = operands.rightType = DVT_I32;
    operands.left =
        e.advance(l.pointer,
                  e.add(e.mul(e.add(e.mul(pixelRow, rowStep), rowShift), l.row),
                        e.mul(e.add(e.mul(pixelColumn, columnStep), columnShift), l.pixel)),
                  4);
    operands.right = right;
    int64_t width = int64_t(vectors) * sizes.lanes;
    if (uint64_t(sizes.groupElements) * 4 > e.machine.l2Bytes / 4) {
      int64_t across = (plan.chunkColumns + plan.tile.rows - 1) / plan.tile.rows,
              down = plan.chunkRows / plan.tileRows;
      Value number = e.div(e.sub(row, firstRow), plan.tileRows);
      if (plan.tileRows == 1)
        number = e.add(e.mul(number, across), e.div(e.sub(column, firstColumn), plan.tile.rows));
      operands.prefetchRight(e, e.index(sizes.depth * width), number,
                             plan.tileRows == 1 ? across * down : down, vectors);
    }
    for (unsigned r = 0; r < rows; ++r) {
      int64_t across = plan.tileRows > 1 ? conv.outColumns.value : int64_t(rows);
      operands.rowOffsets.push_back(e.add(e.mul(l.row, int64_t(r) / across * rowStep),
                                          e.mul(l.pixel, int64_t(r) % across * columnStep)));
    }
    auto nest = [&](int64_t blocks, int64_t firstBlock, int64_t words) {
      TileNest nest;
      int64_t window = conv.rows.size * conv.columns.size;
      nest.leftOffset = e.mul(l.block, firstBlock);
      nest.rightOffset = e.index(firstBlock * window * sizes.channelBlock * width);
      nest.loops.push_back({e.index(blocks), l.block, e.index(window * words * width)});
      nest.loops.push_back({e.index(conv.rows.size), e.mul(l.row, conv.rows.dilation),
                            e.index(conv.columns.size * words * width)});
      if (conv.columns.dilation == 1 && Emitter::constantIndex(l.pixel) == words) {
        nest.loops.push_back({e.index(conv.columns.size * words), e.index(1), e.index(width)});
      } else {
        nest.loops.push_back({e.index(conv.columns.size), e.mul(l.pixel, conv.columns.dilation),
                              e.index(words * width)});
        nest.loops.push_back({e.index(words), e.index(1), e.index(width)});
      }
      return nest;
    };
    llvm::SmallVector<TileNest> nests;
    if (sizes.fullBlocks)
      nests.push_back(nest(sizes.fullBlocks, 0, sizes.channelBlock));
    if (sizes.restChannels)
      nests.push_back(nest(1, sizes.fullBlocks, sizes.restChannels));
    Values start;
    for (unsigned r = 0; r < rows; ++r)
      start.append(initial);
    if (operands.bytes->sumsLeft)
      start.append(rows, rowInitial);
    Values sums = emitTile(e, vectors, operands, nests, start);
    for (unsigned i = 0; i < rows * vectors; ++i)
      e.storeVector(DVT_I32, sums[i], tileBuffer(), e.index(int64_t(i) * sizes.lanes));
    for (unsigned i = rows * vectors; i < sums.size(); ++i)
      e.storeVector(DVT_I32, sums[i], rowBuffer(),
                    e.index(int64_t(i - rows * vectors) * sizes.lanes));
  }

  Value tileBuffer() {
    int64_t patch = (sizes.patchElements + sizes.lanes - 1) / sizes.lanes * sizes.lanes;
    return e.advance(e.workerScratch(), e.index(patch), 4);
  }
  Value rowBuffer() { return e.advance(tileBuffer(), e.index(sizes.tileElements), 4); }

  Values index(Value row, Value column) {
    if (m.product) {
      Values batch(m.product->batchDimensions.size());
      Value rest = image;
      for (unsigned i = batch.size(); i-- > 0;) {
        Value extent = e.extentOf(conv.fusion.extents[m.product->batchDimensions[i]]);
        batch[i] = i ? e.rem(rest, extent) : rest;
        rest = e.div(rest, extent);
      }
      return outputIndex(e, *m.product, batch, column, channel);
    }
    Values index(conv.fusion.extents.size());
    index[0] = image;
    index[1] = e.add(e.mul(group, conv.outPerGroup), channel);
    if (conv.rowDimension() >= 0)
      index[unsigned(conv.rowDimension())] = row;
    index[conv.columnDimension()] = column;
    return index;
  }

  TileFinish::Layouts finishLayouts() {
    TileFinish::Layouts layouts =
        m.product ? codegen::finishLayouts(e, *m.product) : convolutionFinish(e, conv, schedule, 1);
    if (m.result != Int8::Result::Real)
      layouts.addend.reset();
    return layouts;
  }

  void finishPixels(Value row, Value column, Value count, unsigned vectors, TileFinish &finish) {
    e.loop(e.index(0), count, 1, [&](Value r) {
      Values finished;
      for (unsigned v = 0; v < vectors; ++v) {
        Value at = e.add(e.mul(r, int64_t(vectors) * sizes.lanes), int64_t(v) * sizes.lanes);
        Value sum = e.loadVector(DVT_I32, tileBuffer(), at, e.lanes());
        if (!m.right.isCentred) {
          Value ofRow = e.loadVector(DVT_I32, rowBuffer(), e.mul(r, sizes.lanes), e.lanes());
          sum = e.sub(sum, e.mul(ofRow, rightZeros[v]));
        }
        finished.push_back(scaled(sum, v));
      }
      Value atRow = row, atColumn = e.add(column, r);
      if (plan.tileRows > 1) {
        atRow = e.add(row, e.div(r, outColumns));
        atColumn = e.rem(r, outColumns);
      }
      finish.emit(index(atRow, atColumn), finished, masks);
    });
  }

  Value scaled(Value sum, unsigned v) {
    if (m.result == Int8::Result::Integer)
      return sum;
    Value number = e.mul(e.convert(sum, e.f32Type()), scales[v]);
    if (m.result == Int8::Result::Real)
      return number;
    number = e.roundEven(number);
    if (m.to.zero)
      number = e.add(number, e.convert(e.loadSplat(e.problem.value(*m.to.zero).type,
                                                   e.pointerOf(*m.to.zero), e.index(0), e.lanes()),
                                       e.f32Type()));
    ExpressionNode saturate{ExpressionKind::Saturate, m.to.isSigned ? DVT_I8 : DVT_U8};
    return emitPrimitive(e, saturate, number, {}, {}, e.lanes());
  }

  Emitter &e;
  const Int8 &m;
  const Convolution &conv; ///< of words
  const ConvolutionPlan &plan;
  Int8Sizes sizes;
  const Schedule &schedule;
  Value outRows, outColumns, images, rowChunks, columnChunks;
  int64_t parts;
  Value flip;
  Value leftZero, leftZeroWord, scale;                          ///< scalars
  Value image, group, firstRow, endRow, firstColumn, endColumn; ///< of the current task
  Value channel, right, rowInitial;                             ///< of the current panel
  Values masks, initial, scales, rightZeros;                    ///< of its vectors
};

} // namespace

Status emitInt8Kernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module) {
  auto found = Int8::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const Int8 &m = **found;
  Int8Plan plan = Int8Plan::read(schedule);
  if (machine.isa.vnni)
    module.useVnni();
  if (m.padsLeft())
    module.addPhase([&](Emitter &e) { return Int8Emitter(e, m, plan, schedule).padCount(); },
                    [&](Emitter &e, Value begin, Value end) {
                      Int8Emitter(e, m, plan, schedule).padTasks(begin, end);
                    });
  module.addPhase([&](Emitter &e) { return Int8Emitter(e, m, plan, schedule).taskCount(); },
                  [&](Emitter &e, Value begin, Value end) {
                    Int8Emitter(e, m, plan, schedule).tasks(begin, end);
                  });
  return Status::success();
}

} // namespace dovetail::codegen
