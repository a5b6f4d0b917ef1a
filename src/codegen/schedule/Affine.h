// SPDX-License-Identifier: Apache-2.0
//
// Schedules of ops that move elements by affine index maps (transpose, slice, split, expand, tile,
// reshape, concat, depth to space, changes of layout), mixed with element-wise ops. An output
// element is a function of operand elements whose positions are linear in the output's position, so
// the whole region is one loop nest over strided operands. Where an operand is contiguous along
// another axis than the output, tiles are transposed in registers.
#pragma once

#include <vector>

#include "codegen/schedule/Expression.h"
#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/Space.h"
#include "support/Extent.h"

namespace dovetail::codegen {

/// A tensor walked by the loops: the element at axis indices i is offset + sum of i[k] *
/// strides[k].
struct AffineOperand {
  uint32_t value; ///< problem input, output or literal
  Extent offset;
  std::vector<Extent> strides; ///< for each axis, in elements
};

/// Where blocks are padded: the position along the blocked dimension, linear in the axes.
struct AffineGuard {
  std::vector<int64_t> coefficients; ///< for each axis; all zero where nothing is padded
  std::optional<Extent> loadLimit,
      storeLimit; ///< positions from here on are not read (zero), not written
};

struct AffinePhase {
  std::vector<Extent> axes; ///< extents, in the order of the loops; at least one
  std::vector<double> typical;
  Expression expression; ///< Leaf nodes: `value` counts operands
  std::vector<AffineOperand> operands;
  struct Output {
    AffineOperand target;
    NodeId node;
  };
  std::vector<Output> outputs;
  AffineGuard guard;
  uint32_t vectorAxis = 0; ///< along which outputs are contiguous
  int tileAxis = -1;       ///< along which some operands are; -1: no tiles
  TaskSplit split;
};

/// BadInput, with the reason, where some op or map is not affine.
Expected<std::vector<AffinePhase>> planAffine(const ProblemReader &problem, const Machine &machine,
                                              const std::vector<std::string> &inputLayouts,
                                              const std::vector<std::string> &outputLayouts);

/// Whether emitted code can compute an extent: it is a static number, an extent of an input or
/// output, or made of symbols that are.
bool isKnownAtRun(const ProblemReader &problem, const Extent &extent);
Extent extentFrom(const dvt_extent &extent);

} // namespace dovetail::codegen
