// SPDX-License-Identifier: Apache-2.0
//
// Device kernels once more, through SPIR-V and a driver of Vulkan: neither LLVM's code for this
// processor nor its address spaces have a part in it, and threads run side by side.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "SpirvTranslation.h"
#include "VulkanDevice.h"
#include "dovetail/provider.h"

namespace dovetail::test {

class SecondOpinion {
public:
  /// Opens a device at first use.
  static SecondOpinion &get();

  /// Why nothing runs; empty where it does.
  const std::string &reason() const { return missing; }
  std::string deviceName() const { return device ? device->name() : ""; }

  /// Whether a kernel of this algorithm has a form in SPIR-V at all.
  static bool covers(const std::string &algorithm);
  bool runs(const SpirvKernel &kernel) const;
  /// Runs a kernel on operands in the host's memory.
  Status run(const DeviceKernel &kernel, const SpirvKernel &shaders,
             const std::vector<dvt_tensor> &inputs, const std::vector<dvt_tensor> &outputs);

  /// Kernels of each family that were translated, and that ran.
  struct Counts {
    uint64_t translated = 0, ran = 0;
  };
  std::map<std::string, Counts> counts;

private:
  SecondOpinion();
  std::unique_ptr<VulkanDevice> device;
  std::string missing;
};

} // namespace dovetail::test
