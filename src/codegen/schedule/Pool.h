// SPDX-License-Identifier: Apache-2.0
//
// Schedules of max_pool and average_pool over one to three spatial dimensions, followed by
// element-wise ops, in row-major and image layouts. Vectors lie along the last physical dimension
// of the output.
#pragma once

#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/Space.h"

namespace dovetail::codegen {

struct PoolPlan {
  uint32_t source = 0, pooled = 0; ///< problem values: operand and result of the pool
  bool average = false, countPadding = false;
  struct Window {
    int64_t size, stride, dilation, before, after; ///< before, after: padding
    /// Padding follows from the extents at run time: as much as makes ceil(extent / stride) places,
    /// the larger half of it after (Upper) or before (Lower) the image.
    enum class Same { No, Upper, Lower } same = Same::No;
  };
  std::vector<Window> windows;    ///< for each spatial dimension
  std::vector<uint32_t> epilogue; ///< ops after the pool
  Layout layout;
  Space space; ///< of the result; operands are those of the epilogue, then the outputs
  TaskSplit split;
};

/// BadInput, with the reason, where the ops are not a pool with element-wise ops after it.
Expected<PoolPlan> planPool(const ProblemReader &problem, const Machine &machine,
                            const Layout &layout);

} // namespace dovetail::codegen
