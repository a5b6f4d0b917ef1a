// SPDX-License-Identifier: Apache-2.0
//
// Emits matrix products as scheduled: where the right side is packed at every run, a phase that
// does so, then a phase whose tasks each compute a block of rows of one panel of columns.
#include "codegen/contraction/ProductRows.h"
#include "codegen/contraction/TileEmission.h"

#include "codegen/Families.h"

namespace dovetail::codegen {
namespace {

class MatMulEmitter {
public:
  MatMulEmitter(Emitter &e, const MatMul &m, const MatMulPlan &plan) : e(e), m(m), plan(plan) {
    lanes = e.lanes();
    width = int64_t(plan.tile.vectors) * lanes;
    rows = emitProduct(e, m.rows);
    depth = e.extentOf(m.depth);
    columns = e.extentOf(m.columns);
    panels = e.ceilDiv(columns, width);
    blocks = e.ceilDiv(rows, plan.blockRows);
    leftType = e.problem.value(m.left.value).type;
    rightType = e.problem.value(m.right.value).type;
    widened = m.widenedLeft(e.problem);
  }

  Value widenCount() { return e.ceilDiv(e.index(widened), kWidenChunk); }

  void widenTasks(Value begin, Value end) {
    Value from = e.mul(begin, kWidenChunk),
          to = e.minimum(e.mul(end, kWidenChunk), e.index(widened));
    Value source = e.pointerOf(m.left.value), target = widenedLeft();
    e.vectorLoop(from, to, unsigned(lanes), 4, [&](Value i, Value mask) {
      e.storeVector(DVT_F32, e.loadVector(leftType, source, i, unsigned(lanes), mask), target, i,
                    mask);
    });
  }

  Value taskCount() { return e.mul(emitProduct(e, m.batches()), e.mul(panels, blocks)); }

  Value packCount() {
    Value copies = m.oneRight() ? e.index(1) : emitProduct(e, m.batches());
    return e.mul(copies, panels);
  }

  void packTasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      Value batch = e.div(task, panels), panel = e.rem(task, panels);
      Value from = sideOffset(m.right, batchIndex(batch));
      Value to = e.mul(task, e.mul(depth, width));
      Value column = e.mul(panel, width);
      if (!m.right.depth.is(1) || m.right.row.is(1))
        packRows(from, column, to);
      else
        packColumns(from, column, to);
    });
  }

  void computeTasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      Value batch = e.div(task, e.mul(panels, blocks)), rest = e.rem(task, e.mul(panels, blocks));
      Value panel = plan.panelsOutside ? e.div(rest, blocks) : e.rem(rest, panels);
      Value block = plan.panelsOutside ? e.rem(rest, blocks) : e.div(rest, panels);
      Value from = e.mul(block, plan.blockRows);
      Value to = e.minimum(e.add(from, plan.blockRows), rows);
      unsigned vectors = plan.tile.vectors, narrow = lastVectors();
      if (!narrow)
        return panelTask(batch, panel, from, to, vectors);
      e.ifElse(
          e.lt(panel, e.sub(panels, 1)),
          [&] {
            panelTask(batch, panel, from, to, vectors);
            return Values();
          },
          [&] {
            panelTask(batch, e.sub(panels, 1), from, to, narrow);
            return Values();
          });
    });
  }

