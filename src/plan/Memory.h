// SPDX-License-Identifier: Apache-2.0
//
// Memory of a block with static extents: physical sizes, lifetimes over the steps, offsets in the arena.
#pragma once

#include "artifact/Plan.h"

namespace dovetail::plan {

/// Fills bytes of every static value, and, when all arena values and workspaces of the block are static, their
/// offsets and the arena's size. Does nothing to a block with symbolic extents but the sizes.
void assignMemory(PlanBlock &block);

} // namespace dovetail::plan
