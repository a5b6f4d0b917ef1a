// SPDX-License-Identifier: Apache-2.0
//
// What the target's description says of a device's speed, and times estimated from it where nothing
// can be measured. Shared by providers of libraries for devices.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "providers/TeamSizes.h"

namespace dovetail::providers {

struct DevicePeaks {
  /// By type and unit: "f32", "f16_matrix"; 10^12 operations per second.
  std::map<std::string, double> teraops;
  double memoryGigabytesPerSecond = 0, launchMicros = 0;

  /// Nothing with `reason` where `description` (of dvt_target) is missing or no JSON object.
  static std::optional<DevicePeaks> read(const char *description, std::string &reason);

  bool has(const std::string &unit) const { return teraops.count(unit) > 0; }
  /// The larger of arithmetic and memory traffic at the rates that kernels reach of the peaks,
  /// without a launch; negative where the description lacks a peak.
  double busyMicros(const RoughWork &work, const std::string &unit) const;
};

} // namespace dovetail::providers
