// SPDX-License-Identifier: Apache-2.0
//
// The cheapest cover whose kernels take no more than some memory: a pure function over data, as
// Cover.h. Memory is given a price, in microseconds for a byte, and the least price is sought whose
// cheapest cover fits (Lagrangian relaxation: Everett 1963). What a provider takes once in a
// process has no place in a price for each kernel; so the search is done for each choice of how
// much of it every provider may take. A gap is left where no price gives the best cover; small
// problems are then put to the 0-1 program, with memory as one more row.
#pragma once

#include "plan/Cover.h"

namespace dovetail::plan {

/// Bytes of all options and conversions of a solution, shared ones once.
uint64_t memoryOf(const CoverProblem &problem, const CoverSolution &solution);

struct BoundedCover {
  CoverSolution solution; ///< its bound is that of covers of any memory
  uint64_t bytes = 0;     ///< memoryOf it
  int solves = 0;         ///< of relaxed problems it took
  bool fits = false;      ///< where none was found that does, it is one of little memory
};

/// Preferences give way to the bound where nothing they prefer fits, last resorts (the rest of
/// `against`) are never taken to save memory. Internal error when no cover exists.
Expected<BoundedCover> solveCoverWithin(const CoverProblem &problem, const CoverLimits &limits,
                                        uint64_t mostBytes);

} // namespace dovetail::plan
