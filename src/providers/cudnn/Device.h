// SPDX-License-Identifier: Apache-2.0
//
// What the target's description says of a device: its properties as the library wants them, and the
// peaks from which times are estimated where nothing can be measured.
#pragma once

#include <optional>
#include <string>

#include "providers/DevicePeaks.h"
#include "providers/cudnn/Engines.h"

namespace dovetail::cudnn {

struct Device {
  std::string properties; ///< JSON, for deviceProperties()
  providers::DevicePeaks peaks;

  /// Nothing with `reason` where the description lacks what is needed.
  static std::optional<Device> read(const char *description, std::string &reason);

  /// By the peaks; negative where the description lacks one. `rank` is the engine's place in the
  /// library's own order, which stands for the differences between engines that no peak tells.
  double estimateMicros(const providers::RoughWork &work, const Engine &engine, size_t rank) const;
};

} // namespace dovetail::cudnn
