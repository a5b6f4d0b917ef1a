// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/contraction/TileEmission.h"

#include <algorithm>

#include "codegen/schedule/Expression.h"

namespace dovetail::codegen {

Value emitProduct(Emitter &e, const Product &product) {
  Value value = e.index(product.constant);
  if (product.constant != 0)
    for (const dvt_extent &factor : product.factors)
      value = e.mul(value, e.extentOf(factor));
  return value;
}

constexpr int64_t kLineBytes = 64; // of a cache line

void TileOperands::prefetchRight(Emitter &e, Value elements, Value tile, int64_t tiles,
                                 unsigned vectors) {
  int64_t width = int64_t(vectors) * e.lanes();
  // A panel that few tiles use is read as fast as memory gives it in any case.
  constexpr int64_t kFewTiles = 4;
  if (tiles < kFewTiles)
    return;
  for (prefetchShift = 0; prefetchShift < 4 && (int64_t(2) << prefetchShift) <= tiles;)
    ++prefetchShift;
  int64_t parts = int64_t(1) << prefetchShift;
  Value next = e.add(elements, e.mul(e.div(elements, parts), tile));
  // When all of it has been asked for, ask for what is there already.
  unsigned bytes = elementBytes(rightType);
  prefetch = e.advance(right, e.select(e.lt(tile, e.index(parts)), next, e.index(0)), bytes);
  prefetchLines = unsigned(
      std::max<int64_t>(1, ((width * bytes >> prefetchShift) + kLineBytes - 1) / kLineBytes));
}

namespace {

class TileBuilder {
public:
  TileBuilder(Emitter &e, unsigned vectors, const TileOperands &operands)
      : e(e), vectors(vectors), operands(operands), leftBytes(elementBytes(operands.leftType)),
        rightBytes(elementBytes(operands.rightType)) {
    for (Value offset : operands.rowOffsets) {
      bool fixed = Emitter::constantIndex(offset).has_value();
      rowPointers.push_back(fixed ? operands.left : e.advance(operands.left, offset, leftBytes));
      rowOffsets.push_back(fixed ? offset : e.index(0));
    }
  }

  Values nest(const TileNest &nest, size_t level, Value left, Value right, const Values &sums) {
    if (level == nest.loops.size())
      return step(left, right, sums);
    const TileLoop &loop = nest.loops[level];
    return e.loop(e.index(0), loop.extent, 1, sums, [&](Value i, ValueRange carried) {
      return this->nest(nest, level + 1, e.add(left, e.mul(i, loop.leftStride)),
                        e.add(right, e.mul(i, loop.rightStride)), Values(carried));
    });
  }

private:
  /// Words of bytes as the machine multiplies them: whole, or their even and their odd bytes.
  Values wordParts(Value words, bool isLeft) {
    if (e.machine.isa.vnni)
      return {words};
    mlir::Type narrow = e.builder.getI16Type();
    auto shift = [&](Value vector) { return e.integerConstant(vector.getType(), 8); };
    if (isLeft) {
      Value mask = e.integerConstant(words.getType(), 0x00ff00ff);
      return {e.bitAnd(words, mask), e.bitAnd(e.shiftRight(words, shift(words)), mask)};
    }
    Value pairs = e.recast(words, narrow);
    Value even = e.shiftRightSigned(e.shiftLeft(pairs, shift(pairs)), shift(pairs));
    return {e.recast(even, e.i32Type()),
            e.recast(e.shiftRightSigned(pairs, shift(pairs)), e.i32Type())};
  }

  /// sum + four products, exact in i32: pairs of 16 bits where there is no instruction for bytes
  /// that does not saturate.
  Value dot(Value sum, const Values &left, const Values &right) {
    bool wide = e.lanes() == 16;
    mlir::Type narrow = e.machine.isa.vnni ? e.i8Type() : e.builder.getI16Type();
    if (e.machine.isa.vnni)
      return e.intrinsic(wide ? "llvm.x86.avx512.vpdpbusd.512" : "llvm.x86.avx512.vpdpbusd.256",
                         sum.getType(),
                         {sum, e.recast(left[0], narrow), e.recast(right[0], narrow)});
    for (unsigned i = 0; i < left.size(); ++i)
      sum = e.add(sum, e.intrinsic(wide ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd",
                                   sum.getType(),
                                   {e.recast(left[i], narrow), e.recast(right[i], narrow)}));
    return sum;
  }

