// SPDX-License-Identifier: Apache-2.0
//
// An iteration space in a kernel: extents of axes, pointers and strides of operands, decoding of
// task numbers. Static extents become constants.
#pragma once

#include <vector>

#include "codegen/Emitter.h"
#include "codegen/schedule/Space.h"

namespace dovetail::codegen {

/// Lanes for vectors along an axis of this extent (-1: not known): as many as there are, but not
/// many more than it fills.
unsigned lanesAlong(int64_t extent, const Machine &machine);

class SpaceEmission {
public:
  SpaceEmission(Emitter &emitter, const Space &space);

  const Space &space;
  Value extent(uint32_t axis);
  /// Whether all extents that the space takes to be equal are; null where it takes none so.
  Value extentsAreEqual();
  /// Elements from one index of the axis to the next; 0 where the operand is not present along it.
  Value stride(uint32_t operand, uint32_t axis);
  Value pointer(uint32_t operand);
  dvt_type type(uint32_t operand) const;
  /// Element offset at the given indices of the axes [0, count).
  Value offset(uint32_t operand, llvm::ArrayRef<Value> indices, uint32_t count);
  /// `lanes` elements along the last axis from index `i` on; a splat where the operand is not
  /// present along it. `base` is the offset of the axes before.
  Value loadAlongLast(uint32_t operand, Value base, Value i, unsigned lanes, Value mask);

  /// Number of tasks, and what a task stands for: indices of the axes before split.axis, and the
  /// part [from, to) of that axis. The split counts within `axes`, which may be empty: then there
  /// is one task, of everything.
  Value taskCount(const TaskSplit &split, llvm::ArrayRef<uint32_t> axes);
  struct Task {
    std::vector<Value> indices; ///< for each axis of the space; null where not known
    Value from, to;
  };
  Task decode(const TaskSplit &split, llvm::ArrayRef<uint32_t> axes, Value task);
  std::vector<uint32_t> allAxes() const;

  /// Mask of the lanes from `inner` on that are not padding in block `outer`; null where nothing is
  /// padded.
  Value padMask(llvm::ArrayRef<Value> indices, Value inner, unsigned lanes);

private:
  Value ownExtent(uint32_t operand, uint32_t axis);
  Value dimensionExtent(const SpaceDimension &dimension);
  Emitter &e;
  std::vector<Value> extents, pointers;
};

} // namespace dovetail::codegen
