// SPDX-License-Identifier: Apache-2.0
//
// Integers that a problem divides by. Kernels take one for zero, so that the processor does not
// trap; that there is no zero is checked before they run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/ProblemReader.h"

namespace dovetail::codegen {

/// Positions of the problem's inputs none of whose integers may be zero. `refusal` is filled where
/// nothing could check a divisor: it is computed inside the problem, or is a literal with a zero.
std::vector<uint32_t> divisorInputs(const ProblemReader &problem, std::string *refusal = nullptr);

/// Index of the first zero among `count` integers of the type; nothing where there is none.
std::optional<int64_t> findZero(dvt_type type, const void *integers, int64_t count);

} // namespace dovetail::codegen
