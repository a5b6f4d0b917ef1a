// SPDX-License-Identifier: Apache-2.0
//
// Emits depthwise convolutions of plain images: output columns run along vectors, weights are
// broadcast. Vectors whose windows all lie inside the image are loaded whole; the others, at both
// ends of a row, with masks.
#include "codegen/contraction/ConvolutionEmission.h"
#include "codegen/contraction/DepthwiseEmission.h"

namespace dovetail::codegen {
namespace {

class PlainDepthwiseEmitter {
public:
  PlainDepthwiseEmitter(Emitter &e, const Convolution &conv, const DepthwisePlan &plan,
                        const Schedule &schedule)
      : e(e), conv(conv), plan(plan), type(e.problem.value(conv.input).type), lanes(e.lanes()),
        finish(e, conv.fusion, convolutionFinish(e, conv, schedule, int(conv.columnDimension()))) {
    outRows = e.extentOf(conv.outRows);
    outColumns = e.extentOf(conv.outColumns);
    inRows = e.extentOf(conv.inRows);
    inColumns = e.extentOf(conv.inColumns);
    chunks = e.ceilDiv(outRows, plan.chunkRows);
  }

  Value taskCount() { return e.mul(e.mul(e.extentOf(conv.batch), conv.groups), chunks); }

  void tasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      Value chunk = e.rem(task, chunks), plane = e.div(task, chunks);
      channel = e.rem(plane, conv.groups);
      image = e.div(plane, conv.groups);
      unsigned bytes = elementBytes(type);
      source = e.advance(e.pointerOf(conv.input), e.mul(plane, e.mul(inRows, inColumns)), bytes);
      weights = e.advance(e.pointerOf(conv.weight),
                          e.mul(channel, conv.rows.size * conv.columns.size), bytes);
      Value first = e.mul(chunk, plan.chunkRows);
      e.loop(first, e.minimum(e.add(first, plan.chunkRows), outRows), 1,
             [&](Value row) { this->row(row); });
    });
  }

private:
  void row(Value row) {
    const Convolution::Window &x = conv.columns;
    int64_t step = plan.tile * lanes;
    // Whole vectors whose windows are all inside start from here...
    int64_t firstInner = (x.padBegin + x.stride - 1) / x.stride;
    Value first = e.minimum(e.index((firstInner + lanes - 1) / lanes * lanes), outColumns);
    // ... and end here. A strided vector is read up to the last element of its last stride.
    int64_t past = x.reach() + x.stride - 1;
    Value room = e.add(inColumns, x.padBegin - past);
    Value last = e.add(e.div(e.maximum(room, 0), x.stride), 1);
    last =
        e.maximum(e.minimum(e.select(e.lt(room, e.index(0)), e.index(0), last), outColumns), first);
    Value tiles = e.add(first, e.mul(e.div(e.sub(last, first), step), step));
    Value whole = e.add(tiles, e.mul(e.div(e.sub(last, tiles), lanes), lanes));
    auto masked = [&](Value column) { tile(row, column, 1, true); };
    e.loop(e.index(0), first, lanes, masked);
    e.loop(first, tiles, step, [&](Value column) { tile(row, column, plan.tile, false); });
    if (plan.tile > 1)
      e.loop(tiles, whole, lanes, [&](Value column) { tile(row, column, 1, false); });
    e.loop(whole, outColumns, lanes, masked);
  }

  void tile(Value row, Value column, int64_t vectors, bool masked) {
    const Convolution::Window &y = conv.rows, &x = conv.columns;
    Value top = e.sub(e.mul(row, y.stride), y.padBegin);
    Value start = e.sub(e.mul(column, x.stride), x.padBegin);
    Value from = e.minimum(e.ceilDiv(e.maximum(e.sub(e.index(0), top), 0), y.dilation), y.size);
    Value to = e.minimum(e.ceilDiv(e.maximum(e.sub(inRows, top), 0), y.dilation), y.size);
    Values sums(size_t(vectors), e.constant(e.f32Vector(), 0));
    sums = e.loop(from, to, 1, sums, [&](Value windowRow, ValueRange carried) {
      Values next(carried);
      Value line = e.mul(e.add(top, e.mul(windowRow, y.dilation)), inColumns);
      for (int64_t tap = 0; tap < x.size; ++tap) {
        Value weight =
            e.loadSplat(type, weights, e.add(e.mul(windowRow, x.size), tap), unsigned(lanes));
        for (int64_t v = 0; v < vectors; ++v) {
          Value imageColumn = e.add(start, v * lanes * x.stride + tap * x.dilation);
          next[size_t(v)] = e.fma(loadColumns(line, imageColumn, masked), weight, next[size_t(v)]);
        }
      }
      return next;
    });
    Values masks;
    for (int64_t v = 0; v < vectors; ++v)
      masks.push_back(masked ? e.tailMask(e.sub(e.sub(outColumns, column), v * lanes)) : Value());
    finish.emit(convolutionIndex(conv, image, channel, row, column), sums, masks);
  }

  /// Mask of the columns imageColumn, imageColumn + step, ... that lie in the image.
  Value insideMask(Value imageColumn, int64_t step) {
    unsigned count = unsigned(lanes);
    Value columns = e.mul(e.iota(count, e.i64Type()), e.splat(e.index(step), count));
    columns = e.add(columns, imageColumn);
    return e.bitAnd(e.ge(columns, e.splat(e.index(0), count)),
                    e.lt(columns, e.splat(inColumns, count)));
  }

  Value loadVector(Value line, Value imageColumn, bool masked) {
    return e.loadVector(type, source, e.add(line, imageColumn), unsigned(lanes),
                        masked ? insideMask(imageColumn, 1) : Value());
  }

  /// Columns imageColumn, imageColumn + stride, ... of a line; those outside the image are zero
  /// where masked.
  Value loadColumns(Value line, Value imageColumn, bool masked) {
    int64_t stride = conv.columns.stride;
    if (stride == 1)
      return loadVector(line, imageColumn, masked);
    if (stride == 2) {
      llvm::SmallVector<int64_t> even;
      for (int64_t lane = 0; lane < lanes; ++lane)
        even.push_back(2 * lane);
      Value low = loadVector(line, imageColumn, masked);
      return e.shuffle(low, loadVector(line, e.add(imageColumn, lanes), masked), even);
    }
    Value columns =
        e.mul(e.iota(unsigned(lanes), e.i64Type()), e.splat(e.index(stride), unsigned(lanes)));
    columns = e.add(e.add(columns, imageColumn), line);
    return e.gather(type, source, columns, masked ? insideMask(imageColumn, stride) : Value());
  }

  Emitter &e;
  const Convolution &conv;
  const DepthwisePlan &plan;
  dvt_type type; ///< of image and weights
  int64_t lanes;
  TileFinish finish;
  Value outRows, outColumns, inRows, inColumns, chunks;
  Value image, channel, source, weights; ///< of the current task
};

} // namespace

Status emitPlainDepthwise(const Convolution &conv, const DepthwisePlan &plan,
                          const Schedule &schedule, KernelModule &module) {
  module.addPhase(
      [&](Emitter &e) { return PlainDepthwiseEmitter(e, conv, plan, schedule).taskCount(); },
      [&](Emitter &e, Value begin, Value end) {
        PlainDepthwiseEmitter(e, conv, plan, schedule).tasks(begin, end);
      });
  return Status::success();
}

} // namespace dovetail::codegen
