// SPDX-License-Identifier: Apache-2.0
//
// Finds the values of a table that are extents in disguise: small integer tensors whose elements
// the shape rules know. They need no kernels; the runtime's shape program writes them where
// something wants them as data.
#pragma once

#include "plan/OpTable.h"

namespace dovetail::plan {

/// Marks shape data and drops ops that nothing else needs. Users are linked anew.
void findShapeData(OpTable &table);

/// Drops ops that neither a result nor another op needs. Users are linked anew.
void dropDeadOps(OpTable &table);

} // namespace dovetail::plan
