// SPDX-License-Identifier: Apache-2.0
//
// Emits contractions of bytes as scheduled. A task computes a chunk of output pixels (rows, of a
// product) for some panels of output channels: a tile's sums start at what the left side's zero
// point takes from them, and are scaled, followed and stored from a buffer, row after row. Patches
// and rows that are copied first leave all left sides as words of unsigned bytes.
#include "codegen/contraction/ConvolutionChunks.h"
#include "codegen/contraction/ConvolutionEmission.h"
#include "codegen/contraction/ProductRows.h"

#include "codegen/Families.h"
#include "codegen/schedule/Expression.h"
#include "codegen/schedule/contraction/Int8.h"

namespace dovetail::codegen {
namespace {

class Int8Emitter {
public:
  Int8Emitter(Emitter &e, const Int8 &m, const Int8Plan &plan, const Schedule &schedule)
      : e(e), m(m), conv(m.words), plan(plan.tiles), copiesLeft(plan.copiesLeft),
        flips(plan.flips(m)), sizes(m, plan, e.machine), schedule(schedule) {
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
    chunks.emplace(e, conv, this->plan, sizes, images, outRows, outColumns);
  }

  // --- Rows of a product that are copied first ---

  Value copyCount() { return e.ceilDiv(e.mul(images, outColumns), kCopyChunk); }

