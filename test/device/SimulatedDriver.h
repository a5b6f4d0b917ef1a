// SPDX-License-Identifier: Apache-2.0
//
// The drivers of the simulated device, and images for it, for tests.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "device/Device.h"
#include "support/File.h"

namespace dovetail::device {

inline std::string simulatedPath(const std::string &api) {
  return std::string(DOVETAIL_BINARY_DIR "/lib/dovetail-test/") +
         (api == "cuda" ? "libcuda-sim.so" : "libamdhip64-sim.so");
}

inline std::shared_ptr<Device> openSimulated(const std::string &api) {
  auto driver = DeviceDriver::open(api, simulatedPath(api));
  EXPECT_TRUE(driver) << driver.error().message;
  if (!driver)
    return nullptr;
  auto device = Device::open(*driver, 0);
  EXPECT_TRUE(device) << device.error().message;
  return device ? *device : nullptr;
}

/// Of test/device/kernels.
inline std::string plainKernels() {
  auto bytes = readFile(DOVETAIL_BINARY_DIR "/test/kernels/plain.so");
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes ? *bytes : std::string();
}

/// As count() of test/device/simulated/Simulation.h.
uint64_t simulatedCount(const std::string &api, const char *what);

} // namespace dovetail::device