private:
  static constexpr int64_t kWidenChunk = 8192;

  /// Where the widened left side lies: behind the packed right side, if any.
  Value widenedLeft() {
    if (plan.right != MatMulPlan::Right::PackedOnRun)
      return e.workspace();
    return e.advance(e.workspace(), e.mul(packCount(), e.mul(depth, width)), 4);
  }

  /// Vectors of the last panel where it is known to be narrower than the others, else 0.
  unsigned lastVectors() const {
    if (!isStaticExtent(m.columns))
      return 0;
    return unsigned((m.columns.value + lanes - 1) / lanes % plan.tile.vectors);
  }

  Values batchIndex(Value batch) {
    Values index(m.batchDimensions.size());
    for (unsigned i = index.size(); i-- > 0;) {
      Value extent = e.extentOf(m.fusion.extents[m.batchDimensions[i]]);
      index[i] = i ? e.rem(batch, extent) : batch;
      batch = e.div(batch, extent);
    }
    return index;
  }

  Value sideOffset(const MatMul::Side &side, const Values &index) {
    Value offset = e.index(0);
    for (unsigned i = 0; i < index.size(); ++i)
      if (!side.batch[i].is(0))
        offset = e.add(offset, e.mul(index[i], emitProduct(e, side.batch[i])));
    return offset;
  }

  void packRows(Value from, Value column, Value to) {
    Value right = e.advance(e.pointerOf(m.right.value), from, elementBytes(rightType));
    Value depthStride = emitProduct(e, m.right.depth), columnStride = emitProduct(e, m.right.row);
    Values masks = emitTailMasks(e, e.sub(columns, column), plan.tile.vectors);
    e.loop(e.index(0), depth, 1, [&](Value k) {
      for (unsigned v = 0; v < plan.tile.vectors; ++v) {
        Value first = e.add(column, int64_t(v) * lanes);
        Value at = e.add(e.mul(k, depthStride), e.mul(first, columnStride)), vector;
        if (m.right.row.is(1))
          vector = e.loadVector(rightType, right, at, lanes, masks[v]);
        else
          vector =
              e.gather(rightType, right, e.add(e.mul(e.iota(lanes, e.i64Type()), columnStride), at),
                       masks[v] ? masks[v] : e.tailMask(e.index(lanes)));
        e.storeVector(DVT_F32, vector, e.workspace(),
                      e.add(to, e.add(e.mul(k, width), int64_t(v) * lanes)));
      }
    });
  }

  /// The right side lies transposed: squares of lanes x lanes are turned in registers.
  void packColumns(Value from, Value column, Value to) {
    Value right = e.advance(e.pointerOf(m.right.value), from, elementBytes(rightType)),
          columnStride = emitProduct(e, m.right.row);
    e.loop(e.index(0), e.index(plan.tile.vectors), 1, [&](Value v) {
      Value first = e.add(column, e.mul(v, lanes));
      e.vectorLoop(e.index(0), depth, lanes, 1, [&](Value k, Value mask) {
        Values square;
        for (unsigned lane = 0; lane < lanes; ++lane) {
          // Columns past the end repeat the last one; what they give is never stored to an output.
          Value wanted = e.maximum(e.minimum(e.add(first, lane), e.sub(columns, 1)), 0);
          square.push_back(
              e.loadVector(rightType, right, e.add(e.mul(wanted, columnStride), k), lanes, mask));
        }
        square = e.transpose(square);
        Value count = mask ? e.sub(depth, k) : e.index(lanes);
        for (unsigned lane = 0; lane < lanes; ++lane)
          e.ifTrue(e.lt(e.index(lane), count), [&] {
            Value place = e.add(e.mul(e.add(k, lane), width), e.mul(v, lanes));
            e.storeVector(DVT_F32, square[lane], e.workspace(), e.add(to, place));
          });
      });
    });
  }

  void panelTask(Value batch, Value panel, Value from, Value to, unsigned vectors) {
    Values index = batchIndex(batch);
    Value column = e.mul(panel, width);
    TileOperands operands;
    operands.leftType = widened ? DVT_F32 : leftType;
    unsigned leftBytes = elementBytes(operands.leftType);
    operands.left = e.advance(widened ? widenedLeft() : e.pointerOf(m.left.value),
                              sideOffset(m.left, index), leftBytes);
    Value rightStride = e.index(int64_t(vectors) * lanes);
    Values masks = emitTailMasks(e, e.sub(columns, column), vectors);
    if (isStaticExtent(m.columns) && m.columns.value % lanes == 0)
      masks.assign(vectors, Value());
    else if (isStaticExtent(m.columns)) // only the very last vector can be cut
      for (unsigned v = 0; v + 1 < vectors; ++v)
        masks[v] = {};
    switch (plan.right) {
    case MatMulPlan::Right::Packed:
      operands.right = e.advance(e.pointerOf(m.right.value), e.mul(column, depth), 4);
      break;
    case MatMulPlan::Right::PackedNarrow:
      operands.rightType = rightType;
      operands.right = e.advance(e.pointerOf(m.right.value), e.mul(column, depth), 2);
      break;
    case MatMulPlan::Right::PackedOnRun: {
      Value copy = m.oneRight() ? panel : e.add(e.mul(batch, panels), panel);
      operands.right = e.advance(e.workspace(), e.mul(copy, e.mul(depth, width)), 4);
      rightStride = e.index(width);
      break;
    }
    case MatMulPlan::Right::Direct:
      operands.rightType = rightType;
      operands.right =
          e.advance(e.pointerOf(m.right.value), e.add(sideOffset(m.right, index), column),
                    elementBytes(rightType));
      operands.rightMasks = masks;
      rightStride = emitProduct(e, m.right.depth);
      break;
    }
    if (plan.streams > 1) {
      rightStride = e.index(int64_t(plan.panelVectors()) * lanes);
      operands.panelVectors = plan.panelVectors();
      operands.panelStride = e.mul(depth, rightStride);
      constexpr int64_t kAheadBytes = 1024;
      operands.rightAhead = kAheadBytes / elementBytes(operands.rightType);
    }
    Value leftRow = emitProduct(e, m.left.row);
    TileNest nest;
    nest.loops = {{depth, emitProduct(e, m.left.depth), rightStride}};

    auto tile = [&](Value first, unsigned rowCount) {
      TileOperands placed = operands;
      placed.left = e.advance(operands.left, e.mul(first, leftRow), leftBytes);
      for (unsigned r = 0; r < rowCount; ++r)
        placed.rowOffsets.push_back(e.mul(leftRow, int64_t(r)));
      if (prefetches())
        placed.prefetchRight(e, e.mul(depth, int64_t(vectors) * lanes),
                             e.div(e.sub(first, from), plan.tile.rows),
                             plan.blockRows / plan.tile.rows, vectors);
      Values sums = emitTile(e, vectors, placed, nest);
      for (unsigned i = 0; i < sums.size(); ++i)
        e.storeVector(DVT_F32, sums[i], e.workerScratch(), e.index(int64_t(i) * lanes));
    };
    TileFinish finish(e, m.fusion, finishLayouts(e, m));
    e.loop(from, to, plan.tile.rows, [&](Value first) {
      Value count = e.minimum(e.sub(to, first), plan.tile.rows);
      emitForRows(e, m.rows, count, plan.tile.rows,
                  [&](unsigned rowCount) { tile(first, rowCount); });
      e.loop(e.index(0), count, 1, [&](Value r) {
        Values sums;
        for (unsigned v = 0; v < vectors; ++v)
          sums.push_back(e.loadVector(DVT_F32, e.workerScratch(),
                                      e.add(e.mul(r, int64_t(vectors) * lanes), int64_t(v) * lanes),
                                      lanes));
        finish.emit(outputIndex(e, m, index, e.add(first, r), column), sums, masks);
      });
    });
  }

  /// Packed right sides that do not stay in the cache between two runs.
  bool prefetches() const {
    bool narrow = plan.right == MatMulPlan::Right::PackedNarrow;
    if ((plan.right != MatMulPlan::Right::Packed && !narrow) || !plan.panelsOutside)
      return false;
    if (plan.streams > 1)
      return false; // they ask on their own
    return uint64_t(m.depth.value * m.columns.value) * (narrow ? 2 : 4) > e.machine.l2Bytes / 4;
  }

  Emitter &e;
  const MatMul &m;
  const MatMulPlan &plan;
  dvt_type leftType, rightType;
  int64_t lanes, width, widened;
  Value rows, depth, columns, panels, blocks;
};

} // namespace

Status emitMatMulKernel(const ProblemReader &problem, const Machine &, const Schedule &schedule,
                        KernelModule &module) {
  auto found = MatMul::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const MatMul &m = **found;
  MatMulPlan plan = MatMulPlan::read(schedule);
  if (m.widenedLeft(problem))
    module.addPhase([&](Emitter &e) { return MatMulEmitter(e, m, plan).widenCount(); },
                    [&](Emitter &e, Value begin, Value end) {
                      MatMulEmitter(e, m, plan).widenTasks(begin, end);
                    });
  if (plan.right == MatMulPlan::Right::PackedOnRun)
    module.addPhase([&](Emitter &e) { return MatMulEmitter(e, m, plan).packCount(); },
                    [&](Emitter &e, Value begin, Value end) {
                      MatMulEmitter(e, m, plan).packTasks(begin, end);
                    });
  module.addPhase([&](Emitter &e) { return MatMulEmitter(e, m, plan).taskCount(); },
                  [&](Emitter &e, Value begin, Value end) {
                    MatMulEmitter(e, m, plan).computeTasks(begin, end);
                  });
  return Status::success();
}

} // namespace dovetail::codegen
