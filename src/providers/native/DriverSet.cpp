// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "providers/native/DriverSet.h"

#include <cstddef>

namespace dovetail::native {

DriverSet::DriverSet(const dvt_host *host) {
  constexpr size_t end = offsetof(dvt_host, device_drivers) + sizeof(host->device_drivers);
  if (host && host->struct_size >= end && host->device_drivers)
    paths = host->device_drivers;
}

Expected<std::shared_ptr<device::DeviceDriver>> DriverSet::of(const std::string &api) {
  std::lock_guard lock(mutex);
  std::shared_ptr<device::DeviceDriver> &driver = drivers[api];
  if (!driver) {
    auto opened = device::DeviceDriver::open(api, device::DeviceDriver::pathFor(paths, api));
    if (!opened)
      return opened.takeError();
    driver = std::move(*opened);
  }
  return driver;
}

} // namespace dovetail::native
