// SPDX-License-Identifier: Apache-2.0
//
// The inner part of every contraction: sums over nested loops of (broadcast element of the left
// side) * (vectors of the right side), held in registers, and the finishing of the sums: scale,
// addend, element-wise followers, stores. Families describe where the operands lie; nothing here
// knows what is contracted.
#pragma once

#include "codegen/PointwiseEmission.h"
#include "codegen/schedule/contraction/Access.h"
#include "codegen/schedule/contraction/Fusion.h"
#include "codegen/schedule/contraction/MatMul.h"

namespace dovetail::codegen {

/// The number as i64, folded where static.
Value emitProduct(Emitter &e, const Product &product);

/// One loop of a reduction; strides in elements.
struct TileLoop {
  Value extent;
  Value leftStride, rightStride;
};

/// Loops that are nested, outermost first. Several nests are summed one after the other.
struct TileNest {
  llvm::SmallVector<TileLoop> loops;
  Value leftOffset, rightOffset; ///< of the first element; null is zero
};

/// Tiles of bytes: both sides are words of four, unsigned ones on the left, and sums are i32.
struct TileBytes {
  /// Where the left side is signed: a vector of what its words are xored with when they are read,
  /// which adds 128 to the bytes. Of unknown lanes, as LLVM would else flip before it broadcasts.
  Value flip;
  bool sumsLeft = false; ///< sums of each row's left bytes, in every lane, follow the others
};

struct TileOperands {
  std::optional<TileBytes> bytes;
  Value left, right;                                ///< pointers
  dvt_type leftType = DVT_F32, rightType = DVT_F32; ///< floats; others than f32 are widened
  Values rowOffsets;                                ///< of each row's first element on the left
  /// Right vectors are `lanes` apart; where given, their masks (null: whole).
  Values rightMasks;
  /// Where given, only `panelVectors` of the right vectors are `lanes` apart, and so many again
  /// follow `panelStride` elements further on: several streams of memory are read side by side.
  Value panelStride;
  unsigned panelVectors = 0;
  int64_t rightAhead = 0; ///< where given, each right vector asks for what is so much further on
  /// Where given, each step asks for `prefetchLines` cache lines from here on, further on by 1 /
  /// 2^prefetchShift of what the right side has advanced.
  Value prefetch;
  unsigned prefetchShift = 0, prefetchLines = 1;

  /// Packed right sides are read from far away once. Where the same panel (of `elements`) serves
  /// `tiles` tiles one after the other, tile number `tile` asks for its share of the panel that
  /// follows. Asks for nothing where tiles are few. Call it when rightType is set.
  void prefetchRight(Emitter &e, Value elements, Value tile, int64_t tiles, unsigned vectors);
};

/// Sums of rowOffsets.size() x `vectors` outputs, row by row, added to `initial` where given.
Values emitTile(Emitter &e, unsigned vectors, const TileOperands &operands,
                llvm::ArrayRef<TileNest> nests, const Values &initial = {});

/// Where outputs are finished. A place is given by an index for each dimension of the output, that
/// of `column` being the first of a vector's columns.
class TileFinish {
public:
  struct Layouts {
    std::vector<Access> leaves, outputs; ///< as fusion.leaves and problem outputs
    std::optional<Addend> addend;
    double scale = 1;
    int column =
        -1; ///< dimension of the output; -1: columns are no dimension, there is one of them
    int64_t columnStep = 1; ///< of the column's index from lane to lane
  };
  TileFinish(Emitter &e, const Fusion &fusion, Layouts layouts);

  /// Loads what is the same for all places with this column once, here: for the vectors from
  /// index[column] on. For loops over the other dimensions.
  void keepColumns(llvm::ArrayRef<Value> index, const Values &masks);

  /// Finishes a row of vectors that follow one another from index[column] on. A mask is null where
  /// all lanes are wanted.
  void emit(llvm::ArrayRef<Value> index, const Values &sums, const Values &masks);

  /// What `value`, one of those that follow from the sums, is for such a row; stores nothing.
  Values evaluate(llvm::ArrayRef<Value> index, const Values &sums, const Values &masks,
                  uint32_t value);

private:
  /// Calls `take` with all that follows from each of the sums.
  void follow(llvm::ArrayRef<Value> index, const Values &sums, const Values &masks,
              llvm::function_ref<void(unsigned v, Value column, ValueMap &values)> take);
  Value rowOffset(const Access &access, llvm::ArrayRef<Value> index);
  Value columnOffset(const Access &access, Value column);
  Value load(uint32_t value, const Access &access, Value rowOffset, Value column, Value mask);
  void store(uint32_t value, const Access &access, Value rowOffset, Value column, Value vector,
             Value mask);

  bool variesByColumnOnly(const Access &access) const;

  Emitter &e;
  const Fusion &fusion;
  Layouts layouts;
  llvm::SmallVector<Values> kept; ///< by vector: the addend, then the leaves; null: not kept
};

/// Calls `body` for each of `wanted`, under the condition that `count` is it; for the last one
/// under no condition.
void emitForCount(Emitter &e, Value count, llvm::ArrayRef<unsigned> wanted,
                  llvm::function_ref<void(unsigned)> body);

/// The sizes that pieces of `total`, cut into tiles of `most` from multiples of `most` on, can
/// have.
llvm::SmallVector<unsigned> tileCounts(Value total, unsigned most);

/// Masks of `vectors` vectors of which only `remaining` lanes in all are wanted; null for those
/// known to be whole.
Values emitTailMasks(Emitter &e, Value remaining, unsigned vectors);

} // namespace dovetail::codegen
