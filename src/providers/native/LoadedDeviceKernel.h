// SPDX-License-Identifier: Apache-2.0
//
// A device kernel ready to run: its module on the device, its entries found. Running gives all
// launches to the host's stream, in order, and returns; it may happen in several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/Machine.h"
#include "device/DeviceDriver.h"
#include "dovetail/provider.h"
#include "providers/native/TensorShapes.h"
#include "support/DeviceKernel.h"

namespace dovetail::native {

class LoadedDeviceKernel {
public:
  /// Of the images in the kernel's bytes the first that the driver takes: machine code for the
  /// machine's architecture before text that the driver assembles, and on a simulated device the
  /// host form. The device is current for the calling thread, here and when the kernel goes. The
  /// problem is needed during the call only. BadInput for bytes that are no device kernel for this
  /// problem and architecture; else what the driver says.
  static Expected<std::unique_ptr<LoadedDeviceKernel>>
  load(const codegen::ProblemReader &problem, const codegen::Machine &machine,
       std::shared_ptr<device::DeviceDriver> driver, const dvt_prepare_args &args);
  ~LoadedDeviceKernel();
  LoadedDeviceKernel(const LoadedDeviceKernel &) = delete;

  uint64_t workspaceBytes() const { return workspace; }
  dvt_code run(const dvt_run_args &args, dvt_error *error) const;

private:
  struct Launch {
    DeviceLaunch launch;
    device::FunctionHandle function;
    std::optional<int64_t> blocks; ///< where no extent of a run decides
    int64_t mostBlocks;            ///< that the device takes
  };

  LoadedDeviceKernel(const codegen::ProblemReader &problem,
                     std::shared_ptr<device::DeviceDriver> driver)
      : shapes(problem), driver(std::move(driver)) {}
  Status loadModule(const DeviceKernel &kernel, const char *architecture);
  Status addLaunch(DeviceLaunch launch, const codegen::Isa &isa);
  dvt_code check(const dvt_run_args &args, dvt_error *error) const;
  Expected<int64_t> blocksOf(const Launch &launch, const dvt_run_args &args) const;
  uint64_t valueOf(const DeviceArgument &argument, const dvt_run_args &args) const;

  TensorShapes shapes;
  std::shared_ptr<device::DeviceDriver> driver;
  device::ModuleHandle module = nullptr;
  std::vector<Launch> launches;
  size_t mostArguments = 0; ///< of a launch
  uint64_t workspace = 0;
};

} // namespace dovetail::native
