// SPDX-License-Identifier: Apache-2.0
//
// Both sides stand in shared memory as words of 32 bits along the depth, row after row (or column
// after column), in which form the lanes of a warp pick up their parts of an operand. As for other
// tiles the next pair of tiles is on its way to registers while one is multiplied, and sums pass
// through shared memory in the end.
#include "codegen/gpu/MatrixProduct.h"

#include <algorithm>

#include "codegen/gpu/ThreadCall.h"

namespace dovetail::codegen {

using namespace mlir;

namespace {

class MatrixProductEmitter {
public:
  MatrixProductEmitter(Emitter &e, const MatrixTile &tile, Value firstRow, Value firstColumn,
                       const TiledOperands &operands)
      : e(e), tile(tile), unit(*tile.unit), operands(operands), firstRow(firstRow),
        firstColumn(firstColumn) {
    shared = e.sharedMemory(tile.sharedBytes());
    rightShared = e.advance(shared, e.index(tile.rows * MatrixTile::pitch()), 4);
    thread = e.threadIndex();
    Value warp = e.div(thread, unit.lanes);
    lane = e.rem(thread, unit.lanes);
    warpDown = e.div(warp, tile.columns / tile.warpColumns);
    warpAcross = e.rem(warp, tile.columns / tile.warpColumns);
    leftStart = firstWord(warpDown, tile.warpRows, unit.leftWords);
    rightStart = firstWord(warpAcross, tile.warpColumns, unit.rightWords);
  }

  void emit() {
    Values carried(down() * across(), e.constant(e.vectorOf(e.f32Type(), unit.sums), 0));
    carried.append(fetch(e.index(0)));
    carried = e.loop(e.index(0), operands.depth, tile.depth(), carried,
                     [&](Value k, ValueRange values) { return step(k, values); });
    for (int64_t part = 0; part < tile.finishingParts(); ++part)
      finish(part, carried);
  }

private:
  int64_t down() const { return tile.warpRows / unit.rows; } ///< instructions, of a warp
  int64_t across() const { return tile.warpColumns / unit.columns; }
  int64_t words(int64_t width) const { // that a thread brings in for so many rows or columns
    return width * MatrixTile::kDepthWords / MatrixTile::kThreads;
  }

  /// One side of the product while its tiles are brought in.
  struct Side {
    llvm::function_ref<Value(Value place, Value k)> element;
    Value first, end; ///< rows or columns: of the tile, and of the product
    int64_t width;    ///< of the tile
    bool alongDepth;
    Value memory;
    SideVectors vectors;
  };
  /// Calls `body` with the sides as left and right.
  void forSides(llvm::function_ref<void(const Side &)> body) {
    body({operands.left, firstRow, operands.rows, tile.rows, operands.leftAlongDepth, shared,
          operands.leftVectors});
    auto right = [&](Value column, Value k) { return operands.right(k, column); };
    body({right, firstColumn, operands.columns, tile.columns, operands.rightAlongDepth, rightShared,
          operands.rightVectors});
  }

  /// Words that are brought in at once: of one row or column along the depth, or of so many rows or
  /// columns.
  int64_t chunkOf(const Side &side) const {
    constexpr int64_t kMostWords = 4; // of one load
    int64_t elements =
        side.alongDepth ? side.vectors.elements / unit.elementsPerWord() : side.vectors.elements;
    int64_t most = side.alongDepth ? kMostWords : kMostWords * unit.elementsPerWord();
    return std::max<int64_t>(1, std::min({elements, most, words(side.width)}));
  }
  bool usesVectors(const Side &side) const {
    return side.vectors.elements > 1 && (side.alongDepth || chunkOf(side) > 1);
  }

  /// Where chunk number `i` of this thread begins in a tile: its row or column, and its word of the
  /// depth. Neighbouring threads load side by side, or, where each takes several rows or columns,
  /// store side by side.
  std::pair<Value, Value> placeOf(const Side &side, int64_t i) {
    int64_t chunk = chunkOf(side);
    Value number = e.add(thread, i * MatrixTile::kThreads);
    if (side.alongDepth) {
      int64_t inner = MatrixTile::kDepthWords / chunk;
      return {e.div(number, inner), e.mul(e.rem(number, inner), chunk)};
    }
    if (chunk > 1)
      return {e.mul(e.div(number, MatrixTile::kDepthWords), chunk),
              e.rem(number, MatrixTile::kDepthWords)};
    return {e.rem(number, side.width), e.div(number, side.width)};
  }

  /// This thread's words of the tiles at depth `k`, zeros outside.
  Values fetch(Value k) {
    Values fetched;
    forSides([&](const Side &side) {
      for (int64_t i = 0; i < words(side.width) / chunkOf(side); ++i) {
        auto [within, word] = placeOf(side, i);
        Value place = e.add(side.first, within),
              depth = e.add(k, e.mul(word, unit.elementsPerWord()));
        if (!usesVectors(side))
          fetched.push_back(fetchWord(side, place, depth));
        else if (side.alongDepth)
          fetched.append(fetchAlongDepth(side, place, depth));
        else
          fetched.append(fetchAcross(side, place, depth));
      }
    });
    return fetched;
  }

