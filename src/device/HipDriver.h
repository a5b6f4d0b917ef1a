// SPDX-License-Identifier: Apache-2.0
//
// DeviceDriver over HIP's runtime (libamdhip64.so).
#pragma once

#include "device/DeviceDriver.h"

namespace dovetail::device {

/// As DeviceDriver::open.
Expected<std::shared_ptr<DeviceDriver>> openHipDriver(const std::string &path);

} // namespace dovetail::device
