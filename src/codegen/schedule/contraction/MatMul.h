// SPDX-License-Identifier: Apache-2.0
//
// mat_mul and gemm in one form: for each batch, rows x k times k x columns, with strides that take
// up transposes and broadcasting. Where the right side is the same for all batches they join the
// rows. Also the decisions of a matmul schedule, read from its algorithm text.
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/Access.h"
#include "codegen/schedule/contraction/Fusion.h"
#include "codegen/schedule/contraction/RegisterTile.h"

namespace dovetail::codegen {

/// A term added to the sums before the followers: scale * value.
struct Addend {
  uint32_t value;
  Access access; ///< by dimensions of the output
  double scale = 1;
};

struct MatMul {
  Fusion fusion;
  std::vector<unsigned> batchDimensions; ///< of the output
  std::vector<unsigned>
      rowDimensions;        ///< of the output; its row number runs through them in row-major order
  int columnDimension = -1; ///< of the output; -1 where the right side is a vector
  Product rows;
  dvt_extent columns, depth;
  struct Side {
    uint32_t value;             ///< a problem input
    std::vector<Product> batch; ///< strides by batchDimensions
    Product row;                ///< stride of the row (left) or column (right)
    Product depth;
  };
  Side left, right;
  double scale = 1; ///< of the sums
  std::optional<Addend> addend;
  std::vector<Access> leaves; ///< as fusion.leaves
  Access output;

  /// Whether the right side can be packed before the first run.
  bool packsRight(const ProblemReader &problem) const;
  Product batches() const;
  bool oneRight() const; ///< the right side is the same for all batches

  /// Elements of a left side of 16-bit floats that a phase of its own widens into the workspace
  /// first; 0 where each tile widens what it reads.
  int64_t widenedLeft(const ProblemReader &problem) const;

  /// Nothing where the problem has no matrix product; an error with the reason where it cannot be
  /// served.
  static std::optional<Expected<MatMul>> find(const ProblemReader &problem,
                                              Fusion::Takes takes = Fusion::Takes::Floats);
};

/// Panels of `tile.vectors` vectors of columns, the last of which may be narrower. Packed, panel
/// after panel, each with `depth` rows of its columns: where columns are known to the compiler
/// exactly as wide as needed.
struct MatMulPlan {
  /// PackedNarrow: packed as the 16-bit floats that they are; Packed is f32.
  enum class Right { Packed, PackedNarrow, PackedOnRun, Direct };
  RegisterTile tile;
  int64_t blockRows = 1; ///< rows of a task, a multiple of tile.rows
  bool panelsOutside =
      false; ///< tasks that follow one another share a panel; otherwise they share rows
  Right right = Right::Direct;
  /// Where more than 1, a register tile takes columns of so many packed panels side by side, each
  /// `tile.vectors / streams` vectors wide: memory gives more to several streams than to one.
  unsigned streams = 1;

  unsigned panelVectors() const { return tile.vectors / streams; } ///< of a packed panel
  static MatMulPlan read(const Schedule &schedule);
  std::string text() const;
};

} // namespace dovetail::codegen
