// SPDX-License-Identifier: Apache-2.0
//
// A device kernel ready to run: its module on the device, its entries found. Running gives all
// launches to the host's stream, in order, and returns; it may happen in several threads at once.
// A kernel that gathers waits for its first launches, which look at the indices, and so refuses to
// be recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/Schedule.h"
#include "device/DeviceDriver.h"
#include "dovetail/provider.h"
#include "providers/native/TensorShapes.h"
#include "support/DeviceKernel.h"

namespace dovetail::native {

class LoadedDeviceKernel {
public:
  /// Of the images in the kernel's bytes the first that the driver takes: machine code for the
  /// architecture before text that the driver assembles, and on a simulated device the host form.
  /// The device is current for the calling thread, here and when the kernel goes. The
  /// problem is needed during the call only. BadInput for bytes that are no device kernel for this
  /// problem and architecture; else what the driver says.
  static Expected<std::unique_ptr<LoadedDeviceKernel>>
  load(const codegen::ProblemReader &problem, const codegen::Machine &machine,
       std::shared_ptr<device::DeviceDriver> driver, const dvt_prepare_args &args);
  ~LoadedDeviceKernel();
  LoadedDeviceKernel(const LoadedDeviceKernel &) = delete;

  uint64_t workspaceBytes() const { return workspace; }
  /// Why images that are readier than the one in use were not taken; empty where none was passed
  /// over.
  const std::string &whatWasPassedOver() const { return passedOver; }
  dvt_code run(const dvt_run_args &args, dvt_error *error) const;

private:
  struct Launch {
    DeviceLaunch launch;
    device::FunctionHandle function;
    std::optional<int64_t> blocks; ///< where no extent of a run decides
    int64_t mostBlocks;            ///< that the device takes
  };

  /// One of the kernel's first launches, which looks at indices.
  struct IndexCheck {
    codegen::ValueDemand demand;
    bool isSettled = false; ///< of a constant, when it was loaded
  };

  LoadedDeviceKernel(const codegen::ProblemReader &problem,
                     std::shared_ptr<device::DeviceDriver> driver)
      : shapes(problem), driver(std::move(driver)) {}
  Status loadModule(const DeviceKernel &kernel, const char *architecture);
  Status addLaunch(DeviceLaunch launch, const codegen::Isa &isa);
  Status readDemands(const codegen::ProblemReader &problem, const dvt_prepare_args &args);
  dvt_code check(const dvt_run_args &args, dvt_error *error) const;
  /// Runs the checks and waits for what they find.
  dvt_code checkIndices(const dvt_run_args &args, dvt_error *error) const;
  Status launchChecks(const dvt_run_args &args, int64_t *words) const;
  Expected<std::string> describeIndex(const dvt_run_args &args, const IndexCheck &check,
                                      int64_t word) const;
  Status launch(const Launch &one, const dvt_run_args &args) const;
  uint64_t checkBytes() const { return 8 * checks.size(); }
  Expected<int64_t> blocksOf(const Launch &launch, const dvt_run_args &args) const;
  uint64_t valueOf(const DeviceArgument &argument, const dvt_run_args &args) const;

  TensorShapes shapes;
  std::shared_ptr<device::DeviceDriver> driver;
  device::ModuleHandle module = nullptr;
  std::vector<Launch> launches;
  std::vector<IndexCheck> checks; ///< of as many launches
  size_t mostArguments = 0;       ///< of a launch
  uint64_t workspace = 0;
  std::string passedOver;
};

} // namespace dovetail::native
