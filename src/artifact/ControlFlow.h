// SPDX-License-Identifier: Apache-2.0
//
// Steps that run other blocks of a plan: how their operands are divided among condition, carried,
// scanned and captured values, and what such steps and the blocks that they run must satisfy. What
// Plan.h states for If, Loop and Scan is spelled out here once, for the check of plans and for the
// runtime.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "support/Expected.h"

namespace dovetail {

bool isControlFlow(StepKind kind);

/// Counts of a control-flow step's operands and results by their part, in the order in which they
/// stand. All but `stacked` and `results` are operands.
struct BodyBorder {
  uint32_t leading = 0; ///< condition of an If; trip count and condition of a Loop
  uint32_t carried = 0, scanned = 0, captured = 0;
  uint32_t stacked =
      0; ///< results of a Loop or Scan made of all iterations, behind the carried ones
  uint32_t results = 0; ///< all
};

/// BadInput where the counts contradict each other.
Expected<BodyBorder> borderOf(const PlanStep &step);

/// A control-flow step of `block` against the bodies that it names. Values' numbers, types and
/// layouts were checked before.
Status checkControlFlow(const Plan &plan, const PlanBlock &block, const PlanStep &step);

/// For each block the one whose step runs it, itself for block 0. BadInput unless the blocks are a
/// tree of bounded depth with block 0 at its root, every body behind the block around it.
Expected<std::vector<uint32_t>> outerBlocks(const Plan &plan);

/// Symbols that a block, or a body inside it, uses and does not find out itself: it has them from
/// the blocks around it. The plan's blocks are a tree.
std::set<std::string> inheritedSymbols(const Plan &plan, uint32_t block);

} // namespace dovetail
