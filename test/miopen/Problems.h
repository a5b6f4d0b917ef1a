// SPDX-License-Identifier: Apache-2.0
//
// Runs candidates of the MIOpen provider on the simulated device and compares them with the truth.
#pragma once

#include <gtest/gtest.h>

#include "SimulatedDriver.h"
#include "support/Plugin.h"

namespace dovetail::test {

inline std::string doubleFolder(int major) {
  return DOVETAIL_BINARY_DIR "/lib/dovetail-test/miopen" + std::to_string(major);
}

/// The provider with the libraries of a folder.
PluginSet loadMiopen(const std::string &vendorPath);
/// As the tree describes it.
Target rocmTarget(const std::string &architecture = "gfx942");
/// Objects of a double that were not given back.
uint64_t liveObjects(int major);

/// The device in use, and the provider over the double of a version.
class OnDevice : public testing::Test {
protected:
  void start(int major);
  /// After it nothing of the library's may be left.
  void TearDown() override;

  Proposal propose(const std::string &problem);
  /// Runs all that is on offer and compares it with the truth; names as they were offered.
  std::vector<std::string> check(const std::string &problem);
  void checkOne(const Problem &problem, const Candidate &candidate);
  struct Prepared {
    dvt_kernel *kernel = nullptr;
    dvt_code code = DVT_OK;
    std::string message;
  };
  Prepared prepare(const Problem &problem, const Candidate &candidate);
  void destroy(const Prepared &prepared) { provider->functions().destroy_kernel(prepared.kernel); }

  int major = 0;
  std::shared_ptr<device::Device> device;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<PluginSet> plugins;
  const Provider *provider = nullptr;
};

} // namespace dovetail::test
