// SPDX-License-Identifier: Apache-2.0
//
// Runs a Program: binds the caller's operands, computes op after op with temporaries between them,
// and hands the results over in the form the caller asked for.
#pragma once

#include "Program.h"

namespace dovetail::reference {

/// `constants` holds bytes for each problem input given at prepare, or nullptr. Bad input where the
/// operands do not fit the problem; then outputs hold no result.
Status interpret(const Program &program, const std::vector<const void *> &constants,
                 const dvt_run_args &args);

} // namespace dovetail::reference