  void copyTasks(Value begin, Value end) {
    Value from = e.mul(begin, kCopyChunk),
          to = e.minimum(e.mul(end, kCopyChunk), e.mul(images, outColumns));
    Value fill = zeroWord();
    int64_t whole = m.channels / 4, rest = m.channels % 4;
    e.loop(from, to, 1, [&](Value number) {
      Value image = e.div(number, outColumns), row = e.rem(number, outColumns);
      Value start = e.add(sideOffset(image), e.mul(row, emitProduct(e, m.product->left.row)));
      // Strides are in words where rows are whole numbers of them.
      Value source = e.advance(e.pointerOf(m.left.value), start, m.mustCopyLeft() ? 1 : 4);
      Value target = e.advance(e.workspace(), e.mul(number, m.copiedRowWords()), 4);
      e.vectorLoop(e.index(0), e.index(whole), e.lanes(), 1, [&](Value i, Value mask) {
        Value words = e.loadVector(DVT_I32, source, i, e.lanes(), mask);
        e.storeVector(DVT_I32, unsignedBytes(words), target, i, mask);
      });
      if (!rest)
        return;
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

  Value taskCount() { return chunks->taskCount(); }

  void tasks(Value begin, Value end) {
    readGrids();
    chunks->forTasks(begin, end, [&](const Chunk &task, Value from, Value to) {
      chunk = task;
      if (!plan.direct) {
        PatchEmission patch(e, conv, plan, sizes);
        patch.takeBytes({m.channels, m.left.isSigned, leftZeroWord});
        patch.copy(chunk);
      }
      chunks->panels().forPanels(
          e, from, to, [&](Value panel, unsigned vectors) { this->panel(panel, vectors); });
    });
  }

private:
  using Chunk = ConvolutionChunks::Chunk;
  static constexpr int64_t kCopyChunk = 16;

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
    if (flips)
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

  void panel(Value panel, unsigned vectors) {
    int64_t width = int64_t(plan.tile.vectors) * sizes.lanes;
    channel = e.mul(panel, width);
    Value packed = e.pointerOf(m.right.value);
    right = e.advance(
        packed, e.add(e.mul(chunk.group, sizes.groupElements), e.mul(panel, sizes.depth * width)),
        4);
    readColumns(packed, vectors);
    TileFinish::Layouts layouts = finishLayouts();
    TileFinish finish(e, conv.fusion, layouts);
    finish.keepColumns(index(e.index(0), e.index(0)), masks);
    chunks->forTiles(
        chunk,
        [&](Value row, Value column, unsigned pixels) { tile(row, column, vectors, pixels); },
        [&](Value row, Value column, Value count) {
          finishPixels(row, column, count, vectors, finish);
        });
  }

  /// What differs by column, for the panel.
  void readColumns(Value packed, unsigned vectors) {
    masks = chunks->panels().masks(e, conv.outPerGroup, channel, vectors);
    Value sums = e.advance(
        packed, e.add(e.index(sizes.sumsOffset), e.mul(chunk.group, sizes.vectors * sizes.lanes)),
        4);
    Value first = e.add(e.mul(chunk.group, conv.outPerGroup), channel);
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

  /// Strides in words: of the image or matrix itself, the workspace or the patch.
  ConvolutionChunks::Left left() {
    if (!plan.direct)
      return chunks->patch();
    Value none = e.index(0);
    if (copiesLeft) {
      Value start = e.mul(e.mul(chunk.image, outColumns), m.copiedRowWords());
      return {e.advance(e.workspace(), start, 4), none, e.index(m.copiedRowWords()), none,
              e.index(1)};
    }
    Value base = e.pointerOf(m.left.value);
    if (m.product)
      return {e.advance(base, sideOffset(chunk.image), 4), none,
              emitProduct(e, m.product->left.row), none, e.index(1)};
    int64_t pixel = conv.groups * conv.inPerGroup;
    Value columns = e.extentOf(conv.inColumns), area = e.mul(e.extentOf(conv.inRows), columns);
    Value start =
        e.add(e.mul(chunk.image, e.mul(area, pixel)), e.mul(chunk.group, conv.inPerGroup));
    return {e.advance(base, start, 4), e.mul(columns, pixel), e.index(pixel), none, e.index(1)};
  }

  /// Sums `rows` pixels from (row, column) on and leaves them in the tile buffer.
  void tile(Value row, Value column, unsigned vectors, unsigned rows) {
    ConvolutionChunks::Left side = left();
    Convolution::Window::Phase y = conv.rows.phases().front(), x = conv.columns.phases().front();
    TileOperands operands = chunks->operands(chunk, side, y, x, row, column, right, vectors, rows);
    operands.bytes = TileBytes{flip, !m.right.isCentred};
    operands.leftType = operands.rightType = DVT_I32;
    Values start;
    for (unsigned r = 0; r < rows; ++r)
      start.append(initial);
    if (operands.bytes->sumsLeft)
      start.append(rows, rowInitial);
    Values sums = emitTile(e, vectors, operands, chunks->nests(side, y, x, vectors), start);
    for (unsigned i = 0; i < rows * vectors; ++i)
      e.storeVector(DVT_I32, sums[i], chunks->tileBuffer(), e.index(int64_t(i) * sizes.lanes));
    for (unsigned i = rows * vectors; i < sums.size(); ++i)
      e.storeVector(DVT_I32, sums[i], rowBuffer(),
                    e.index(int64_t(i - rows * vectors) * sizes.lanes));
  }

  Value rowBuffer() { return e.advance(chunks->tileBuffer(), e.index(sizes.tileElements), 4); }

  Values index(Value row, Value column) {
    if (m.product) {
      Values batch(m.product->batchDimensions.size());
      Value rest = chunk.image;
      for (unsigned i = batch.size(); i-- > 0;) {
        Value extent = e.extentOf(conv.fusion.extents[m.product->batchDimensions[i]]);
        batch[i] = i ? e.rem(rest, extent) : rest;
        rest = e.div(rest, extent);
      }
      return outputIndex(e, *m.product, batch, column, channel);
    }
    return convolutionIndex(conv, chunk.image, e.add(e.mul(chunk.group, conv.outPerGroup), channel),
                            row, column);
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
        Value sum = e.loadVector(DVT_I32, chunks->tileBuffer(), at, e.lanes());
        if (!m.right.isCentred) {
          Value ofRow = e.loadVector(DVT_I32, rowBuffer(), e.mul(r, sizes.lanes), e.lanes());
          sum = e.sub(sum, e.mul(ofRow, rightZeros[v]));
        }
        finished.push_back(scaled(sum, v));
      }
      auto [atRow, atColumn] = chunks->pixelAt(row, column, r);
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
  bool copiesLeft, flips;
  Int8Sizes sizes;
  const Schedule &schedule;
  Value outRows, outColumns, images;
  std::optional<ConvolutionChunks> chunks;
  Value flip;
  Value leftZero, leftZeroWord, scale;       ///< scalars
  Chunk chunk;                               ///< of the current task
  Value channel, right, rowInitial;          ///< of the current panel
  Values masks, initial, scales, rightZeros; ///< of its vectors
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
  if (plan.copiesLeft)
    module.addPhase([&](Emitter &e) { return Int8Emitter(e, m, plan, schedule).copyCount(); },
                    [&](Emitter &e, Value begin, Value end) {
                      Int8Emitter(e, m, plan, schedule).copyTasks(begin, end);
                    });
  module.addPhase([&](Emitter &e) { return Int8Emitter(e, m, plan, schedule).taskCount(); },
                  [&](Emitter &e, Value begin, Value end) {
                    Int8Emitter(e, m, plan, schedule).tasks(begin, end);
                  });
  return Status::success();
}

} // namespace dovetail::codegen
