// SPDX-License-Identifier: Apache-2.0
//
// The cheapest cover whose kernels take no more than some memory: a pure function over data, as
// Cover.h. Memory is given a price, in microseconds for a byte, and the least price is sought whose
// cheapest cover fits (Lagrangian relaxation: Everett 1963). What a provider takes once in a
// process has no place in a price for each kernel; so the search is done for several choices of how
// much of it every provider may take: from as much as the bound lets in, what saves most time for
// its bytes first, down to nothing. A gap is left where no price gives the best cover; small
// problems are then put to the 0-1 program, with memory as one more row.
#pragma once

#include <map>

#include "plan/Cover.h"

namespace dovetail::plan {

/// Bytes of all options and conversions of a solution, shared ones once.
uint64_t memoryOf(const CoverProblem &problem, const CoverSolution &solution);

struct BoundedCover {
  CoverSolution solution; ///< its bound is that of covers of any memory
  uint64_t bytes = 0;     ///< memoryOf it
  int solves = 0;         ///< of relaxed problems it took
  bool fits = false;      ///< where none was found that does, it is one of little memory
  bool fromHint = false;  ///< only covers near the hint were looked at
};

using MemoryCaps = std::map<uint32_t, uint64_t>; ///< by key: what comes with a provider, at most

/// Where a search ended, and one of nearly the same problem may begin: near its price a few covers
/// are enough.
struct BoundHint {
  bool isKnown = false;
  double price = 0; ///< micros for a byte
  MemoryCaps caps;
  bool overrules = false;   ///< preferences have a price
  uint64_t lastResorts = 0; ///< of the cheapest cover of any memory
};

/// Covers found at prices of memory. A search takes from it what was found for the same problem and
/// limits, as within another bound, and gives the same answer as without.
struct PricedCovers {
  struct Key {
    double price = 0;
    MemoryCaps caps;
    bool isRelaxed = false, isQuick = false;
    friend auto operator<=>(const Key &, const Key &) = default;
  };
  CoverProblem problem;
  CoverLimits limits;
  std::map<Key, CoverSolution> covers;

  /// Forgets those of another problem.
  void begin(const CoverProblem &problem, const CoverLimits &limits);
};

/// Preferences give way to the bound where nothing they prefer fits, and where it would be
/// several times slower than without a bound; last resorts (the rest of `against`) are never taken
/// to save memory. Begins at `hint` where it knows something, searches all where nothing is found
/// near it, and leaves there where it ended. Internal error when no cover exists.
Expected<BoundedCover> solveCoverWithin(const CoverProblem &problem, const CoverLimits &limits,
                                        uint64_t mostBytes, BoundHint *hint = nullptr,
                                        PricedCovers *known = nullptr);

} // namespace dovetail::plan
