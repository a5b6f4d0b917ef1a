// SPDX-License-Identifier: Apache-2.0
//
// Emits attention as scheduled. For a block of queries of one head: for each block of keys, keys
// are turned, scores summed, scaled and masked, the running maximum and sum of exponentials brought
// up to date, and the weighted values added to the outputs, which are rescaled when the maximum
// grows. At the end outputs are divided by the sums.
#include "codegen/MathEmission.h"
#include "codegen/contraction/TileEmission.h"
#include "codegen/schedule/contraction/Attention.h"

#include <cmath>

#include "codegen/Families.h"

namespace dovetail::codegen {
namespace {

class AttentionEmitter {
public:
  AttentionEmitter(Emitter &e, const Attention &a, const AttentionPlan &plan)
      : e(e), a(a), plan(plan), at(a, plan, e.machine), lanes(e.lanes()) {
    queries = e.extentOf(a.queries);
    keys = e.extentOf(a.keys);
    queryBlocks = e.ceilDiv(queries, plan.queries);
  }

  Value taskCount() { return e.mul(e.mul(e.extentOf(a.batch), a.heads), queryBlocks); }

  void tasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      Value block = e.rem(task, queryBlocks);
      task = e.div(task, queryBlocks);
      head = e.rem(task, a.heads);
      batch = e.div(task, a.heads);
      firstQuery = e.mul(block, plan.queries);
      queryCount = e.minimum(e.sub(queries, firstQuery), plan.queries);
      Value keyHead = e.div(head, a.heads / a.keyHeads);
      query = place(a.query, head, firstQuery);
      key = place(a.key, keyHead, e.index(0));
      val = place(a.val, keyHead, e.index(0));
      if (a.narrowQueries)
        widenQueries();
      clear();
      // Keys after the last query of the block are masked for all of them.
      Value endKey = a.causal ? e.minimum(keys, e.add(firstQuery, queryCount)) : keys;
      e.loop(e.index(0), endKey, plan.keys, [&](Value first) {
        firstKey = first;
        keyCount = e.minimum(e.sub(endKey, first), plan.keys);
        panels = e.ceilDiv(keyCount, at.panel);
        turnKeys();
        e.loop(e.index(0), panels, 1, [&](Value panel) { scores(panel); });
        e.loop(e.index(0), queryCount, 1, [&](Value row) { exponentials(row); });
        weighValues();
      });
      finish();
    });
  }

