// SPDX-License-Identifier: Apache-2.0
//
// What preparing kernels takes when a plan is loaded, packing not counted, and its price in the
// choice of a plan: a kernel that is a little faster is not worth a load that takes much longer.
#pragma once

#include <cstdint>

#include "artifact/Plan.h"

namespace dovetail {

/// Inferences that a load serves share what preparing a kernel takes beyond what is free.
struct PreparationPrice {
  /// Making a primitive or mapping code takes 0.1 to 3 ms: so much is free for each kernel. It
  /// differs by less than this from run to run.
  static constexpr double kFreeMillis = 5;
  /// Processes that live for few inferences are those that feel loading. Shared by so many, 70 ms
  /// weigh 0.3 ms.
  static constexpr double kUsualRuns = 200;
  double runs = kUsualRuns; ///< 0: nothing is charged

  /// In microseconds of each inference, for a kernel that prepares in `millis`; negative: unknown.
  double of(double millis) const {
    return runs > 0 && millis > kFreeMillis ? 1000 * (millis - kFreeMillis) / runs : 0;
  }
};

struct PlanPreparation {
  double millis = 0;        ///< of all kernels that are known, one after the other
  double chargedMicros = 0; ///< to each inference
  uint32_t kernels = 0;     ///< that differ: steps of equal problems share what is prepared
  uint32_t unknown = 0;     ///< of them
};

/// Of the processor's kernels, from the plan's reports and at its number of runs. What is bound at
/// run time is not in it.
PlanPreparation preparationOf(const Plan &plan);

} // namespace dovetail
