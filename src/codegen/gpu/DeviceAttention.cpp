// SPDX-License-Identifier: Apache-2.0
//
// Emits attention for devices. Of each block of keys, which stands in shared memory with its
// values, a thread sums up the scores of some keys with its query; all that share the query then
// know the new maximum, exchange the exponentials, and add up the values of some channels each.
#include <cmath>

#include "codegen/Families.h"
#include "codegen/MathEmission.h"
#include "codegen/contraction/TileEmission.h"
#include "codegen/schedule/contraction/DeviceAttention.h"

namespace dovetail::codegen {
namespace {

constexpr int64_t kSharers = DeviceAttentionPlan::kSharers;
constexpr int64_t kQueries = DeviceAttentionPlan::kQueries;

class DeviceAttentionEmitter {
public:
  DeviceAttentionEmitter(Emitter &e, const Attention &a, const DeviceAttentionPlan &plan)
      : e(e), a(a), plan(plan), queries(e.extentOf(a.queries)), keys(e.extentOf(a.keys)),
        queryBlocks(e.ceilDiv(queries, kQueries)) {}

  Value blocks() { return e.mul(e.mul(e.extentOf(a.batch), a.heads), queryBlocks); }

  void block(Value number) {
    firstQuery = e.mul(e.rem(number, queryBlocks), kQueries);
    Value rest = e.div(number, queryBlocks);
    head = e.rem(rest, a.heads);
    batch = e.div(rest, a.heads);
    thread = e.threadIndex();
    row = e.div(thread, kSharers);
    sharer = e.rem(thread, kSharers);
    query = e.add(firstQuery, row);
    queryShared = e.sharedMemory(4 * uint64_t(kQueries * a.size));
    keyShared = e.sharedMemory(4 * uint64_t(plan.keys * keyPitch()));
    valueShared = e.sharedMemory(4 * uint64_t(plan.keys * a.valueSize));
    weightShared = e.sharedMemory(4 * uint64_t(kQueries * plan.keys));
    maximumShared = e.sharedMemory(4 * uint64_t(DeviceAttentionPlan::kThreads));
    bring(a.query, head, firstQuery, queries, kQueries, a.size, queryShared, a.size);
    // Keys after the last query of the block are masked for all of them.
    endKey = a.causal ? e.minimum(keys, e.add(firstQuery, kQueries)) : keys;
    Values state(2 + outputsOfThread(), e.f32(0)); // maximum, sum of exponentials, outputs
    state[0] = e.f32(-INFINITY);
    state = e.loop(e.index(0), endKey, plan.keys, state,
                   [&](Value first, ValueRange before) { return blockOfKeys(first, before); });
    store(state);
  }

private:
  /// One more than most sizes, which are even: neighbours read keys from different banks.
  int64_t keyPitch() const { return a.size + 1; }
  int64_t keysOfThread() const { return plan.keys / kSharers; }
  int64_t outputsOfThread() const { return (a.valueSize + kSharers - 1) / kSharers; }

  Value offset(const Attention::Side &side, Value headNumber, Value position, Value channel) {
    Value outer = e.add(e.mul(batch, emitProduct(e, side.batch)),
                        e.mul(headNumber, emitProduct(e, side.head)));
    return e.add(outer, e.add(e.mul(position, emitProduct(e, side.position)),
                              e.mul(channel, emitProduct(e, side.channel))));
  }

  /// `count` positions from `first` on into shared memory, zeros from `end` on.
  void bring(const Attention::Side &side, Value headNumber, Value first, Value end, int64_t count,
             int64_t channels, Value memory, int64_t pitch) {
    e.loop(thread, e.index(count * channels), DeviceAttentionPlan::kThreads, [&](Value i) {
      Value within = e.div(i, channels), channel = e.rem(i, channels);
      Value position = e.add(first, within);
      Value element = e.ifElse(
          e.lt(position, end),
          [&] {
            return Values{e.load(e.problem.value(side.value).type, e.pointerOf(side.value),
                                 offset(side, headNumber, position, channel))};
          },
          [&] { return Values{e.f32(0)}; })[0];
      e.store(DVT_F32, element, memory, e.add(e.mul(within, pitch), channel));
    });
  }

  Values blockOfKeys(Value firstKey, ValueRange before) {
    Value keyHead = e.div(head, a.heads / a.keyHeads);
    e.barrier(); // the keys before are done with
    bring(a.key, keyHead, firstKey, endKey, plan.keys, a.size, keyShared, keyPitch());
    bring(a.val, keyHead, firstKey, endKey, plan.keys, a.valueSize, valueShared, a.valueSize);
    e.barrier();
    Values scores = this->scores(firstKey);
    Value maximum = maximumWith(before[0], scores);
    // Where all is masked so far, nothing is to be subtracted: exp(-inf) is 0.
    Value base = e.select(e.eq(maximum, e.f32(-INFINITY)), e.f32(0), maximum);
    Value weights = e.mul(row, plan.keys);
    for (int64_t i = 0; i < keysOfThread(); ++i)
      e.store(DVT_F32, emitExp(e, e.sub(scores[size_t(i)], base)), weightShared,
              e.add(weights, e.add(sharer, i * kSharers)));
    e.barrier();
    Value shrink = emitExp(e, e.sub(before[0], base));
    Values next{maximum};
    for (Value value : before.drop_front())
      next.push_back(e.mul(value, shrink));
    return e.loop(e.index(0), e.index(plan.keys), 1, next, [&](Value key, ValueRange sums) {
      return weigh(key, e.load(DVT_F32, weightShared, e.add(weights, key)), sums);
    });
  }