private:
  Value place(const Attention::Side &side, Value head, Value position) {
    Value offset =
        e.add(e.mul(batch, emitProduct(e, side.batch)), e.mul(head, emitProduct(e, side.head)));
    return e.advance(e.pointerOf(side.value),
                     e.add(offset, e.mul(position, emitProduct(e, side.position))),
                     elementBytes(typeOf(side)));
  }

  dvt_type typeOf(const Attention::Side &side) { return e.problem.value(side.value).type; }

  /// The task's queries in f32, a row after the other.
  void widenQueries() {
    Value position = emitProduct(e, a.query.position), channel = emitProduct(e, a.query.channel);
    e.loop(e.index(0), queryCount, 1, [&](Value row) {
      Value from = e.mul(row, position), to = e.mul(row, a.size);
      e.vectorLoop(e.index(0), e.index(a.size), unsigned(lanes), 1, [&](Value i, Value mask) {
        Value vector;
        if (a.query.channel.is(1)) {
          vector = e.loadVector(typeOf(a.query), query, e.add(from, i), unsigned(lanes), mask);
        } else {
          Value steps = e.mul(e.iota(unsigned(lanes), e.i64Type()), channel);
          vector =
              e.gather(typeOf(a.query), query, e.add(steps, e.add(from, e.mul(i, channel))), mask);
        }
        e.storeVector(DVT_F32, vector, scratch(at.queries), e.add(to, i), mask);
      });
    });
    query = scratch(at.queries);
  }

  Value scratch(int64_t start) { return e.advance(e.workerScratch(), e.index(start), 4); }

  void clear() {
    Value zero = e.constant(e.f32Vector(), 0);
    e.loop(e.index(0), e.mul(queryCount, at.outputPitch), lanes,
           [&](Value i) { e.storeVector(DVT_F32, zero, scratch(at.outputs), i); });
    e.loop(e.index(0), queryCount, 1, [&](Value row) {
      e.store(DVT_F32, e.f32(-INFINITY), scratch(at.maxima), row);
      e.store(DVT_F32, e.f32(0), scratch(at.sums), row);
    });
  }

  void turnKeys() {
    Value channelStride = emitProduct(e, a.key.channel),
          positionStride = emitProduct(e, a.key.position);
    Value vectors = e.mul(panels, int64_t(AttentionPlan::kVectors));
    e.loop(e.index(0), vectors, 1, [&](Value vector) {
      Value first = e.mul(vector, lanes);
      Value panel = e.div(vector, int64_t(AttentionPlan::kVectors));
      Value within = e.mul(e.rem(vector, int64_t(AttentionPlan::kVectors)), lanes);
      Value to =
          e.advance(scratch(at.turnedKeys), e.add(e.mul(panel, at.panel * a.size), within), 4);
      auto keyOffset = [&](Value position) {
        // Keys past the end repeat the last one; their scores are masked.
        Value wanted = e.minimum(position, e.sub(keyCount, 1));
        return e.mul(e.add(firstKey, wanted), positionStride);
      };
      if (!a.key.channel.is(1)) {
        Value positions = e.add(e.iota(unsigned(lanes), e.i64Type()), first);
        positions = e.minimum(positions, e.splat(e.sub(keyCount, 1), unsigned(lanes)));
        Value offsets = e.mul(e.add(positions, firstKey), positionStride);
        e.loop(e.index(0), e.index(a.size), 1, [&](Value channel) {
          Value turned =
              e.gather(typeOf(a.key), key, e.add(offsets, e.mul(channel, channelStride)));
          e.storeVector(DVT_F32, turned, to, e.mul(channel, at.panel));
        });
        return;
      }
      e.vectorLoop(e.index(0), e.index(a.size), unsigned(lanes), 1, [&](Value channel, Value mask) {
        Values square;
        for (int64_t lane = 0; lane < lanes; ++lane)
          square.push_back(e.loadVector(typeOf(a.key), key,
                                        e.add(keyOffset(e.add(first, lane)), channel),
                                        unsigned(lanes), mask));
        square = e.transpose(square);
        int64_t count = mask ? a.size % lanes : lanes;
        for (int64_t lane = 0; lane < count; ++lane)
          e.storeVector(DVT_F32, square[size_t(lane)], to, e.mul(e.add(channel, lane), at.panel));
      });
    });
  }

  /// Calls `body` for the first row and each possible number of rows of all register tiles of the
  /// block's queries.
  void forRows(llvm::function_ref<void(Value first, unsigned rows)> body) {
    e.loop(e.index(0), queryCount, plan.rows, [&](Value first) {
      Value count = e.minimum(e.sub(queryCount, first), int64_t(plan.rows));
      llvm::SmallVector<unsigned> wanted{plan.rows};
      if (isStaticExtent(a.queries)) {
        if (unsigned rest = unsigned(a.queries.value % plan.rows))
          wanted.push_back(rest);
      } else {
        for (unsigned rows = plan.rows - 1; rows >= 1; --rows)
          wanted.push_back(rows);
      }
      choose(count, first, wanted, body);
    });
  }

  void choose(Value count, Value first, llvm::ArrayRef<unsigned> wanted,
              llvm::function_ref<void(Value, unsigned)> body) {
    if (wanted.size() == 1)
      return body(first, wanted[0]);
    e.ifElse(
        e.eq(count, e.index(wanted[0])),
        [&] {
          body(first, wanted[0]);
          return Values();
        },
        [&] {
          choose(count, first, wanted.drop_front(), body);
          return Values();
        });
  }

  void scores(Value panel) {
    forRows([&](Value first, unsigned rows) {
      Value position = a.narrowQueries ? e.index(a.size) : emitProduct(e, a.query.position);
      Value channel = a.narrowQueries ? e.index(1) : emitProduct(e, a.query.channel);
      TileOperands operands;
      operands.left = e.advance(query, e.mul(first, position), 4);
      operands.right = e.advance(scratch(at.turnedKeys), e.mul(panel, at.panel * a.size), 4);
      for (unsigned r = 0; r < rows; ++r)
        operands.rowOffsets.push_back(e.mul(position, int64_t(r)));
      TileNest nest;
      nest.loops = {{e.index(a.size), channel, e.index(at.panel)}};
      Values sums = emitTile(e, AttentionPlan::kVectors, operands, nest);
      for (unsigned r = 0; r < rows; ++r)
        for (unsigned v = 0; v < AttentionPlan::kVectors; ++v) {
          Value column = e.add(e.mul(panel, at.panel), int64_t(v) * lanes); // within the block
          Value row = e.add(first, int64_t(r));
          Value score =
              masked(e.mul(sums[r * AttentionPlan::kVectors + v], e.f32(a.scale)), row, column);
          e.storeVector(DVT_F32, score, scratch(at.scores), e.add(e.mul(row, plan.keys), column));
        }
    });
  }

  bool hasPartialPanels() const {
    return a.causal || !isStaticExtent(a.keys) || a.keys.value % at.panel != 0;
  }

  Value masked(Value score, Value row, Value column) {
    Value minusInfinity = e.constant(e.f32Vector(), -INFINITY);
    Value within =
        hasPartialPanels() ? e.tailMask(e.sub(keyCount, column), unsigned(lanes)) : Value();
    Value queryNumber = e.add(firstQuery, row), keyNumber = e.add(firstKey, column);
    if (a.mask) {
      dvt_type type = e.problem.value(*a.mask).type;
      Value indices[] = {batch, head, queryNumber};
      Value offset = keyNumber;
      for (unsigned d = 0; d < 3; ++d)
        if (!a.maskAccess.isBroadcast(d))
          offset = e.add(offset, e.mul(indices[d], emitProduct(e, a.maskAccess.strides[d])));
      Value mask = e.loadVector(type, e.pointerOf(*a.mask), offset, unsigned(lanes), within);
      score = type == DVT_BOOL ? e.select(mask, score, minusInfinity) : e.add(score, mask);
    }
    if (a.causal)
      within =
          e.bitAnd(within, e.tailMask(e.sub(e.add(queryNumber, 1), keyNumber), unsigned(lanes)));
    return within ? e.select(within, score, minusInfinity) : score;
  }

  void exponentials(Value row) {
    Value line = e.advance(scratch(at.scores), e.mul(row, plan.keys), 4);
    Value width = e.mul(panels, at.panel), infinite = e.constant(e.f32Vector(), -INFINITY);
    constexpr unsigned kVectors = AttentionPlan::kVectors;
    Values largest(kVectors, infinite);
    largest = e.loop(e.index(0), width, at.panel, largest, [&](Value column, ValueRange carried) {
      Values next;
      for (unsigned v = 0; v < kVectors; ++v)
        next.push_back(e.fastMaximum(loadScore(line, column, v), carried[v]));
      return next;
    });
    for (unsigned v = 1; v < kVectors; ++v)
      largest[0] = e.fastMaximum(largest[0], largest[v]);
    Value before = e.load(DVT_F32, scratch(at.maxima), row);
    Value maximum = e.fastMaximum(e.reduce(Emitter::Reduction::Max, largest[0]), before);
    // Where all is masked so far, nothing is to be subtracted: exp(-inf) is 0.
    Value base = e.select(e.eq(maximum, e.f32(-INFINITY)), e.f32(0), maximum);
    Value shrink = e.extract(emitExp(e, e.splat(e.sub(before, base))), 0);
    Values sums(kVectors, e.constant(e.f32Vector(), 0));
    sums = e.loop(e.index(0), width, at.panel, sums, [&](Value column, ValueRange carried) {
      Values next;
      for (unsigned v = 0; v < kVectors; ++v) {
        Value weight = emitExp(e, e.sub(loadScore(line, column, v), base));
        e.storeVector(DVT_F32, weight, line, e.add(column, int64_t(v) * lanes));
        next.push_back(e.add(carried[v], weight));
      }
      return next;
    });
    for (unsigned v = 1; v < kVectors; ++v)
      sums[0] = e.add(sums[0], sums[v]);
    Value sum = e.load(DVT_F32, scratch(at.sums), row);
    sum = e.add(e.mul(sum, shrink), e.reduce(Emitter::Reduction::Add, sums[0]));
    e.store(DVT_F32, sum, scratch(at.sums), row);
    e.store(DVT_F32, maximum, scratch(at.maxima), row);
    e.ifTrue(e.gt(firstKey, e.index(0)), [&] {
      Value outputs = e.advance(scratch(at.outputs), e.mul(row, at.outputPitch), 4);
      e.loop(e.index(0), e.index(at.outputPitch), lanes, [&](Value i) {
        e.storeVector(DVT_F32, e.mul(e.loadVector(DVT_F32, outputs, i, unsigned(lanes)), shrink),
                      outputs, i);
      });
    });
  }

  Value loadScore(Value line, Value column, unsigned v) {
    return e.loadVector(DVT_F32, line, e.add(column, int64_t(v) * lanes), unsigned(lanes));
  }

  void weighValues() {
    int64_t vectors = at.outputPitch / lanes, step = AttentionPlan::kVectors;
    int64_t whole = vectors / step;
    e.loop(e.index(0), e.index(whole), 1, [&](Value group) {
      bool last = vectors % step == 0;
      weighColumns(e.mul(group, step * lanes), unsigned(step), last);
    });
    if (vectors % step)
      weighColumns(e.index(whole * step * lanes), unsigned(vectors % step), true);
  }

  void weighColumns(Value column, unsigned vectors, bool mayBeCut) {
    Value stride = emitProduct(e, a.val.position);
    Values masks;
    if (mayBeCut && a.valueSize % lanes)
      masks = emitTailMasks(e, e.sub(e.index(a.valueSize), column), vectors);
    forRows([&](Value first, unsigned rows) {
      TileOperands operands;
      operands.left = e.advance(scratch(at.scores), e.mul(first, plan.keys), 4);
      operands.rightType = typeOf(a.val);
      operands.right =
          e.advance(val, e.add(e.mul(firstKey, stride), column), elementBytes(operands.rightType));
      operands.rightMasks = masks;
      Value outputs =
          e.advance(scratch(at.outputs), e.add(e.mul(first, at.outputPitch), column), 4);
      Values sums;
      for (unsigned r = 0; r < rows; ++r) {
        operands.rowOffsets.push_back(e.index(int64_t(r) * plan.keys));
        for (unsigned v = 0; v < vectors; ++v)
          sums.push_back(e.loadVector(DVT_F32, outputs, e.index(r * at.outputPitch + v * lanes),
                                      unsigned(lanes)));
      }
      TileNest nest;
      nest.loops = {{keyCount, e.index(1), stride}};
      sums = emitTile(e, vectors, operands, nest, sums);
      for (unsigned r = 0; r < rows; ++r)
        for (unsigned v = 0; v < vectors; ++v)
          e.storeVector(DVT_F32, sums[r * vectors + v], outputs,
                        e.index(r * at.outputPitch + v * lanes));
    });
  }

  void finish() {
    Value stride = emitProduct(e, a.result.position), result = place(a.result, head, firstQuery);
    e.loop(e.index(0), queryCount, 1, [&](Value row) {
      Value sum = e.load(DVT_F32, scratch(at.sums), row);
      // A query for which every key is masked attends to nothing.
      Value factor = e.select(e.eq(sum, e.f32(0)), e.f32(0), e.fdiv(e.f32(1), sum));
      e.vectorLoop(
          e.index(0), e.index(a.valueSize), unsigned(lanes), 1, [&](Value column, Value mask) {
            Value vector = e.loadVector(DVT_F32, scratch(at.outputs),
                                        e.add(e.mul(row, at.outputPitch), column), unsigned(lanes));
            e.storeVector(typeOf(a.result), e.mul(vector, factor), result,
                          e.add(e.mul(row, stride), column), mask);
          });
    });
  }

  Emitter &e;
  const Attention &a;
  const AttentionPlan &plan;
  AttentionScratch at;
  int64_t lanes;
  Value queries, keys, queryBlocks;
  Value batch, head, firstQuery, queryCount, query, key, val; ///< of the current task
  Value firstKey, keyCount, panels;                           ///< of the current block of keys
};

} // namespace

Status emitAttentionKernel(const ProblemReader &problem, const Machine &, const Schedule &schedule,
                           KernelModule &module) {
  auto found = Attention::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const Attention &a = **found;
  AttentionPlan plan = AttentionPlan::read(schedule);
  module.addPhase(
      [&](Emitter &e) { return AttentionEmitter(e, a, plan).taskCount(); },
      [&](Emitter &e, Value begin, Value end) { AttentionEmitter(e, a, plan).tasks(begin, end); });
  return Status::success();
}

} // namespace dovetail::codegen
