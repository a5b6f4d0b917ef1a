// SPDX-License-Identifier: Apache-2.0
//
// Copies the part of an image that a convolution task reads into the worker's scratch memory, with
// zeros where windows leave the image: block of channels, row, column, channel of the block. All
// layouts and element types of the image end in this one form, in f32. Bytes are copied as words of
// four channels, and what lies outside of the image is the zero point.
#pragma once

#include "codegen/Emitter.h"
#include "codegen/schedule/contraction/Convolution.h"

namespace dovetail::codegen {

class PatchEmission {
public:
  PatchEmission(Emitter &e, const Convolution &conv, const ConvolutionPlan &plan,
                const ConvolutionSizes &sizes)
      : e(e), conv(conv), plan(plan), sizes(sizes), type(e.problem.value(conv.input).type),
        bytes(elementBytes(type)) {}

  /// Positions [firstRow, endRow) x [firstColumn, endColumn) of a group of an image.
  struct Chunk {
    Value image, group, firstRow, endRow, firstColumn, endColumn;
  };
  void copy(const Chunk &chunk);

  /// For an image of bytes, which `conv` sees as words of four channels. Copied bytes gain 128
  /// where they are signed.
  struct Bytes {
    int64_t channels; ///< of a group; the last word may be filled up
    bool isSigned;
    Value fill; ///< a word of zero points, 128 gained
  };
  void takeBytes(const Bytes &given) {
    words = given;
    type = patchType = DVT_I32;
    bytes = 4;
  }

private:
  /// Pixels [from, to) of a patch row lie in the image; pixel p is image column p + shift.
  struct Row {
    Value block, imageRow, shift, from, to, destination;
  };
  void copyRow(const Chunk &chunk, const Row &row);
  void copyBlocked(const Chunk &chunk, const Row &row);
  void copyChannelsLast(const Chunk &chunk, const Row &row);
  void copyPlainSquares(const Chunk &chunk, const Row &row);
  void copyPlainFew(const Chunk &chunk, const Row &row);
  void copyBytes(const Chunk &chunk, const Row &row);
  Value loadImage(Value pointer, Value offset, Value mask = {});
  void clear(Value from, Value to, Value destination);

  Emitter &e;
  const Convolution &conv;
  const ConvolutionPlan &plan;
  const ConvolutionSizes &sizes;
  dvt_type type; ///< of the image
  unsigned bytes;
  dvt_type patchType = DVT_F32;
  std::optional<Bytes> words;
};

} // namespace dovetail::codegen