  Values byteStep(Value left, const Values &row, const Values &sums) {
    Values next, leftSums, ones;
    llvm::SmallVector<Values> parts;
    for (Value words : row)
      parts.push_back(wordParts(words, false));
    mlir::Type type = e.vectorOf(e.i32Type(), e.lanes());
    if (operands.bytes->sumsLeft)
      ones = wordParts(e.integerConstant(type, 0x01010101), false);
    Value shared = e.advance(operands.left, left, leftBytes);
    size_t rows = rowPointers.size();
    for (unsigned r = 0; r < rows; ++r) {
      bool isShared = rowPointers[r] == operands.left;
      Value pointer = isShared ? shared : e.advance(rowPointers[r], left, leftBytes);
      Value words = e.loadSplat(DVT_I32, pointer, rowOffsets[r], e.lanes());
      if (operands.bytes->flip)
        words = e.bitXor(words, operands.bytes->flip);
      Values bytes = wordParts(words, true);
      for (unsigned v = 0; v < vectors; ++v)
        next.push_back(dot(sums[r * vectors + v], bytes, parts[v]));
      if (operands.bytes->sumsLeft)
        leftSums.push_back(dot(sums[rows * vectors + r], bytes, ones));
    }
    next.append(leftSums);
    return next;
  }

  Values step(Value left, Value right, const Values &sums) {
    Values next, row;
    Value rightPointer = e.advance(operands.right, right, rightBytes);
    for (unsigned v = 0; v < vectors; ++v) {
      Value mask = operands.rightMasks.empty() ? Value() : operands.rightMasks[v];
      Value place = e.index(int64_t(v) * e.lanes());
      if (operands.panelStride)
        place = e.add(e.mul(operands.panelStride, int64_t(v / operands.panelVectors)),
                      int64_t(v % operands.panelVectors) * e.lanes());
      row.push_back(e.loadVector(operands.rightType, rightPointer, place, e.lanes(), mask));
      if (operands.rightAhead)
        e.prefetch(rightPointer, e.add(place, operands.rightAhead), rightBytes);
    }
    if (operands.prefetch) {
      Value shift = e.index(operands.prefetchShift);
      Value ahead = operands.prefetchShift ? e.shiftRight(right, shift) : right;
      for (unsigned line = 0; line < operands.prefetchLines; ++line)
        e.prefetch(operands.prefetch, e.add(ahead, line * (kLineBytes / rightBytes)), rightBytes);
    }
    if (operands.bytes)
      return byteStep(left, row, sums);
    Value shared = e.advance(operands.left, left, leftBytes);
    for (unsigned r = 0; r < rowPointers.size(); ++r) {
      bool isShared = rowPointers[r] == operands.left;
      Value pointer = isShared ? shared : e.advance(rowPointers[r], left, leftBytes);
      Value element = e.loadSplat(operands.leftType, pointer, rowOffsets[r], e.lanes());
      for (unsigned v = 0; v < vectors; ++v)
        next.push_back(e.fma(element, row[v], sums[r * vectors + v]));
    }
    return next;
  }

  Emitter &e;
  unsigned vectors;
  const TileOperands &operands;
  unsigned leftBytes, rightBytes;
  Values rowPointers, rowOffsets;
};

} // namespace

Values emitTile(Emitter &e, unsigned vectors, const TileOperands &operands,
                llvm::ArrayRef<TileNest> nests, const Values &initial) {
  TileBuilder builder(e, vectors, operands);
  Values sums = initial;
  if (sums.empty())
    sums.assign(operands.rowOffsets.size() * vectors, e.constant(e.f32Vector(), 0));
  for (const TileNest &nest : nests)
    sums = builder.nest(nest, 0, nest.leftOffset ? nest.leftOffset : e.index(0),
                        nest.rightOffset ? nest.rightOffset : e.index(0), sums);
  return sums;
}

void emitForCount(Emitter &e, Value count, llvm::ArrayRef<unsigned> wanted,
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
        emitForCount(e, count, wanted.drop_front(), body);
        return Values();
      });
}

