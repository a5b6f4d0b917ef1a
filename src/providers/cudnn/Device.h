// SPDX-License-Identifier: Apache-2.0
//
// What the target's description says of a device: its properties as the library wants them, and the
// peaks from which times are estimated where nothing can be measured.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "providers/TeamSizes.h"
#include "providers/cudnn/Engines.h"

namespace dovetail::cudnn {

struct Device {
  std::string properties;                    ///< JSON, for deviceProperties()
  std::map<std::string, double> peakTeraops; ///< by type and unit: "f32", "f16_matrix"
  double memoryGigabytesPerSecond = 0, launchMicros = 0;

  /// Nothing with `reason` where the description lacks what is needed.
  static std::optional<Device> read(const char *description, std::string &reason);

  /// The larger of arithmetic and memory traffic at the rates that kernels reach of the peaks, and
  /// a launch; negative where the description lacks a peak. `rank` is the engine's place in the
  /// library's own order, which stands for the differences between engines that no peak tells.
  double estimateMicros(const providers::RoughWork &work, const Engine &engine, size_t rank) const;
};

} // namespace dovetail::cudnn
