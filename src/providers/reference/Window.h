// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows of convolutions and pools: attributes of ONNX in, pads and output extents for the
// operand at hand out. auto_pad is resolved here where the graph could not, because extents are
// known only at run time.
#pragma once

#include "Indexing.h"

namespace dovetail::reference {

struct Window {
  Extents input, kernel, strides, dilations, before, after; ///< one for each spatial dimension
  Extents output;
  size_t rank() const { return kernel.size(); }
  /// First input position under the window at output position `at`; may lie in the padding.
  int64_t start(size_t dimension, int64_t at) const {
    return at * strides[dimension] - before[dimension];
  }
};

/// `input`: spatial extents; `kernel`: extents of the window. Reads strides, dilations, pads,
/// auto_pad and ceil_mode. A pool's window may be larger than its image by less than a stride; then
/// it has one place, on what there is of the image.
enum class Slider { Convolution, Pool };
Status planWindow(const Invocation &op, const Extents &input, const Extents &kernel, Slider slider,
                  Window &window);
/// As the forward window, but the one whose input is the transposed convolution's result. `output`
/// of it is the operand's extents; `input` is the result's.
Status planTransposedWindow(const Invocation &op, const Extents &operand, const Extents &kernel,
                            Window &window);
/// Extents from dimension 2 on.
Extents spatialOf(const Extents &extents);

} // namespace dovetail::reference
