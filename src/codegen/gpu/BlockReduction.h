// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a block on a device have found, each for itself, made into one.
#pragma once

#include "codegen/Emitter.h"

namespace dovetail::codegen {

/// Combines the scalars `own` of all `threads` threads, a power of two, in a fixed order; every
/// thread gets the result. All threads of the block must come here.
Values combineInBlock(Emitter &e, uint32_t threads, const Values &own,
                      llvm::function_ref<Values(const Values &, const Values &)> combine);

} // namespace dovetail::codegen
