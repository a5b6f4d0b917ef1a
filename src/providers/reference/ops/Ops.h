// SPDX-License-Identifier: Apache-2.0
//
// Declares the kernels of Ops.inc, and the few functions that kernels of different files share.
#pragma once

#include "../Indexing.h"
#include "../Invocation.h"

namespace dovetail::reference::ops {

#define REFERENCE_OP(name, kernel, ...) Status kernel(Invocation &);
#include "../Ops.inc"
#undef REFERENCE_OP

/// Result 0 with the bytes of operand 0 and other extents.
Status copyAs(Invocation &op, const Extents &extents);
/// softmax (or its logarithm) of `length` elements `stride` apart.
void softmaxInPlace(double *values, int64_t length, int64_t stride, bool logarithm);

} // namespace dovetail::reference::ops
