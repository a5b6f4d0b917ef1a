// SPDX-License-Identifier: Apache-2.0
//
// While a pair of tiles is multiplied the next one is on its way from memory to registers. Sums
// pass through shared memory in the end, so that neighbouring threads store neighbouring elements
// and what follows the product is emitted once.
#include "codegen/gpu/TiledProduct.h"

namespace dovetail::codegen {
namespace {

class TiledProductEmitter {
public:
  TiledProductEmitter(Emitter &e, const DeviceTile &tile, Value firstRow, Value firstColumn,
                      const TiledOperands &operands)
      : e(e), tile(tile), operands(operands), firstRow(firstRow), firstColumn(firstColumn) {
    shared = e.sharedMemory(tile.sharedBytes());
    rightShared = e.advance(shared, e.index(leftPitch() * tile.depth), 4);
    thread = e.threadIndex();
    threadRow = e.div(thread, across());
    threadColumn = e.rem(thread, across());
  }

  void emit() {
    Values carried;
    for (int64_t i = 0; i < tile.threadRows * tile.threadColumns; ++i)
      carried.push_back(e.f32(0));
    carried.append(fetch(e.index(0)));
    carried = e.loop(e.index(0), operands.depth, tile.depth, carried,
                     [&](Value k, ValueRange values) { return step(k, values); });
    e.barrier();
    finish(carried);
  }

private:
  /// A thread's rows and columns lie so far apart, and neighbouring threads' side by side: what
  /// they read at once is in different banks of shared memory.
  int64_t down() const { return tile.rows / tile.threadRows; }
  int64_t across() const { return tile.columns / tile.threadColumns; }
  /// One more than a power of two, so that threads that store along depth meet different banks.
  int64_t leftPitch() const { return tile.rows + 1; }
  int64_t rightPitch() const { return tile.columns + 1; }
  int64_t leftElements() const { return tile.rows * tile.depth / DeviceTile::kThreads; }
  int64_t rightElements() const { return tile.columns * tile.depth / DeviceTile::kThreads; }

  struct Place {
    Value across, k; ///< within the tile: row or column, and depth
  };
  /// What element number `i` of this thread stands at in a tile of `width` rows or columns.
  Place place(int64_t i, int64_t width, bool alongDepth) {
    Value number = e.add(thread, i * DeviceTile::kThreads);
    if (alongDepth)
      return {e.div(number, tile.depth), e.rem(number, tile.depth)};
    return {e.rem(number, width), e.div(number, width)};
  }

  Value inside(Value a, Value aEnd, Value b, Value bEnd) {
    return e.bitAnd(e.lt(a, aEnd), e.lt(b, bEnd));
  }
  Value guarded(Value condition, llvm::function_ref<Value()> load) {
    return e.ifElse(
        condition, [&] { return Values{load()}; }, [&] { return Values{e.f32(0)}; })[0];
  }

  /// This thread's elements of the tiles at depth `k`, zeros outside.
  Values fetch(Value k) {
    Values elements;
    for (int64_t i = 0; i < leftElements(); ++i) {
      Place at = place(i, tile.rows, operands.leftAlongDepth);
      Value row = e.add(firstRow, at.across), depth = e.add(k, at.k);
      elements.push_back(guarded(inside(row, operands.rows, depth, operands.depth),
                                 [&] { return operands.left(row, depth); }));
    }
    for (int64_t i = 0; i < rightElements(); ++i) {
      Place at = place(i, tile.columns, operands.rightAlongDepth);
      Value column = e.add(firstColumn, at.across), depth = e.add(k, at.k);
      elements.push_back(guarded(inside(column, operands.columns, depth, operands.depth),
                                 [&] { return operands.right(depth, column); }));
    }
    return elements;
  }

  void keep(ValueRange elements) {
    auto store = [&](Value base, const Place &at, int64_t pitch, Value element) {
      e.store(DVT_F32, element, base, e.add(e.mul(at.k, pitch), at.across));
    };
    for (int64_t i = 0; i < leftElements(); ++i)
      store(shared, place(i, tile.rows, operands.leftAlongDepth), leftPitch(), elements[i]);
    for (int64_t i = 0; i < rightElements(); ++i)
      store(rightShared, place(i, tile.columns, operands.rightAlongDepth), rightPitch(),
            elements[leftElements() + i]);
  }

  Values step(Value k, ValueRange carried) {
    size_t sums = tile.threadRows * tile.threadColumns;
    e.barrier(); // the tiles before are done with
    keep(carried.drop_front(sums));
    e.barrier();
    Values next(carried.take_front(sums)), fetched = fetch(e.add(k, tile.depth));
    next = e.loop(e.index(0), e.index(tile.depth), 1, next,
                  [&](Value i, ValueRange values) { return multiply(i, values); });
    next.append(fetched);
    return next;
  }

  Values multiply(Value k, ValueRange sums) {
    Values left, right, next;
    Value leftRow = e.add(e.mul(k, leftPitch()), threadRow),
          rightRow = e.add(e.mul(k, rightPitch()), threadColumn);
    for (int64_t r = 0; r < tile.threadRows; ++r)
      left.push_back(e.load(DVT_F32, shared, e.add(leftRow, r * down())));
    for (int64_t c = 0; c < tile.threadColumns; ++c)
      right.push_back(e.load(DVT_F32, rightShared, e.add(rightRow, c * across())));
    for (int64_t r = 0; r < tile.threadRows; ++r)
      for (int64_t c = 0; c < tile.threadColumns; ++c)
        next.push_back(e.fma(left[r], right[c], sums[r * tile.threadColumns + c]));
    return next;
  }

  void finish(ValueRange sums) {
    for (int64_t r = 0; r < tile.threadRows; ++r)
      for (int64_t c = 0; c < tile.threadColumns; ++c)
        e.store(DVT_F32, sums[r * tile.threadColumns + c], shared,
                e.add(e.mul(e.add(threadRow, r * down()), tile.columns),
                      e.add(threadColumn, c * across())));
    e.barrier();
    e.loop(thread, e.index(tile.rows * tile.columns), DeviceTile::kThreads, [&](Value i) {
      Value row = e.add(firstRow, e.div(i, tile.columns)),
            column = e.add(firstColumn, e.rem(i, tile.columns));
      e.ifTrue(inside(row, operands.rows, column, operands.columns),
               [&] { operands.finish(row, column, e.splat(e.load(DVT_F32, shared, i), 1)); });
    });
  }

  Emitter &e;
  const DeviceTile &tile;
  const TiledOperands &operands;
  Value firstRow, firstColumn, shared, rightShared, thread, threadRow, threadColumn;
};

} // namespace

void emitTiledProduct(Emitter &e, const DeviceTile &tile, Value firstRow, Value firstColumn,
                      const TiledOperands &operands) {
  TiledProductEmitter(e, tile, firstRow, firstColumn, operands).emit();
}

} // namespace dovetail::codegen
