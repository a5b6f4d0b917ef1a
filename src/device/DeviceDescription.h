// SPDX-License-Identifier: Apache-2.0
//
// What is known of a device without having one: peaks, sizes and limits, read from a JSON file per
// device that users may edit or replace. Schedules and estimates of kernels for the device follow
// it, and its text is a part of the target: another description is another target.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/Plugin.h"

namespace dovetail::device {

/// In JSON the fields have these names in snake case (`compute_units`, `warp_size`, ...).
struct DeviceDescription {
  std::string name;         ///< "NVIDIA H200", for people
  std::string api;          ///< "cuda" or "rocm"
  std::string architecture; ///< "sm_90", "gfx942"
  std::string source;       ///< where the numbers are from
  uint32_t computeUnits = 0;
  uint32_t warpSize = 0;
  double clockMegahertz = 0;
  /// Of arithmetic, 10^12 operations per second, a multiply-add counted as two: by element type
  /// ("f32", "f16", "bf16", "f64") and for matrix units by "<type>_matrix" ("tf32_matrix",
  /// "f16_matrix", "bf16_matrix", "i8_matrix"); dense.
  std::map<std::string, double> peakTeraops;
  double memoryGigabytesPerSecond = 0;
  uint64_t memoryBytes = 0;
  uint64_t l2Bytes = 0;
  uint32_t sharedBytesPerBlock = 0, sharedBytesPerUnit = 0;
  uint32_t registersPerUnit = 0; ///< of 32 bits
  uint32_t registersPerThread = 0;
  uint32_t threadsPerBlock = 0, threadsPerUnit = 0, blocksPerUnit = 0;
  double linkGigabytesPerSecond = 0; ///< to the host and back
  double transferMicros = 0;         ///< of a transfer without its bytes
  double launchMicros = 0;           ///< of a launch without its kernel
  std::string libraryProperties;     ///< for libraries that plan without a device: JSON or empty

  /// Of a file's text. `origin` names it in messages. BadInput where a field is missing, of another
  /// kind or out of range, or one is unknown.
  static Expected<DeviceDescription> parse(std::string_view text, const std::string &origin);
  static Expected<DeviceDescription> read(const std::string &path);
  /// What the target of a device carries.
  static Expected<DeviceDescription> of(const Target &target);
  static Expected<DeviceDescription> of(const dvt_target &target);

  /// On one line, fields sorted: equal descriptions have equal texts.
  std::string text() const;
  Target target() const;
  /// Of `peakTeraops`; 0 where it is not stated.
  double peak(std::string_view kind) const;
};

/// Descriptions in *.json of these folders, by file name. Of two for one api and architecture the
/// first counts. BadInput names a file that cannot be read.
Expected<std::vector<DeviceDescription>> readDescriptions(const std::vector<std::string> &folders);

/// The description for "cuda:sm_90" and the like; BadInput lists what is known.
Expected<DeviceDescription> findDescription(std::string_view target,
                                            const std::vector<std::string> &folders);

} // namespace dovetail::device
