// SPDX-License-Identifier: Apache-2.0
//
// The border between the caller's memory and the interpreter's tensors: strided memory, physical
// layouts, packed 4-bit elements and literals become dense row-major tensors, and back.
#pragma once

#include "Program.h"

namespace dovetail::reference {

/// A tensor over the caller's memory where that is dense and row-major, a copy otherwise.
/// `constant` takes the place of the operand's own memory where it is not nullptr.
Status bindInput(const Program &program, uint32_t input, const dvt_tensor &operand,
                 const void *constant, Tensor &tensor);
Tensor bindLiteral(const Value &value);
/// Writes a finished result to the caller's memory, or to what its call-back gives.
Status deliverOutput(const Program &program, uint32_t output, const dvt_run_args &args,
                     const Tensor &result);
/// Bad input where the caller expects other extents than those computed.
Status checkOutputExtents(const Program &program, uint32_t output, const dvt_tensor &operand,
                          const Extents &extents);

} // namespace dovetail::reference
