// SPDX-License-Identifier: Apache-2.0
//
// Which values of a block need arena memory, for which steps, and where they lie. Lifetimes follow
// from the steps; aliases lengthen the life of the value they show.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifact/Plan.h"
#include "support/Layout.h"

namespace dovetail {

struct BlockPlacement {
  std::vector<uint64_t> valueOffsets;     ///< one for each value; 0 where it is not in the arena
  std::vector<uint64_t> workspaceOffsets; ///< one for each step
  uint64_t arenaBytes = 0, deviceArenaBytes = 0;
};

/// For each value the one whose memory it shows: itself, or the end of its chain of aliases. Chains
/// must end.
std::vector<uint32_t> aliasRoots(const PlanBlock &block);

/// For each value the one whose buffer it lies in: its root, or that of the operand which the root
/// is computed in place of, and so on. Such chains must end, too.
std::vector<uint32_t> bufferRoots(const PlanBlock &block);

/// The last step that reads a value or what shows its memory, by alias root; the number of steps
/// for block outputs, 0 where nothing reads it.
std::vector<uint32_t> lastReads(const PlanBlock &block);

/// Steps, inclusive, during which each buffer of the arena is in use, by the value that it begins
/// with; {1, 0} for all other values. A block output lives until one past the last step.
struct Lifetime {
  uint32_t first = 1, last = 0;
};
std::vector<Lifetime> arenaLifetimes(const PlanBlock &block);

/// Of everything in the device's arena.
constexpr uint64_t kDeviceAlignment = 256;

/// Places all arena values and workspaces, given their sizes in bytes, each in the arena of its
/// memory.
BlockPlacement placeBlock(const PlanBlock &block, const std::vector<uint64_t> &valueBytes,
                          const std::vector<uint64_t> &workspaceBytes);

/// Bytes of a tensor under a layout, padding included; nothing where that is no sensible number.
std::optional<uint64_t> checkedBytes(dvt_type type, const std::vector<int64_t> &extents,
                                     const Layout &layout);

/// Whether a tensor with strides (in elements), whose first element is `offset` bytes into memory
/// of `bytes`, stays inside it.
bool staysInside(dvt_type type, const std::vector<int64_t> &extents,
                 const std::vector<int64_t> &strides, uint64_t offset, uint64_t bytes);

/// Bytes of a value under its layout, padding included; 0 while an extent is symbolic.
uint64_t physicalBytes(const PlanValue &value);

/// For a block whose extents are all static: fills in sizes, offsets and the arena's size.
void placeStaticBlock(PlanBlock &block);

} // namespace dovetail
