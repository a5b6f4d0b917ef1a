// SPDX-License-Identifier: Apache-2.0
//
// DeviceDriver over CUDA's driver API (libcuda.so.1).
#pragma once

#include "device/DeviceDriver.h"

namespace dovetail::device {

/// As DeviceDriver::open.
Expected<std::shared_ptr<DeviceDriver>> openCudaDriver(const std::string &path);

} // namespace dovetail::device