llvm::SmallVector<unsigned> tileCounts(Value total, unsigned most) {
  llvm::SmallVector<unsigned> counts{most};
  if (std::optional<int64_t> known = Emitter::constantIndex(total)) {
    if (unsigned rest = unsigned(*known % most))
      counts.push_back(rest);
    return counts;
  }
  for (unsigned count = most - 1; count >= 1; --count)
    counts.push_back(count);
  return counts;
}

Values emitTailMasks(Emitter &e, Value remaining, unsigned vectors) {
  Values masks;
  for (unsigned v = 0; v < vectors; ++v) {
    Value left = e.sub(remaining, int64_t(v) * e.lanes());
    std::optional<int64_t> known = Emitter::constantIndex(left);
    masks.push_back(known && *known >= int64_t(e.lanes()) ? Value() : e.tailMask(left));
  }
  return masks;
}

TileFinish::TileFinish(Emitter &e, const Fusion &fusion, Layouts layouts)
    : e(e), fusion(fusion), layouts(std::move(layouts)) {}

Value TileFinish::rowOffset(const Access &access, llvm::ArrayRef<Value> index) {
  Value offset = e.index(0);
  for (unsigned d = 0; d < index.size(); ++d) {
    if (int(d) == layouts.column || access.isBroadcast(d))
      continue;
    Value position = index[d];
    if (int(d) == access.blockedDimension) {
      offset =
          e.add(offset, e.mul(e.div(position, access.block), emitProduct(e, access.blockStride)));
      position = e.rem(position, access.block);
    }
    offset = e.add(offset, e.mul(position, emitProduct(e, access.strides[d])));
  }
  return offset;
}

Value TileFinish::columnOffset(const Access &access, Value column) {
  const Product &stride = access.strides[layouts.column];
  if (access.blockedDimension != layouts.column)
    return e.mul(column, emitProduct(e, stride));
  return e.add(e.mul(e.div(column, access.block), emitProduct(e, access.blockStride)),
               e.rem(column, access.block));
}

Value TileFinish::load(uint32_t value, const Access &access, Value rowOffset, Value column,
                       Value mask) {
  dvt_type type = e.problem.value(value).type;
  Value pointer = e.pointerOf(value);
  if (layouts.column < 0 || access.isBroadcast(layouts.column))
    return e.loadSplat(type, pointer, rowOffset, e.lanes());
  Value offset = e.add(rowOffset, columnOffset(access, column));
  Product stride = access.strides[layouts.column] * Product(layouts.columnStep);
  if (stride.is(1))
    return e.loadVector(type, pointer, offset, e.lanes(), mask);
  Value steps = e.mul(e.iota(e.lanes(), e.i64Type()), emitProduct(e, stride));
  return e.gather(type, pointer, e.add(steps, offset), mask);
}

void TileFinish::store(uint32_t value, const Access &access, Value rowOffset, Value column,
                       Value vector, Value mask) {
  dvt_type type = e.problem.value(value).type;
  Value pointer = e.pointerOf(value);
  if (layouts.column < 0)
    return e.storeVector(type, vector, pointer, rowOffset, mask);
  Value offset = e.add(rowOffset, columnOffset(access, column));
  Product stride = access.strides[layouts.column] * Product(layouts.columnStep);
  if (access.blockedDimension == layouts.column && mask) {
    // The padding of a blocked tensor is there and is zero.
    vector = e.select(mask, vector, e.constant(vector.getType(), 0));
    mask = {};
  }
  if (stride.is(1))
    return e.storeVector(type, vector, pointer, offset, mask);
  Value steps = e.mul(e.iota(e.lanes(), e.i64Type()), emitProduct(e, stride));
  e.scatter(type, vector, pointer, e.add(steps, offset), mask);
}

