// SPDX-License-Identifier: Apache-2.0
//
// Index maps: for each dimension of a value, its index as a linear function of the loop axes, and
// how ops that move elements turn the map of their result into that of their operand.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/schedule/ProblemReader.h"
#include "support/Expected.h"
#include "support/Extent.h"

namespace dovetail::codegen {

struct AffineIndex {
  std::vector<Extent> coefficients; ///< for each axis
  Extent constant;

  static AffineIndex none(size_t axes) { return {std::vector<Extent>(axes), Extent(0)}; }
  static AffineIndex axis(size_t axes, size_t number);
  /// The number of the only axis it depends on, with coefficient 1; -1 otherwise. The constant may
  /// be anything.
  int pureAxis() const;
  AffineIndex times(const Extent &factor) const;
  AffineIndex plus(const Extent &number) const;
  friend AffineIndex operator+(const AffineIndex &a, const AffineIndex &b);
  std::string text() const;
};

using IndexMap = std::vector<AffineIndex>;

/// The loop axes of maps. An op that needs an axis in two says so in `wanted` and fails; the
/// planner then starts again with the axis split.
class AxisSet {
public:
  std::vector<Extent> extents;
  struct Split {
    size_t axis;
    Extent outer, inner;
  };
  std::optional<Split> wanted;

  /// index = first * inner + second with 0 <= second < inner, where that is sure.
  std::optional<std::pair<AffineIndex, AffineIndex>> divide(const AffineIndex &index,
                                                            const Extent &inner) const;
  /// The same; where it cannot be and the index is one axis of extent outer * inner, asks to have
  /// that split.
  std::optional<std::pair<AffineIndex, AffineIndex>>
  divideOrSplit(const AffineIndex &index, const Extent &outer, const Extent &inner);
};

bool isAffineMovement(std::string_view name);
/// Map of operand 0 of `op`, given that of its result `output`. Not for concat, which has no single
/// operand.
Expected<IndexMap> operandMap(const ProblemReader &problem, const dvt_op &op, uint32_t output,
                              IndexMap map, AxisSet &axes);

} // namespace dovetail::codegen
