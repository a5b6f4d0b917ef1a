// SPDX-License-Identifier: Apache-2.0
//
// Checks every schedule that native has for a problem on each device. HostCheck.cpp has its code
// assembled or linked, and its host form run and compared with the reference provider;
// ../spirv/ShaderCheck.cpp takes it through SPIR-V instead, in a program of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "NativeCheck.h"
#include "support/DeviceKernel.h"

namespace dovetail::test {

struct DeviceCandidate {
  std::string architecture, algorithm, numerics;
  DeviceKernel kernel;
  std::string emitted; ///< its module before anything was made of it
};

/// Reports what is wrong as GoogleTest failures; at least one candidate is expected for each
/// architecture. The class of rounding of a kernel may widen the bounds (ClassBounds.h).
std::vector<DeviceCandidate> checkDevices(const std::string &problem,
                                          const CheckOptions &options = {});

/// Of one architecture, not run, what has `part` in its name; empty where native offers nothing.
std::vector<DeviceCandidate> compileForDevice(const Problem &problem,
                                              const std::string &architecture,
                                              const std::string &part = "");

/// One algorithm, whether native would offer it for the problem or not; reports where it does not
/// compile.
std::optional<DeviceCandidate> compileAlgorithm(const Problem &problem,
                                                const std::string &architecture,
                                                const std::string &algorithm);
/// Has the code taken by the device's tools, and compares what the host form computes.
void checkCandidate(const Problem &problem, const DeviceCandidate &candidate,
                    const CheckOptions &options);

/// What a launch hands to its entry, in the order of its arguments: addresses of the problem's
/// tensors or of the workspace, and extents.
std::vector<uint64_t> argumentsOf(const DeviceLaunch &launch,
                                  const std::vector<uint64_t> &addresses,
                                  const std::vector<std::vector<int64_t>> &extents,
                                  uint64_t workspace);

/// Runs a kernel's host form.
Status runHostForm(const DeviceKernel &kernel, const std::vector<dvt_tensor> &inputs,
                   const std::vector<dvt_tensor> &outputs);

inline const char *const kArchitectures[] = {"sm_80", "sm_90", "sm_100", "gfx90a", "gfx942"};

} // namespace dovetail::test