  Value inside(const Side &side, Value place, Value k) {
    return e.bitAnd(e.lt(place, side.end), e.lt(k, operands.depth));
  }
  Value wordConstant(int64_t number) { return e.integerConstant(e.i32Type(), number); }

  Value fetchWord(const Side &side, Value place, Value k) {
    Value word;
    for (int64_t i = 0; i < unit.elementsPerWord(); ++i) {
      Value depth = e.add(k, i);
      Value element = e.ifElse(
          inside(side, place, depth), [&] { return Values{wordOf(side.element(place, depth))}; },
          [&] { return Values{wordConstant(0)}; })[0];
      word = i == 0 ? element : e.bitOr(word, e.shiftLeft(element, wordConstant(16 * i)));
    }
    return word;
  }

  /// A vector that lies at a multiple of its bytes.
  Value loadAligned(Type type, Value address) {
    auto vector = cast<VectorType>(type);
    int64_t bytes = vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
    return LLVM::LoadOp::create(e.builder, e.builder.getUnknownLoc(), type, address,
                                unsigned(bytes));
  }

  Values fetchAlongDepth(const Side &side, Value place, Value k) {
    unsigned count = unsigned(chunkOf(side));
    Type element = unit.type == DVT_F32 ? e.f32Type() : e.i32Type();
    return e.ifElse(
        inside(side, place, k),
        [&] {
          Value vector = loadAligned(e.vectorOf(element, count), side.vectors.address(place, k));
          Values words;
          for (unsigned i = 0; i < count; ++i)
            words.push_back(wordOf(e.extract(vector, i)));
          return words;
        },
        [&] { return Values(count, wordConstant(0)); });
  }

  Values fetchAcross(const Side &side, Value place, Value k) {
    unsigned count = unsigned(chunkOf(side));
    Type element = unit.type == DVT_F32 ? e.f32Type() : Type(e.builder.getI16Type());
    Values words(count, wordConstant(0));
    for (int64_t i = 0; i < unit.elementsPerWord(); ++i) {
      Value depth = e.add(k, i);
      Value vector = e.ifElse(
          inside(side, place, depth),
          [&] {
            return Values{
                loadAligned(e.vectorOf(element, count), side.vectors.address(place, depth))};
          },
          [&] { return Values{e.constant(e.vectorOf(element, count), 0)}; })[0];
      for (unsigned c = 0; c < count; ++c) {
        Value bits = wordOf(unsignedWord(e.extract(vector, c)));
        words[c] = i == 0 ? bits : e.bitOr(words[c], e.shiftLeft(bits, wordConstant(16 * i)));
      }
    }
    return words;
  }

  /// 16 bits as a word; what is none of these as it is.
  Value unsignedWord(Value element) {
    return element.getType().isInteger(16)
               ? e.bitAnd(e.convert(element, e.i32Type()), wordConstant(0xffff))
               : element;
  }

  /// An element as it comes from memory in the low bits of a word.
  Value wordOf(Value element) {
    if (unit.type != DVT_F32)
      return element;
    if (isNvidia())
      return call(kRoundToTf32Function, e.i32Type(), element);
    return e.bitcast(element, e.i32Type());
  }

  void keep(ValueRange fetched) {
    forSides([&](const Side &side) {
      int64_t chunk = chunkOf(side);
      for (int64_t i = 0; i < words(side.width) / chunk; ++i) {
        auto [within, word] = placeOf(side, i);
        Value offset = e.add(e.mul(within, MatrixTile::pitch()), word);
        if (side.alongDepth && chunk > 1) {
          Value vector = lanePart(chunk, [&](int64_t number) { return fetched[size_t(number)]; });
          LLVM::StoreOp::create(e.builder, e.builder.getUnknownLoc(), vector,
                                e.advance(side.memory, offset, 4), unsigned(4 * chunk));
        } else {
          for (int64_t c = 0; c < chunk; ++c)
            e.store(DVT_I32, fetched[size_t(c)], side.memory,
                    e.add(offset, c * MatrixTile::pitch()));
        }
        fetched = fetched.drop_front(size_t(chunk));
      }
    });
  }

  Values step(Value k, ValueRange carried) {
    size_t sums = down() * across();
    e.barrier(); // the tiles before are done with
    keep(carried.drop_front(sums));
    e.barrier();
    Values next(carried.take_front(sums)), fetched = fetch(e.add(k, tile.depth()));
    for (int64_t word = 0; word < MatrixTile::kDepthWords; word += unit.depthWords())
      multiply(word, next);
    next.append(fetched);
    return next;
  }

  /// Adds the product of the tiles' words [word, word + unit.depthWords()) along the depth.
  void multiply(int64_t word, Values &sums) {
    Values left, right;
    for (int64_t r = 0; r < down(); ++r)
      left.push_back(lanePart(unit.leftWords, [&](int64_t i) {
        return wordAt(shared, leftStart, r * unit.rows + leftOffset(i).place,
                      word + leftOffset(i).word);
      }));
    for (int64_t c = 0; c < across(); ++c)
      right.push_back(lanePart(unit.rightWords, [&](int64_t i) {
        return wordAt(rightShared, rightStart, c * unit.columns, word + rightOffset(i));
      }));
    for (int64_t r = 0; r < down(); ++r)
      for (int64_t c = 0; c < across(); ++c) {
        Value &sum = sums[r * across() + c];
        sum = call(unit.function(), sum.getType(), ValueRange{left[r], right[c], sum});
      }
  }

