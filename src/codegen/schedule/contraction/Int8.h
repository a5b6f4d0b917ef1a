// SPDX-License-Identifier: Apache-2.0
//
// Contractions of bytes in one form: convolutions and products whose operands come dequantised, or
// as the integer ops take them. Sums are exact i32 of unsigned bytes on the left times signed bytes
// on the right, words of four along the channels: signed left sides gain 128, unsigned right sides
// lose it, and zero points move along. Four bytes being as wide as an f32, a convolution of words
// is cut and walked as one of floats; a product is one of a single row, whose pixels are its rows.
#pragma once

#include <optional>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/Convolution.h"
#include "codegen/schedule/contraction/MatMul.h"

namespace dovetail::codegen {

struct Int8 {
  /// An operand or the result: (value - zero) * scale. Scales and zero points are problem inputs or
  /// literals.
  struct Grid {
    uint32_t value = DVT_NO_VALUE;
    bool isSigned = false;
    std::optional<uint32_t> scale, zero;
    bool isCentred = true; ///< the zero point is what packed bytes have for it, known to be 0
    bool scaleByColumn = false, zeroByColumn = false;
  };
  enum class Result {
    Real,       ///< f32, scaled
    Integer,    ///< i32
    Requantised ///< bytes, by the grid `to`
  };

  Convolution words; ///< of words of four channels; `fusion` is the whole problem's
  std::optional<MatMul> product;
  Grid left, right, to;
  Result result = Result::Real;
  int64_t channels = 0; ///< of a group, or the depth

  const Fusion &fusion() const { return words.fusion; }
  /// Rows of a product whose depth is no whole number of words have to be copied first.
  bool mustCopyLeft() const { return product && channels % 4 != 0; }
  /// Words of a row of a product's left side in the workspace, and of all rows.
  int64_t copiedRowWords() const { return words.inPerGroup; }
  Product copiedLeftWords() const;
  int64_t depthWords() const { return words.inPerGroup * words.rows.size * words.columns.size; }

  /// Nothing where the problem has no contraction of bytes; an error with the reason where it
  /// cannot be served.
  static std::optional<Expected<Int8>> find(const ProblemReader &problem);
};

/// A convolution's plan, what becomes of a product's left side, and (in the text) whether the
/// machine's instructions for bytes are used.
struct Int8Plan {
  ConvolutionPlan tiles;
  /// Rows of the left side are copied to the workspace first, filled up and as unsigned bytes.
  bool copiesLeft = false;
  /// Signed bytes are made unsigned ones each time that a tile reads them.
  bool flips(const Int8 &m) const { return m.left.isSigned && tiles.direct && !copiesLeft; }
  static Int8Plan read(const Schedule &schedule);
  std::string text(const Machine &machine) const;
};

/// Packed weights: words as packConvolution places floats; then, group after group, for each column
/// up to whole vectors, the sum of its bytes; then a vector of words that flip signed bytes.
struct Int8Sizes : ConvolutionSizes {
  int64_t sumsOffset, flipOffset; ///< in words
  int64_t rowSums;                ///< words of scratch behind the tile
  Int8Sizes(const Int8 &m, const Int8Plan &plan, const Machine &machine);
  uint64_t packedBytes() const { return 4 * uint64_t(flipOffset + lanes); }
  uint64_t allScratchBytes() const { return scratchBytes() + 4 * uint64_t(rowSums); }
};

} // namespace dovetail::codegen
