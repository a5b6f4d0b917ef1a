// SPDX-License-Identifier: Apache-2.0
#include "graph/shapes/Broadcasts.h"

namespace dovetail::graph {

Status needBroadcastTo(InferContext &c, size_t i, const Shape &shape) {
  const Shape &from = c.shape(i);
  bool fits = from.size() <= shape.size();
  for (size_t d = from.size(); fits && d-- > 0;) {
    const Extent &wide = shape[shape.size() - from.size() + d];
    Expected<Extent> joint = c.broadcast(wide, from[d]);
    fits = joint && !(wide == Extent(1) && from[d].isStatic() && from[d] != wide);
    if (!fits)
      break;
    // Of two that broadcast to one another the operand's is no larger, unless there is nothing.
    if (Status status = c.needAtLeast(wide, from[d] * c.least(wide, 1),
                                      fmt::format("what operand {} is spread over", i));
        !status)
      return status;
  }
  return fits ? Status::success()
              : Status(c.fail("operand {} has the extents {}, which cannot be broadcast to {}", i,
                              shapeText(from), shapeText(shape)));
}

} // namespace dovetail::graph
