// SPDX-License-Identifier: Apache-2.0
//
// Schedules of ops whose operand positions are computed while running: gather, padding, resizing,
// triangles, and the affine movements beside them, with element-wise ops. Each output element pulls
// what it needs through the ops; where the position does not change along the vector, whole vectors
// are read.
#pragma once

#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/Space.h"

namespace dovetail::codegen {

struct MovePhase {
  std::vector<uint32_t> outputs; ///< problem values of one shape
  Space space;                   ///< not merged; operands are the outputs
  TaskSplit split;
};

struct MovePlan {
  Layout layout; ///< of outputs and of operands with channels
  std::vector<MovePhase> phases;
};

Expected<MovePlan> planMove(const ProblemReader &problem, const Machine &machine,
                            const Layout &layout);

/// Whether a value of the problem is in the layout of the schedule.
bool isLaidOut(const ProblemReader &problem, uint32_t value, uint32_t rank);

/// Operands that must be literals, read; the schedule has checked that they are there.
struct PadAmounts {
  std::vector<int64_t> before, after; ///< for each dimension
};
Expected<PadAmounts> readPads(const ProblemReader &problem, const dvt_op &op);

struct ResizeScales {
  std::vector<double> scales; ///< for each dimension; 0: the ratio of extents
};
Expected<ResizeScales> readScales(const ProblemReader &problem, const dvt_op &op);

struct SliceBounds {
  std::vector<int64_t> starts, steps; ///< for each dimension; starts within static extents
};
Expected<SliceBounds> readSlice(const ProblemReader &problem, const dvt_op &op);

} // namespace dovetail::codegen
