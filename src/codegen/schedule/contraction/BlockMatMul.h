// SPDX-License-Identifier: Apache-2.0
//
// Matrix products whose right side is constant and quantised to 4 or 8 bits: in blocks along the
// depth, by column, or as a whole. The numbers stay packed in memory and are widened in registers,
// so that a product of few rows moves an eighth or a quarter of the bytes; sums are f32. For many
// rows each task widens a panel of columns once, into its scratch memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/MatMul.h"

namespace dovetail::codegen {

/// One of scales and zero points: a number for all, or a constant with strides by column and block.
struct BlockParameter {
  double all = 0;
  std::optional<uint32_t> value; ///< a problem input or a literal
  int64_t column = 0, block = 0; ///< strides in elements
};

struct BlockMatMul {
  MatMul product;
  unsigned bits = 4;     ///< of a weight
  bool isSigned = false; ///< of the weights as given
  int64_t block = 1;     ///< of the depth under one scale
  BlockParameter scale;
  dvt_type scaleType = DVT_F32;
  BlockParameter zero;    ///< of the weights' type
  int64_t depth, columns; ///< of the right side

  int64_t blocks() const { return (depth + block - 1) / block; }
  /// Packed weights are signed: what is subtracted from unsigned ones.
  int64_t centre() const { return isSigned ? 0 : int64_t(1) << (bits - 1); }

  /// Nothing where the problem has no matrix product of dequantised constants; an error with the
  /// reason where it cannot be served.
  static std::optional<Expected<BlockMatMul>> find(const ProblemReader &problem);
};

/// Packed, panel after panel of `vectors` vectors of columns, block after block: of each column the
/// same number of places. Places of 4 bits are groups of eight depths in a word for each column,
/// the first depth lowest; those of 8 bits are bytes. Scales are f32 and zero points i8, less the
/// centre: panel after panel, block after block, a number for each column.
struct BlockMatMulPlan {
  unsigned vectors = 4;  ///< of a panel
  int64_t blockRows = 0; ///< rows of a task; 0: all

  static constexpr unsigned kFoldedRows = 3; ///< up to these, scales are applied to sums of a block
  static constexpr unsigned kWidenedRows = 8; ///< from here on, tasks widen their panel first

  static BlockMatMulPlan read(const Schedule &schedule);
  std::string text() const;
};

/// Sizes that follow from problem, plan and vector width, in elements unless said otherwise.
struct BlockMatMulSizes {
  int64_t lanes, width, panels;
  int64_t placesPerBlock; ///< words of a full block and column, or bytes
  int64_t placesOfLast;   ///< of the last block
  int64_t placesPerColumn;
  int64_t placeBytes; ///< 4 for words, 1 for bytes

  BlockMatMulSizes(const BlockMatMul &m, const BlockMatMulPlan &plan, const Machine &machine);
  int64_t weightBytes() const { return panels * width * placesPerColumn * placeBytes; }
};

/// Depths in a word of packed 4-bit weights.
constexpr int64_t kDepthsPerWord = 8;

/// Packed forms of what a problem gives, where the emitted code expects them.
void packBlockWeights(const BlockMatMul &m, const BlockMatMulPlan &plan, const Machine &machine,
                      const void *weights, void *packed);
void packBlockScales(const BlockMatMul &m, const BlockMatMulPlan &plan, const Machine &machine,
                     const void *scales, void *packed);
void packBlockZeros(const BlockMatMul &m, const BlockMatMulPlan &plan, const Machine &machine,
                    const void *zeros, void *packed);

} // namespace dovetail::codegen
