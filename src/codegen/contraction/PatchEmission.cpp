// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/contraction/PatchEmission.h"

namespace dovetail::codegen {

void PatchEmission::copy(const Chunk &chunk) {
  const Convolution::Window &y = conv.rows, &x = conv.columns;
  auto reach = [&](Value first, Value end, const Convolution::Window &window) {
    return e.add(e.mul(e.sub(e.sub(end, first), 1), window.inStep()),
                 window.lastInput() - window.firstInput() + 1);
  };
  Value rows = reach(chunk.firstRow, chunk.endRow, y),
        columns = reach(chunk.firstColumn, chunk.endColumn, x);
  Value top = e.add(e.mul(chunk.firstRow, y.inStep()), y.firstInput());
  Value shift = e.add(e.mul(chunk.firstColumn, x.inStep()), x.firstInput());
  Value inRows = e.extentOf(conv.inRows), inColumns = e.extentOf(conv.inColumns);
  Value from = e.minimum(e.maximum(e.sub(e.index(0), shift), 0), columns);
  Value to = e.maximum(e.minimum(e.sub(inColumns, shift), columns), from);
  int64_t blocks = sizes.fullBlocks + (sizes.restChannels ? 1 : 0);
  e.loop(e.index(0), e.index(blocks), 1, [&](Value block) {
    e.loop(e.index(0), rows, 1, [&](Value patchRow) {
      Row row;
      row.block = block;
      row.imageRow = e.add(top, patchRow);
      row.shift = shift;
      Value place =
          e.add(e.mul(block, sizes.patchBlock), e.mul(patchRow, sizes.patchColumns * sizes.pitch));
      row.destination = e.advance(e.workerScratch(), place, 4);
      if (!y.padBegin && !y.padEnd && !y.transposed) {
        row.from = from;
        row.to = to;
      } else {
        Value inside = e.bitAnd(e.ge(row.imageRow, e.index(0)), e.lt(row.imageRow, inRows));
        row.from = e.select(inside, from, e.index(0));
        row.to = e.select(inside, to, e.index(0));
      }
      // Copying may run over to the right; clearing comes after.
      copyRow(chunk, row);
      clear(e.index(0), row.from, row.destination);
      clear(row.to, columns, row.destination);
    });
  });
}

void PatchEmission::clear(Value from, Value to, Value destination) {
  if (!conv.isPadded())
    return;
  Value zero = words ? e.splat(words->fill) : e.constant(e.f32Vector(), 0);
  if (sizes.pitch == sizes.lanes)
    e.loop(from, to, 1,
           [&](Value p) { e.storeVector(patchType, zero, destination, e.mul(p, sizes.pitch)); });
  else
    e.vectorLoop(
        e.mul(from, sizes.pitch), e.mul(to, sizes.pitch), sizes.lanes, 1,
        [&](Value i, Value mask) { e.storeVector(patchType, zero, destination, i, mask); });
}

Value PatchEmission::loadImage(Value pointer, Value offset, Value mask) {
  Value vector = e.loadVector(type, pointer, offset, sizes.lanes, mask);
  if (words && words->isSigned)
    vector = e.bitXor(vector, e.integerConstant(vector.getType(), int32_t(0x80808080)));
  return vector;
}

void PatchEmission::copyRow(const Chunk &chunk, const Row &row) {
  if (words && (plan.in == ImageLayout::Plain || words->channels % 4))
    return copyBytes(chunk, row);
  switch (plan.in) {
  case ImageLayout::Blocked:
    return copyBlocked(chunk, row);
  case ImageLayout::ChannelsLast:
    return copyChannelsLast(chunk, row);
  case ImageLayout::Plain:
    return sizes.pitch == sizes.lanes ? copyPlainSquares(chunk, row) : copyPlainFew(chunk, row);
  }
}

void PatchEmission::copyBlocked(const Chunk &chunk, const Row &row) {
  int64_t channels = conv.groups * conv.inPerGroup;
  int64_t blocks = (channels + sizes.lanes - 1) / sizes.lanes;
  Value inRows = e.extentOf(conv.inRows), inColumns = e.extentOf(conv.inColumns);
  Value block = e.add(e.mul(chunk.group, conv.inPerGroup / sizes.lanes), row.block);
  Value line = e.add(e.mul(e.add(e.mul(chunk.image, blocks), block), inRows), row.imageRow);
  Value source = e.advance(e.pointerOf(conv.input),
                           e.mul(e.add(e.mul(line, inColumns), row.shift), sizes.lanes), bytes);
  e.loop(row.from, row.to, 1, [&](Value p) {
    Value at = e.mul(p, sizes.lanes);
    e.storeVector(DVT_F32, e.loadVector(type, source, at, sizes.lanes), row.destination, at);
  });
}

void PatchEmission::copyChannelsLast(const Chunk &chunk, const Row &row) {
  int64_t channels = conv.groups * conv.inPerGroup;
  Value inRows = e.extentOf(conv.inRows), inColumns = e.extentOf(conv.inColumns);
  Value line = e.add(e.mul(chunk.image, inRows), row.imageRow);
  Value first = e.add(e.mul(chunk.group, conv.inPerGroup), e.mul(row.block, sizes.channelBlock));
  Value source =
      e.advance(e.pointerOf(conv.input),
                e.add(e.mul(e.add(e.mul(line, inColumns), row.shift), channels), first), bytes);
  Value mask;
  if (sizes.pitch < sizes.lanes)
    mask = e.tailMask(e.index(sizes.pitch));
  else if (sizes.restChannels)
    mask = e.tailMask(e.sub(e.index(conv.inPerGroup), e.mul(row.block, sizes.channelBlock)));
  Value storeMask = sizes.pitch < sizes.lanes ? mask : Value();
  e.loop(row.from, row.to, 1, [&](Value p) {
    Value vector = loadImage(source, e.mul(p, channels), mask);
    e.storeVector(patchType, vector, row.destination, e.mul(p, sizes.pitch), storeMask);
  });
}

/// Squares of pixels x channels are turned in registers.
void PatchEmission::copyPlainSquares(const Chunk &chunk, const Row &row) {
  int64_t channels = conv.groups * conv.inPerGroup, lanes = sizes.lanes;
  Value inRows = e.extentOf(conv.inRows), inColumns = e.extentOf(conv.inColumns);
  Value area = e.mul(inRows, inColumns);
  Value base = e.advance(
      e.pointerOf(conv.input),
      e.add(e.mul(e.add(e.mul(chunk.image, channels), e.mul(chunk.group, conv.inPerGroup)), area),
            e.add(e.mul(row.imageRow, inColumns), row.shift)),
      bytes);
  Value first = e.mul(row.block, lanes);
  Values lines;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value channel = e.add(first, lane);
    if (sizes.restChannels) // channels past the end are copied but not read
      channel = e.minimum(channel, conv.inPerGroup - 1);
    lines.push_back(e.mul(channel, area));
  }
  e.vectorLoop(row.from, row.to, unsigned(lanes), 1, [&](Value p, Value mask) {
    Values square;
    for (int64_t lane = 0; lane < lanes; ++lane)
      square.push_back(
          e.loadVector(type, base, e.add(lines[size_t(lane)], p), unsigned(lanes), mask));
    square = e.transpose(square);
    for (int64_t lane = 0; lane < lanes; ++lane)
      e.storeVector(DVT_F32, square[size_t(lane)], row.destination, e.mul(e.add(p, lane), lanes));
  });
}

