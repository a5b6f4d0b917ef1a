// SPDX-License-Identifier: Apache-2.0
//
// f16 and bf16 to f32 and back, for kernels that compute in f32 what the door hands over in 16
// bits. Elements are converted in the order of memory, whatever their layout is.
#pragma once

#include <cstdint>

#include "dovetail/provider.h"

namespace dovetail::onednn {

/// Whether the processor that `target` describes, and this build, convert f16 by instructions.
bool convertsHalves(const dvt_target &target);

/// `threads` share the work where it is worth it.
void widenElements(dvt_type type, const void *from, float *to, int64_t count, uint32_t threads);
/// To the nearest, ties to even.
void narrowElements(dvt_type type, const float *from, void *to, int64_t count, uint32_t threads);

} // namespace dovetail::onednn
