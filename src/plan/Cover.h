// SPDX-License-Identifier: Apache-2.0
//
// The choice for the whole model as a minimum-cost cover, and nothing else: a pure function over
// data. Every needed value exists in every layout in which a chosen option wants it, produced at
// least once; a conversion is paid once however many use it. As a 0-1 program with x for options, c
// for conversions (v: a -> b):
//   minimise   sum cost x + sum cost c
//   outputs    sum of what gives (v, row-major) >= 1
//   once       for each value: sum of options that give it <= 1 (inside other regions it may be
//   computed again) needs      for options O that give the same value and need a state s: sum of
//   what gives s >= sum of x over O sources    for each conversion from a: sum of options that give
//   (v, a) >= c
// Options may depend on each other in a circle, though each alone is convex; such answers are cut
// off and solved again. Most models are solved by dynamic programming (CoverFrontier.cpp), the
// others by HiGHS with limits that do not depend on time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/Expected.h"

namespace dovetail::plan {

/// A value in a layout. Layout 0 is row-major.
struct LayoutState {
  uint32_t value = 0;
  uint32_t layout = 0;
  friend auto operator<=>(const LayoutState &, const LayoutState &) = default;
};

/// Memory that all options and conversions of a key have together: as much as the largest takes.
struct SharedBytes {
  static constexpr uint32_t kNobody = UINT32_MAX;
  uint32_t key = kNobody;
  uint64_t bytes = 0;
  friend bool operator==(const SharedBytes &, const SharedBytes &) = default;
};

/// What an option or a conversion takes beside the memory of values.
struct CoverMemory {
  uint64_t bytes = 0;  ///< its own, such as packed constants
  SharedBytes code;    ///< of equal kernels
  SharedBytes process; ///< what comes with the first kernel of a provider
  friend bool operator==(const CoverMemory &, const CoverMemory &) = default;
};

struct CoverOption {
  double cost = 0; ///< micros
  std::vector<LayoutState> needs, gives;
  /// What counts before all cost: of two covers the one with less of it is better, whatever it
  /// costs. Preferences and last resorts are told in it.
  uint32_t against = 0;
  uint32_t preference = 0; ///< the part of `against` that a bound on memory may overrule
  CoverMemory memory = {};
  double charged = 0; ///< the part of `cost` that no run takes: for preparing slowly
  friend bool operator==(const CoverOption &, const CoverOption &) = default;
};

struct CoverConversion {
  uint32_t value = 0, from = 0, to = 0;
  double cost = 0;
  CoverMemory memory = {};
  double charged = 0; ///< as of an option
  friend bool operator==(const CoverConversion &, const CoverConversion &) = default;
};

struct CoverProblem {
  std::vector<LayoutState> available; ///< given from outside
  std::vector<LayoutState> required;
  std::vector<CoverOption> options;
  std::vector<CoverConversion> conversions;
  /// Rank of each value in an order in which they can be computed; empty: their numbers.
  std::vector<uint32_t> ranks;
  friend bool operator==(const CoverProblem &, const CoverProblem &) = default;
};

struct CoverSolution {
  std::vector<uint32_t> options;     ///< in an order in which they can run
  std::vector<uint32_t> conversions; ///< ascending
  double cost = 0;
  uint64_t against = 0;
  double bound = 0; ///< no cover as little against costs less; equal to cost when proven optimal
  bool exact = false;
};

struct CoverLimits {
  int64_t maxNodes = 500;     ///< of branch and bound, per solve
  double relativeGap = 1e-7;  ///< distance from the bound that is good enough
  size_t maxStates = 16384;   ///< of the frontier at one value
  size_t relaxedStates = 600; ///< of the relaxed problem that bounds what the rest costs
  bool beyondFrontier = true; ///< more states there are: ask HiGHS, too, which may take minutes
  friend bool operator==(const CoverLimits &, const CoverLimits &) = default;
};

/// Internal error when no cover exists (some required value has no producer).
Expected<CoverSolution> solveCover(const CoverProblem &problem, const CoverLimits &limits = {});
/// The 0-1 program, to the gap or the node limit.
Expected<CoverSolution> solveCoverByProgram(const CoverProblem &problem, const CoverLimits &limits);
/// The same among covers of at most `mostBytes` of memory, from one of them where it is given;
/// nothing where it finds no other that is as good.
std::optional<CoverSolution> solveWithinByProgram(const CoverProblem &problem,
                                                  const CoverLimits &limits, uint64_t mostBytes,
                                                  const CoverSolution *start);
/// By dynamic programming over the frontier, to the gap. Not exact where the frontier had more
/// states than are allowed; nothing where the values have no order in which every option has what
/// it needs before what it gives, or where the answer has a circle.
std::optional<CoverSolution> solveCoverByFrontier(const CoverProblem &problem,
                                                  const CoverLimits &limits = {});
/// The starting answer: cheapest producer of every needed state, shared costs split among users.
Expected<CoverSolution> solveCoverGreedily(const CoverProblem &problem);

/// Order in which the options can run; nothing where they depend on each other in a circle, then
/// `circle` names options of one.
bool orderCover(const CoverProblem &problem, CoverSolution &solution,
                std::vector<uint32_t> *circle);

} // namespace dovetail::plan