void PatchEmission::copyPlainFew(const Chunk &chunk, const Row &row) {
  int64_t channels = conv.groups * conv.inPerGroup;
  Value inRows = e.extentOf(conv.inRows), inColumns = e.extentOf(conv.inColumns);
  e.loop(e.index(0), e.index(conv.inPerGroup), 1, [&](Value channel) {
    Value plane =
        e.add(e.mul(chunk.image, channels), e.add(e.mul(chunk.group, conv.inPerGroup), channel));
    Value line = e.add(e.mul(plane, inRows), row.imageRow);
    Value source =
        e.advance(e.pointerOf(conv.input), e.add(e.mul(line, inColumns), row.shift), bytes);
    e.loop(row.from, row.to, 1, [&](Value p) {
      e.store(DVT_F32, e.load(type, source, p), row.destination,
              e.add(e.mul(p, sizes.pitch), channel));
    });
  });
}

/// Words of bytes that do not lie together in the image. Plain images are read a vector of pixels
/// at a time.
void PatchEmission::copyBytes(const Chunk &chunk, const Row &row) {
  int64_t channels = conv.groups * words->channels;
  bool plain = plan.in == ImageLayout::Plain;
  Value inRows = e.extentOf(conv.inRows), inColumns = e.extentOf(conv.inColumns);
  Value area = e.mul(inRows, inColumns);
  Value channelStride = plain ? area : e.index(1), pixel = e.index(plain ? 1 : channels);
  Value line = e.add(e.mul(row.imageRow, inColumns), row.shift);
  Value start = e.add(e.mul(chunk.image, e.mul(area, channels)), e.mul(line, pixel));
  Value source = e.advance(e.pointerOf(conv.input), start, 1);
  int64_t flip = words->isSigned ? 0x80 : 0;
  Value first = e.mul(row.block, sizes.channelBlock);
  Value count = e.minimum(e.sub(e.index(conv.inPerGroup), first), sizes.channelBlock);
  e.loop(e.index(0), count, 1, [&](Value word) {
    Value channel = e.mul(e.add(first, word), 4);
    Value base = e.add(e.mul(chunk.group, words->channels), channel);
    auto gather = [&](unsigned lanes, llvm::function_ref<Value(Value)> load) {
      mlir::Type vector = e.i32Type();
      if (lanes > 1)
        vector = e.vectorOf(vector, lanes);
      Value result = e.integerConstant(vector, 0);
      for (int64_t i = 0; i < 4; ++i) {
        Value isThere = e.lt(e.add(channel, i), e.index(words->channels));
        Value mask = e.integerConstant(e.i32Type(), int64_t(0xff) << 8 * i);
        Value filled = e.bitAnd(words->fill, mask);
        if (lanes > 1)
          filled = e.splat(filled, lanes);
        // Channels past the last one repeat it, for nothing.
        Value wanted = e.minimum(e.add(base, i), channels - 1);
        Value byte = load(e.mul(wanted, channelStride));
        byte = e.bitXor(byte, e.integerConstant(vector, flip));
        byte = e.shiftLeft(byte, e.integerConstant(vector, 8 * i));
        result =
            e.bitOr(result, e.select(lanes > 1 ? e.splat(isThere, lanes) : isThere, byte, filled));
      }
      return result;
    };
    auto put = [&](Value p) { return e.add(e.mul(p, sizes.pitch), word); };
    if (!plain)
      return e.loop(row.from, row.to, 1, [&](Value p) {
        Value result = gather(1, [&](Value offset) {
          return e.load(DVT_U8, source, e.add(e.mul(p, channels), offset));
        });
        e.store(DVT_I32, result, row.destination, put(p));
      });
    e.vectorLoop(row.from, row.to, unsigned(sizes.lanes), 1, [&](Value p, Value mask) {
      Value result = gather(unsigned(sizes.lanes), [&](Value offset) {
        return e.loadVector(DVT_U8, source, e.add(offset, p), unsigned(sizes.lanes), mask);
      });
      if (sizes.pitch == 1)
        return e.storeVector(DVT_I32, result, row.destination, p, mask);
      Value places = e.mul(e.iota(unsigned(sizes.lanes), e.i64Type()), e.index(sizes.pitch));
      e.scatter(DVT_I32, result, row.destination, e.add(places, put(p)), mask);
    });
  });
}

} // namespace dovetail::codegen
