// SPDX-License-Identifier: Apache-2.0
//
// The plug-in over the double of cuDNN and a simulated device.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "blaslt/DeviceRun.h"

namespace dovetail::test {

class CudnnDoubleFixture : public testing::Test {
protected:
  static constexpr const char *kFolder = DOVETAIL_BINARY_DIR "/lib/dovetail-test/cudnn9";

  void SetUp() override {
    device = device::openSimulated("cuda");
    ASSERT_TRUE(device);
    target = describedTarget("cuda:sm_90");
    load();
  }
  /// The plug-in anew, which asks the library for its version.
  void load() {
    plugins.reset();
    PluginSet::Options options;
    options.folders = {DOVETAIL_BINARY_DIR "/lib/dovetail"};
    options.vendorPath = kFolder;
    options.only = {"cudnn"};
    options.deviceDrivers = "cuda=" + device::simulatedPath("cuda");
    plugins = std::make_unique<PluginSet>(PluginSet::load(options));
    provider = plugins->find("cudnn");
    ASSERT_TRUE(provider) << (plugins->failures().empty() ? "" : plugins->failures()[0].reason);
    ASSERT_STREQ(provider->info().libraries[0].missing, "");
  }
  template <typename Function> Function *ofDouble(const char *name) const {
    void *library = ::dlopen((std::string(kFolder) + "/libcudnn.so.9").c_str(), RTLD_NOW);
    EXPECT_TRUE(library) << ::dlerror();
    return reinterpret_cast<Function *>(::dlsym(library, name));
  }
  uint64_t doubleObjects() const { return ofDouble<uint64_t()>("dvtSimulatedObjects")(); }
  Proposal propose(const DeviceCase &given) const {
    Proposal proposal = provider->propose(target, given.problem());
    EXPECT_FALSE(proposal.candidates.empty())
        << (proposal.refusals.empty() ? "" : proposal.refusals[0].reason);
    return proposal;
  }

  std::shared_ptr<device::Device> device;
  Target target;
  std::unique_ptr<PluginSet> plugins;
  const Provider *provider = nullptr;
};

} // namespace dovetail::test
