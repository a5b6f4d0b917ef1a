// SPDX-License-Identifier: Apache-2.0
//
// The drivers that a provider's kernels are loaded by: those that the runtime opens, too, as the
// system's loader gives both the same library.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/DeviceDriver.h"
#include "dovetail/provider.h"

namespace dovetail::native {

class DriverSet {
public:
  /// `host` may be null or older than drivers.
  explicit DriverSet(const dvt_host *host);
  /// That of "cuda" or "rocm", opened at first. Several threads may ask.
  Expected<std::shared_ptr<device::DeviceDriver>> of(const std::string &api);

private:
  std::string paths; ///< as dvt_host.device_drivers
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<device::DeviceDriver>> drivers; ///< by api, once opened
};

} // namespace dovetail::native
