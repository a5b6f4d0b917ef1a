// SPDX-License-Identifier: Apache-2.0
//
// Decisions of a depthwise convolution: one input channel for each output channel. Channels run
// along vectors and a tile is some columns of one output row; where images are plain, columns run
// along vectors instead.
#pragma once

#include "codegen/schedule/contraction/Convolution.h"

namespace dovetail::codegen {

struct DepthwisePlan {
  ImageLayout layout = ImageLayout::Blocked; ///< of image and outputs
  int64_t tile = 1;      ///< output columns in registers (vectors of them where plain)
  int64_t blocks = 1;    ///< blocks of channels in registers, where they lie side by side
  int64_t chunkRows = 1; ///< output rows of a task

  static DepthwisePlan read(const Schedule &schedule);
  std::string text() const;
};

/// A plan for images of `layout` but for its chunks.
DepthwisePlan chooseDepthwiseTile(const Convolution &conv, const Machine &machine,
                                  ImageLayout layout);

/// Output columns [first, end) whose windows lie within an image of `columns` columns, of
/// `outColumns` in all.
struct InnerColumns {
  int64_t first, end;
};
InnerColumns innerColumns(const Convolution::Window &window, int64_t columns, int64_t outColumns);

} // namespace dovetail::codegen
