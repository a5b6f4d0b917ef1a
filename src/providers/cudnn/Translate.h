// SPDX-License-Identifier: Apache-2.0
//
// From a problem to graphs of cuDNN's operations. Every op becomes one or a few operations; which
// graphs have a kernel is the library's to say. Transposes and reshapes in front and at the end
// only change how memory is looked at.
#pragma once

#include <string>
#include <vector>

#include "providers/cudnn/Graph.h"

namespace dovetail::cudnn {

/// One graph for each layout worth having: channels last and row-major for problems on images and
/// for element-wise ones of four dimensions, row-major for others. Always the same for the same
/// problem. Empty with `reason` where an op, a type or a shape has no counterpart.
std::vector<Graph> translate(const providers::ProblemReader &problem, std::string &reason);

} // namespace dovetail::cudnn
