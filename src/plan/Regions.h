// SPDX-License-Identifier: Apache-2.0
//
// Regions: convex sets of ops that may run as one kernel. They overlap on purpose: a fused region
// and its pieces are all on offer, and a cheap producer may be computed again in several of them.
// Which are formed depends on op roles (and, for depthwise convolutions with a pointwise one
// behind, on their windows), never on what some provider can do: providers refuse what they cannot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/OpTable.h"

namespace dovetail::plan {

/// One named op of a region: a primitive op or a composite.
struct Unit {
  bool composite = false;
  uint32_t index = 0; ///< into OpTable::ops or ::composites
  friend auto operator<=>(const Unit &, const Unit &) = default;
};

struct Region {
  std::vector<Unit> units;       ///< in an order in which they can be evaluated
  std::vector<uint32_t> ops;     ///< primitive ops covered, ascending
  std::vector<uint32_t> inputs;  ///< values from outside: constants included, absent ones not
  std::vector<uint32_t> outputs; ///< values that it gives
};

struct RegionLimits {
  unsigned maxPointwise = 12; ///< pointwise units in one region
  unsigned maxInputs = 12;
  unsigned maxRecomputed = 2; ///< ops in one region whose results others get elsewhere
  unsigned maxRegionsPerAnchor = 10;
};

/// All regions of a table, in a fixed order, each once. Every op that is not a view or shape data
/// is covered by a region of its own.
std::vector<Region> formRegions(const OpTable &table, const RegionLimits &limits = {});

/// The region as a canonical problem. `operands` and `results` give the table's value for each
/// problem input and output. Integer constants of up to 64 elements, single elements and uniform
/// constants become literals, but for scales and zero points that kernels treat alike.
struct RegionProblem {
  Problem problem;
  std::vector<uint32_t> operands, results;
};
RegionProblem makeProblem(const OpTable &table, const Region &region);

/// "Conv_0, Relu_1" for people.
std::string nodeNames(const OpTable &table, const Region &region);

} // namespace dovetail::plan
