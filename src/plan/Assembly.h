// SPDX-License-Identifier: Apache-2.0
//
// From a chosen cover to a plan: steps in order, conversions where they are paid for, views as
// aliases, memory by lifetime, fallbacks, and the report of what else was on offer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "plan/Cover.h"
#include "plan/Evaluations.h"
#include "plan/OpTable.h"
#include "plan/Regions.h"

namespace dovetail::plan {

/// What an option of the cover stands for.
struct OptionMeaning {
  enum class Kind : uint8_t { Kernel, LateBound, View, ShapeData, Control } kind = Kind::Kernel;
  uint32_t region = 0;          ///< Kernel, LateBound
  const Trial *trial = nullptr; ///< Kernel: what runs; LateBound: what runs where no library covers
  const Trial *library = nullptr; ///< LateBound: the library's trial at the representative extents
  uint32_t op = 0;                ///< View, Control
  uint32_t value = 0;             ///< ShapeData
  uint32_t layout = 0;            ///< View: the state that it takes and gives
};

/// What a state of the cover stands for, by its number: a layout, and in whose memory.
struct PlacedLayout {
  std::string layout;
  dvt_memory_kind memory = DVT_MEMORY_HOST;
  friend auto operator<=>(const PlacedLayout &, const PlacedLayout &) = default;
};

/// Another layout, other memory, or both.
struct ConversionMeaning {
  Problem problem;                        ///< of another layout
  const Evaluation *evaluation = nullptr; ///< nullptr: only estimated
  const Trial *trial = nullptr;           ///< of the evaluation
  bool reorders = true;                   ///< whether the layout changes
  double transferMicros = -1;             ///< where the memory changes
};

struct ChosenCover {
  const OpTable *table = nullptr;
  const std::vector<Region> *regions = nullptr;
  const std::vector<RegionProblem> *problems = nullptr; ///< one for each region
  const std::vector<const Evaluation *> *evaluations =
      nullptr; ///< one for each region; may be nullptr
  const std::vector<const Evaluation *> *onDevice = nullptr; ///< likewise
  const CoverProblem *cover = nullptr;
  const std::vector<OptionMeaning> *options = nullptr;
  const std::vector<ConversionMeaning> *conversions = nullptr;
  const std::vector<PlacedLayout> *layouts = nullptr; ///< of each layout number
  const CoverSolution *solution = nullptr;
  std::map<std::string, std::string> providers;
  bool weighsMemory = false; ///< a bound on memory took part
  const CostModel *costs = nullptr;
  PreparationPrice preparation;
  const std::vector<uint32_t> *equalProblems = nullptr; ///< of each region: how many pose its one
};

/// Of a measured trial that prepares slowly, in microseconds of each run. Devices' kernels are not
/// charged: what their context takes to come up is another matter.
double chargeFor(const Trial &trial, const PreparationPrice &price);

/// The best own kernel for when the library of `chosen` is gone; its layouts count by the
/// conversions that they need around it, and the reference comes last. Null where there is none.
const Trial *standIn(const Evaluation &evaluation, const Candidate &chosen, const Problem &problem,
                     const CostModel &costs, const std::function<bool(const Trial &)> &mayBeTaken);

/// One block, with the bodies of its control-flow steps still by their place in the table.
Expected<Plan> assemblePlan(const ChosenCover &chosen);

/// dvt_reorder of one value between two layouts.
Problem conversionProblem(const TableValue &value, const SymbolRanges &ranges,
                          const std::string &from, const std::string &to);

} // namespace dovetail::plan