  /// Adds one key's weight and weighted values to the state.
  Values weigh(Value key, Value weight, ValueRange state) {
    Values next{state[0], e.add(state[1], weight)};
    for (int64_t i = 0; i < outputsOfThread(); ++i) {
      // What a thread has beyond the channels is not stored, but must lie inside of the memory.
      Value channel = e.add(sharer, i * kSharers);
      if ((i + 1) * kSharers > a.valueSize)
        channel = e.minimum(channel, a.valueSize - 1);
      Value value = e.load(DVT_F32, valueShared, e.add(e.mul(key, a.valueSize), channel));
      next.push_back(e.fma(weight, value, state[size_t(2 + i)]));
    }
    return next;
  }

  /// Of this thread's query with its keys, scaled and masked.
  Values scores(Value firstKey) {
    Values sums(size_t(keysOfThread()), e.f32(0));
    Value queryRow = e.mul(row, a.size);
    sums = e.loop(e.index(0), e.index(a.size), 1, sums, [&](Value channel, ValueRange before) {
      Values next;
      Value own = e.load(DVT_F32, queryShared, e.add(queryRow, channel));
      for (int64_t i = 0; i < keysOfThread(); ++i) {
        Value place = e.mul(e.add(sharer, i * kSharers), keyPitch());
        next.push_back(
            e.fma(own, e.load(DVT_F32, keyShared, e.add(place, channel)), before[size_t(i)]));
      }
      return next;
    });
    for (int64_t i = 0; i < keysOfThread(); ++i)
      sums[size_t(i)] = masked(e.mul(sums[size_t(i)], e.f32(a.scale)),
                               e.add(firstKey, e.add(sharer, i * kSharers)));
    return sums;
  }

  Value masked(Value score, Value key) {
    Value within = e.lt(key, endKey), infinite = e.f32(-INFINITY);
    if (a.causal)
      within = e.bitAnd(within, e.le(key, query));
    if (!a.mask)
      return e.select(within, score, infinite);
    return e.ifElse(
        e.bitAnd(within, e.lt(query, queries)),
        [&] {
          dvt_type type = e.problem.value(*a.mask).type;
          Value indices[] = {batch, head, query}, place = key;
          for (unsigned d = 0; d < 3; ++d)
            if (!a.maskAccess.isBroadcast(d))
              place = e.add(place, e.mul(indices[d], emitProduct(e, a.maskAccess.strides[d])));
          Value mask = e.load(type, e.pointerOf(*a.mask), place);
          return Values{type == DVT_BOOL ? e.select(mask, score, infinite) : e.add(score, mask)};
        },
        [&] { return Values{infinite}; })[0];
  }

  /// The largest of `before` and of the scores of all threads that share the query.
  Value maximumWith(Value before, const Values &scores) {
    Value own = scores[0];
    for (Value score : llvm::drop_begin(scores))
      own = e.fastMaximum(own, score);
    e.store(DVT_F32, own, maximumShared, thread);
    e.barrier();
    Value first = e.mul(row, kSharers);
    for (int64_t i = 0; i < kSharers; ++i)
      before = e.fastMaximum(e.load(DVT_F32, maximumShared, e.add(first, i)), before);
    return before;
  }

  void store(const Values &state) {
    // A query for which every key is masked attends to nothing.
    Value sum = state[1];
    Value factor = e.select(e.eq(sum, e.f32(0)), e.f32(0), e.fdiv(e.f32(1), sum));
    for (int64_t i = 0; i < outputsOfThread(); ++i) {
      Value channel = e.add(sharer, i * kSharers);
      Value inside = e.bitAnd(e.lt(query, queries), e.lt(channel, e.index(a.valueSize)));
      e.ifTrue(inside, [&] {
        e.store(e.problem.value(a.result.value).type, e.mul(state[size_t(2 + i)], factor),
                e.pointerOf(a.result.value), offset(a.result, head, query, channel));
      });
    }
  }

  Emitter &e;
  const Attention &a;
  const DeviceAttentionPlan &plan;
  Value queries, keys, queryBlocks;
  Value batch, head, firstQuery, endKey; ///< of the block
  Value thread, row, sharer, query;      ///< of the thread: row and sharer within the block
  Value queryShared, keyShared, valueShared, weightShared, maximumShared;
};

} // namespace

Status emitDeviceAttentionKernel(const ProblemReader &problem, const Machine &,
                                 const Schedule &schedule, KernelModule &module) {
  auto found = Attention::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  DeviceAttentionPlan plan = DeviceAttentionPlan::read(schedule);
  auto make = [&](Emitter &e) { return DeviceAttentionEmitter(e, **found, plan); };
  module.addBlockPhase(
      DeviceAttentionPlan::kThreads, [&](Emitter &e) { return make(e).blocks(); },
      [&](Emitter &e, Value begin, Value) { make(e).block(begin); });
  return Status::success();
}

} // namespace dovetail::codegen
