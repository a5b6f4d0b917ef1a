// SPDX-License-Identifier: Apache-2.0
//
// What both drivers share: a description from what a driver says, and errors in its words.
#pragma once

#include "device/DeviceDriver.h"

namespace dovetail::device {

/// Simulated drivers export a function of this name, with which images of kernels for this
/// processor are loaded: (module, image, bytes) -> code.
inline constexpr const char *kHostKernelLoader = "dvtSimulatedModuleLoad";

/// As the driver gives it, in its units; 0 where it says nothing.
struct ReadDescription {
  std::string name;
  uint64_t computeUnits = 0, warpSize = 0, clockKilohertz = 0, memoryClockKilohertz = 0,
           memoryBusBits = 0, memoryBytes = 0, l2Bytes = 0, sharedBytesPerBlock = 0,
           sharedBytesPerUnit = 0, registersPerUnit = 0, threadsPerBlock = 0, threadsPerUnit = 0,
           blocksPerUnit = 0;
};

/// Fills in from `like` what the driver does not say.
DeviceDescription describeFrom(const ReadDescription &read, const std::string &architecture,
                               const DeviceDescription &like, const std::string &driver);

/// `code` is that of a call; both drivers number the usual ones alike.
Error driverFailure(int code, const std::string &call, const char *name, const char *text);

} // namespace dovetail::device
