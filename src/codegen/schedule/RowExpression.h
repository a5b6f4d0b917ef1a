// SPDX-License-Identifier: Apache-2.0
//
// Writes reductions and normalisations as primitives and reductions over rows.
#pragma once

#include "codegen/schedule/Expression.h"

namespace dovetail::codegen {

/// Adds the nodes of a reduction or normalisation whose operands are known to the expression or
/// become leaves.
Status addRowOp(Expression &expression, const ProblemReader &problem, const dvt_op &op);

} // namespace dovetail::codegen