  Value lanePart(int64_t count, llvm::function_ref<Value(int64_t)> wordOfLane) {
    Value vector = e.constant(e.vectorOf(e.i32Type(), unsigned(count)), 0);
    for (int64_t i = 0; i < count; ++i)
      vector = e.insert(wordOfLane(i), vector, unsigned(i));
    return vector;
  }
  /// So many rows (or columns) and words behind the first one of the lane.
  Value wordAt(Value memory, Value start, int64_t places, int64_t words) {
    return e.load(DVT_I32, memory, e.add(start, places * MatrixTile::pitch() + words));
  }

  // --- Where the parts of a lane lie. On NVIDIA's units four lanes side by side share a row (or
  // column) and take a word each. On AMD's sixteen lanes take a row (or column) each, and groups of
  // sixteen follow one another along the depth. ---

  bool isNvidia() const { return unit.vendor == MatrixUnit::Vendor::Nvidia; }

  /// Of the lane's first word in its warp's part of a side.
  Value firstWord(Value warpPlace, int64_t warpExtent, int64_t wordsOfLane) {
    Value place = isNvidia() ? e.div(lane, 4) : e.rem(lane, 16);
    Value word = isNvidia() ? e.rem(lane, 4) : e.mul(e.div(lane, 16), wordsOfLane);
    return e.add(e.mul(e.add(e.mul(warpPlace, warpExtent), place), MatrixTile::pitch()), word);
  }
  struct Offset {
    int64_t place, word;
  };
  Offset leftOffset(int64_t i) const {
    return isNvidia() ? Offset{8 * (i % 2), 4 * (i / 2)} : Offset{0, i};
  }
  int64_t rightOffset(int64_t i) const { return isNvidia() ? 4 * i : i; }

  /// Row and column of a lane's sum number `i` within the instruction's result.
  std::pair<Value, Value> sumPlace(int64_t i) {
    if (isNvidia())
      return {e.add(e.div(lane, 4), 8 * (i / 2)), e.add(e.mul(e.rem(lane, 4), 2), i % 2)};
    return {e.add(e.mul(e.div(lane, 16), 4), i), e.rem(lane, 16)};
  }

  // --- The end ---

  /// Finishes the rows of part number `part` of every warp.
  void finish(int64_t part, ValueRange sums) {
    int64_t units = down() / tile.finishingParts(), warpRows = units * unit.rows;
    e.barrier(); // what stood in shared memory is done with
    for (int64_t r = 0; r < units; ++r)
      for (int64_t c = 0; c < across(); ++c)
        keepSums(sums[(part * units + r) * across() + c],
                 e.add(e.mul(warpDown, warpRows), r * unit.rows),
                 e.add(e.mul(warpAcross, tile.warpColumns), c * unit.columns));
    e.barrier();
    int64_t elements = tile.rows * tile.columns / tile.finishingParts();
    e.loop(thread, e.index(elements), MatrixTile::kThreads, [&](Value i) {
      Value kept = e.div(i, tile.columns);
      Value row = e.add(firstRow, e.add(e.mul(e.div(kept, warpRows), tile.warpRows),
                                        e.add(e.rem(kept, warpRows), part * warpRows)));
      Value column = e.add(firstColumn, e.rem(i, tile.columns));
      e.ifTrue(e.bitAnd(e.lt(row, operands.rows), e.lt(column, operands.columns)),
               [&] { operands.finish(row, column, e.splat(e.load(DVT_F32, shared, i), 1)); });
    });
  }

  void keepSums(Value sums, Value firstKept, Value firstColumnKept) {
    for (int64_t i = 0; i < unit.sums; ++i) {
      auto [row, column] = sumPlace(i);
      Value offset =
          e.add(e.mul(e.add(firstKept, row), tile.columns), e.add(firstColumnKept, column));
      e.store(DVT_F32, e.extract(sums, unsigned(i)), shared, offset);
    }
  }

  Value call(llvm::StringRef function, Type result, ValueRange operands) {
    auto module = thread.getDefiningOp()->getParentOfType<ModuleOp>();
    return callThreadFunction(e.builder, module, function, result, operands);
  }

  Emitter &e;
  const MatrixTile &tile;
  const MatrixUnit &unit;
  const TiledOperands &operands;
  Value firstRow, firstColumn, shared, rightShared, thread, lane, warpDown, warpAcross, leftStart,
      rightStart;
};

} // namespace

void emitMatrixProduct(Emitter &e, const MatrixTile &tile, Value firstRow, Value firstColumn,
                       const TiledOperands &operands) {
  MatrixProductEmitter(e, tile, firstRow, firstColumn, operands).emit();
}

} // namespace dovetail::codegen