bool TileFinish::variesByColumnOnly(const Access &access) const {
  for (unsigned d = 0; d < access.strides.size(); ++d)
    if (int(d) != layouts.column && !access.isBroadcast(d))
      return false;
  return layouts.column >= 0;
}

void TileFinish::keepColumns(llvm::ArrayRef<Value> index, const Values &masks) {
  for (unsigned v = 0; v < masks.size(); ++v) {
    Value column = e.add(index[layouts.column], int64_t(v) * e.lanes() * layouts.columnStep);
    auto keep = [&](uint32_t value, const Access &access) {
      return variesByColumnOnly(access)
                 ? load(value, access, rowOffset(access, index), column, masks[v])
                 : Value();
    };
    Values ofVector{layouts.addend ? keep(layouts.addend->value, layouts.addend->access) : Value()};
    for (unsigned i = 0; i < fusion.leaves.size(); ++i)
      ofVector.push_back(keep(fusion.leaves[i], layouts.leaves[i]));
    kept.push_back(std::move(ofVector));
  }
}

void TileFinish::follow(llvm::ArrayRef<Value> index, const Values &sums, const Values &masks,
                        llvm::function_ref<void(unsigned v, Value column, ValueMap &values)> take) {
  Values leafRows;
  for (const Access &leaf : layouts.leaves)
    leafRows.push_back(rowOffset(leaf, index));
  Value addendRow;
  if (layouts.addend)
    addendRow = rowOffset(layouts.addend->access, index);
  for (unsigned v = 0; v < sums.size(); ++v) {
    Value column = layouts.column < 0
                       ? e.index(0)
                       : e.add(index[layouts.column], int64_t(v) * e.lanes() * layouts.columnStep);
    Value sum = sums[v];
    if (layouts.scale != 1)
      sum = e.mul(sum, e.f32(layouts.scale));
    if (layouts.addend) {
      Value term = kept.empty() ? Value() : kept[v][0];
      if (!term)
        term = load(layouts.addend->value, layouts.addend->access, addendRow, column, masks[v]);
      sum = layouts.addend->scale == 1 ? e.add(sum, term)
                                       : e.fma(term, e.f32(layouts.addend->scale), sum);
    }
    if (needRoundedOperands(e.problem, fusion.followers))
      sum = e.rounded(e.problem.value(fusion.result).type, sum);
    ValueMap values;
    values[fusion.result] = sum;
    for (unsigned i = 0; i < fusion.leaves.size(); ++i) {
      Value known = kept.empty() ? Value() : kept[v][i + 1];
      values[fusion.leaves[i]] =
          known ? known : load(fusion.leaves[i], layouts.leaves[i], leafRows[i], column, masks[v]);
    }
    emitPointwiseOps(e, fusion.followers, e.lanes(), values);
    take(v, column, values);
  }
}

void TileFinish::emit(llvm::ArrayRef<Value> index, const Values &sums, const Values &masks) {
  const dvt_problem &problem = e.problem.problem();
  Values outputRows;
  for (const Access &output : layouts.outputs)
    outputRows.push_back(rowOffset(output, index));
  follow(index, sums, masks, [&](unsigned v, Value column, ValueMap &values) {
    for (unsigned i = 0; i < problem.output_count; ++i)
      store(problem.outputs[i], layouts.outputs[i], outputRows[i], column,
            values[problem.outputs[i]], masks[v]);
  });
}

Values TileFinish::evaluate(llvm::ArrayRef<Value> index, const Values &sums, const Values &masks,
                            uint32_t value) {
  Values vectors;
  follow(index, sums, masks,
         [&](unsigned, Value, ValueMap &values) { vectors.push_back(e.splat(values[value])); });
  return vectors;
}

} // namespace dovetail::codegen
