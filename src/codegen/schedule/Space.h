// SPDX-License-Identifier: Apache-2.0
//
// Iteration spaces: the physical dimensions of a tensor in some layout, how operands that broadcast
// lie in them, and the fewest axes with which a loop nest can walk all operands. Made without MLIR
// from static and symbolic extents alike, so that propose, pack and emit see the same axes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/ProblemReader.h"
#include "support/Expected.h"
#include "support/Layout.h"

namespace dovetail::codegen {

/// One physical dimension: a logical one, its blocks, or the inside of a block.
struct SpaceDimension {
  uint32_t logical;
  int64_t block = 1;   ///< 1 where the logical dimension is not blocked
  bool inside = false; ///< within a block: extent is `block`; otherwise the number of blocks
};

/// Physical dimensions of a tensor of `rank` in `layout`, outermost first. Nothing for layouts with
/// several blocks of one dimension.
std::optional<std::vector<SpaceDimension>> physicalDimensions(const Layout &layout, uint32_t rank);

/// Adjacent physical dimensions that every operand walks as one.
struct Axis {
  std::vector<SpaceDimension> dimensions;
  int64_t extent = -1; ///< product where static
  double typical = 1;  ///< the same, or a guess where symbolic
  bool padded = false; ///< inside of a block whose logical extent may not fill it
};

/// A tensor seen from the space. It is dense in the order `order`.
struct SpaceOperand {
  uint32_t value = DVT_NO_VALUE;
  std::vector<bool> present;   ///< for each axis; false: the same element all along the axis
  std::vector<uint32_t> order; ///< the axes that are present, outermost in memory first
  /// For each axis: the tensor's own extent where that is the axis' or 1, as only the run tells.
  std::vector<std::optional<dvt_extent>> own;
  bool packed = false; ///< a constant that pack writes in the space's order, padding included
  std::vector<uint32_t> dimensions; ///< logical dimension of the space for each of the tensor's

  /// Axes whose extents multiply to the stride along `axis`; nothing where not present.
  std::vector<uint32_t> strideAxes(uint32_t axis) const;
  bool contiguousAlong(uint32_t axis) const {
    return present[axis] && order.back() == axis && !own[axis];
  }
};

class Space {
public:
  std::vector<dvt_extent> shape; ///< logical
  std::vector<Axis> axes;        ///< at least one
  std::vector<SpaceOperand> operands;
  /// Pairs of extents taken to be equal, which only the run tells.
  std::vector<std::pair<dvt_extent, dvt_extent>> takenAsEqual;
  /// Axes of the blocks and of their inside where the latter is padded, else -1.
  int padOuter = -1, padInner = -1;

  const SpaceOperand *find(uint32_t value) const;
};

struct SpaceRequest {
  std::vector<dvt_extent> shape;
  Layout layout;
  struct Tensor {
    uint32_t value;
    bool laidOut; ///< in the space's layout; else row-major
    bool pack;    ///< a constant that may be packed
    /// Logical dimension of the space for each of the tensor's; empty: the last ones.
    std::vector<uint32_t> dimensions = {};
  };
  std::vector<Tensor> tensors;
  bool merge = true; ///< neighbouring dimensions, where operands allow it
  /// What becomes of a tensor with an extent of which only the run tells whether it is 1 or the
  /// space's. The last needs a row-major space.
  enum class Unclear : uint8_t { Refused, TakenAsEqual, EqualOrOne } unclear = Unclear::Refused;
  std::vector<bool> kind; ///< of logical dimensions; those of different kinds (such as reduced or
                          ///< not) do not merge
};

/// BadInput, with the reason, where a tensor does not broadcast to the shape for certain.
Expected<Space> makeSpace(const ProblemReader &problem, const SpaceRequest &request);

/// Whether two extents of aligned dimensions may broadcast where that is not sure: one is a
/// symbol's.
bool perhapsBroadcasts(const dvt_extent &inner, const dvt_extent &outer);
/// Whether two extents of aligned dimensions surely broadcast: `inner` is 1 or equals `outer`.
bool surelyBroadcasts(const dvt_extent &inner, const dvt_extent &outer);
/// Shape of a value.
std::vector<dvt_extent> shapeOf(const dvt_value &value);
bool sameShape(const std::vector<dvt_extent> &a, const std::vector<dvt_extent> &b);
/// The static bytes of a packed operand; padding of blocks included. Nothing where not static.
std::optional<uint64_t> packedBytesOf(const Space &space, const SpaceOperand &operand,
                                      dvt_type type);
/// Writes a packed operand from its row-major bytes.
void packOperand(const Space &space, const SpaceOperand &operand, const dvt_value &value,
                 const void *from, void *to);
/// The same for a problem input, where the space has it packed.
void packInput(const Space &space, const ProblemReader &problem, uint32_t input, const void *from,
               void *to);

/// A split of the axes' iteration into tasks: one task for each index of the axes before `axis` and
/// each chunk of `axis`.
struct TaskSplit {
  uint32_t axis = 0;
  int64_t chunk = 1;
};
/// Tasks of about `grain` elements; chunks of the innermost axis are multiples of `innerStep`.
TaskSplit splitTasks(const std::vector<Axis> &axes, double grain, int64_t innerStep);

} // namespace dovetail::codegen
