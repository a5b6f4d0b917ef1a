// SPDX-License-Identifier: Apache-2.0
//
// Results that come to lie in the memory of an operand that dies. Before the choice a region's
// problem says which operand each of its outputs may share memory with, so that only kernels that
// cope are on offer; once the steps stand in order, every output whose operand is read for the last
// time takes its memory over. Permission and use are apart because only the order of the steps
// tells what dies where.
#pragma once

#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "plan/OpTable.h"
#include "plan/Regions.h"

namespace dovetail::plan {

/// Whether kernels of the region may reasonably work in place: element-wise and row-wise units
/// only. Contractions and movement would be asked, and measured, in vain.
bool suitsInPlace(const OpTable &table, const Region &region);

/// States in the problem, for each output, an operand whose memory it may share: an activation of
/// the same type and extents that no later op reads. False where none suits.
bool allowInPlace(const OpTable &table, const Region &region, RegionProblem &problem);

/// Sets PlanValue::inPlaceOf where it is legal (see PlanCheck.cpp). `problems` are texts, by
/// number. To be called when the steps are complete and before memory is placed.
void takeOverDyingOperands(PlanBlock &block, const std::vector<std::string> &problems);

} // namespace dovetail::plan
