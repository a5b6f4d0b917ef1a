// SPDX-License-Identifier: Apache-2.0
//
// Schedules of fused element-wise ops. All tensors of the space's rank share one layout; constants
// are packed to fit it. Outputs of different shapes are made by separate phases.
#pragma once

#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/Space.h"

namespace dovetail::codegen {

/// When a phase runs. Where operands have extents of which only the run tells whether they are the
/// result's or 1, there are two phases: one takes them to be equal, the other serves all.
enum class PointwiseCase : uint8_t { Always, WhereExtentsAreEqual, WhereSomeAreNot };

struct PointwisePhase {
  std::vector<uint32_t> outputs; ///< problem values of one shape
  std::vector<uint32_t> ops;     ///< those the outputs need, in order
  Space space;
  TaskSplit split;
  PointwiseCase when = PointwiseCase::Always;
};

/// The phases in the given layout: "" or one that fits the rank of all outputs. BadInput with a
/// reason.
Expected<std::vector<PointwisePhase>> planPointwise(const ProblemReader &problem,
                                                    const Machine &machine, const Layout &layout);

/// Layouts of images that native kernels offer beside row-major, for a rank.
std::vector<std::string> imageLayouts(uint32_t rank, const Machine &machine);
/// Those in which all outputs of a problem may be: none where one has no channels.
std::vector<std::string> imageLayouts(const ProblemReader &problem, const Machine &machine);

} // namespace dovetail::codegen
