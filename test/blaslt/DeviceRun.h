// SPDX-License-Identifier: Apache-2.0
//
// Runs candidates for a device on the simulated one: operands in device memory, in the candidate's
// layouts, each in a block of its own, so that the device notices whatever is touched beside them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "PlainTruth.h"
#include "device/SimulatedDriver.h"
#include "support/Plugin.h"

namespace dovetail::test {

/// The target that the tree describes: "cuda:sm_90".
Target describedTarget(const std::string &name);

/// A problem, operands for it, and what it must give.
class DeviceCase {
public:
  DeviceCase(const std::string &text, unsigned seed = 7);
  const Problem &problem() const { return parsed; }
  const std::vector<PlainTensor> &truth() const { return results; }

private:
  friend class DeviceKernel;
  Problem parsed;
  std::vector<std::vector<uint8_t>> inputs; ///< row-major, in the problem's order
  std::vector<PlainTensor> results;
};

/// A prepared candidate with its operands on the device.
class DeviceKernel {
public:
  /// Where it is refused, code() and message() say why.
  DeviceKernel(std::shared_ptr<device::Device> device, const Provider &provider,
               const Target &target, const DeviceCase &given, const Candidate &candidate);
  /// The same with other kernel bytes than those of compile.
  DeviceKernel(std::shared_ptr<device::Device> device, const Provider &provider,
               const Target &target, const DeviceCase &given, const Candidate &candidate,
               std::vector<uint8_t> bytes);
  ~DeviceKernel();
  DeviceKernel(const DeviceKernel &) = delete;

  dvt_code code() const { return prepareCode; }
  const std::string &message() const { return prepareMessage; }
  uint64_t workspaceBytes() const;

  struct Options {
    /// Operands of another case of the same problem.
    const DeviceCase *operands = nullptr;
    /// The result has the memory of this input.
    int shares = -1;
    bool freesOperandsFirst = false;
  };
  /// Largest error over the largest true magnitude; negative where the run failed.
  double run(const Options &options, std::string &failure) const;
  double run(std::string &failure) const { return run({}, failure); }

private:
  std::shared_ptr<device::Device> device;
  const Provider &provider;
  const DeviceCase &given;
  Candidate candidate;
  std::vector<uint8_t> bytes;
  dvt_kernel *kernel = nullptr;
  dvt_code prepareCode = DVT_OK;
  std::string prepareMessage;
};

} // namespace dovetail::test
