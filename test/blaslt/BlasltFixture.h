// SPDX-License-Identifier: Apache-2.0
//
// One of the two plug-ins over the double of its library, and a simulated device for it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "DeviceRun.h"

namespace dovetail::test {

class BlasltFixture : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    device = device::openSimulated(api());
    ASSERT_TRUE(device);
    target = describedTarget(isCuda() ? "cuda:sm_90" : "rocm:gfx942");
    load(DOVETAIL_BINARY_DIR "/lib/dovetail-test");
  }
  /// With the library looked for in this folder first.
  void load(const std::string &vendorPath) {
    PluginSet::Options options;
    options.folders = {DOVETAIL_BINARY_DIR "/lib/dovetail"};
    options.vendorPath = vendorPath;
    options.only = {isCuda() ? "cublaslt" : "hipblaslt"};
    options.deviceDrivers = api() + "=" + device::simulatedPath(api());
    plugins = std::make_unique<PluginSet>(PluginSet::load(options));
    provider = plugins->find(options.only[0]);
    ASSERT_TRUE(provider) << (plugins->failures().empty() ? "" : plugins->failures()[0].reason);
  }
  const std::string &api() const { return GetParam(); }
  bool isCuda() const { return api() == "cuda"; }
  std::string status(const std::string &name) const {
    return (isCuda() ? "CUBLAS_STATUS_" : "HIPBLAS_STATUS_") + name;
  }
  template <typename Function> Function *ofDouble(const char *name) const {
    const std::string file = isCuda() ? "libcublasLt.so.13" : "libhipblaslt.so.1";
    void *library = ::dlopen((DOVETAIL_BINARY_DIR "/lib/dovetail-test/" + file).c_str(), RTLD_NOW);
    EXPECT_TRUE(library) << ::dlerror();
    return reinterpret_cast<Function *>(::dlsym(library, name));
  }
  std::string doubleReason() const { return ofDouble<const char *()>("dvtSimulatedLtReason")(); }
  uint64_t doubleObjects() const { return ofDouble<uint64_t()>("dvtSimulatedLtObjects")(); }

  std::shared_ptr<device::Device> device;
  Target target;
  std::unique_ptr<PluginSet> plugins;
  const Provider *provider = nullptr;
};

} // namespace dovetail::test
