// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting one way: an operand is spread over others and must not widen them.
#pragma once

#include "graph/shapes/InferContext.h"

namespace dovetail::graph {

/// Operand `i` broadcasts to `shape` without changing it; where only the run can tell, that becomes
/// a requirement.
Status needBroadcastTo(InferContext &c, size_t i, const Shape &shape);

} // namespace dovetail::graph
