// SPDX-License-Identifier: Apache-2.0
//
// Device kernels to bytes and back, and what becomes of damaged ones.
#include <gtest/gtest.h>

#include "support/DeviceKernel.h"

namespace dovetail {
namespace {

using Op = DeviceExpression::Op;

DeviceKernel example() {
  DeviceKernel kernel;
  kernel.workspaceBytes = 4096;
  DeviceLaunch launch;
  launch.entry = "phase0";
  launch.blocks = DeviceExpression({{Op::Extent, 1, 2},
                                    {Op::Constant, 0, 255},
                                    {Op::Add},
                                    {Op::Constant, 0, 256},
                                    {Op::Divide}});
  launch.threads = 256;
  launch.sharedBytes = 1024;
  launch.arguments = {{DeviceArgument::Kind::Tensor, 0, 0},
                      {DeviceArgument::Kind::Workspace, 0, 0},
                      {DeviceArgument::Kind::Extent, 1, 2},
                      {DeviceArgument::Kind::Number, 0, 0, -7}};
  kernel.launches = {launch};
  kernel.images.push_back({DeviceImage::Kind::Ptx, "sm_90", {'p', 't', 'x', 0}, {}});
  kernel.images.push_back({DeviceImage::Kind::Cubin, "sm_90", {1, 2, 3}, {{32, 8, 16, 1024}}});
  kernel.addLog("ptxas 13.0", "Used 32 registers");
  kernel.addLog("ptxas 13.0", ""); // says nothing
  return kernel;
}

TEST(DeviceKernel, SurvivesItsBytes) {
  DeviceKernel kernel = example();
  auto bytes = kernel.serialise();
  EXPECT_TRUE(DeviceKernel::recognises(bytes));
  auto again = DeviceKernel::parse(bytes);
  ASSERT_TRUE(bool(again)) << again.error().message;
  EXPECT_EQ(again->workspaceBytes, kernel.workspaceBytes);
  EXPECT_EQ(again->launches, kernel.launches);
  EXPECT_EQ(again->images, kernel.images);
  EXPECT_EQ(again->find(DeviceImage::Kind::Cubin)->resources[0].registers, 32u);
  EXPECT_EQ(again->find(DeviceImage::Kind::Hsaco), nullptr);
}

TEST(DeviceKernel, CutOrAlteredBytesAreRefused) {
  auto bytes = example().serialise();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(bool(DeviceKernel::parse(std::span(bytes).first(size)))) << size;
  for (size_t place = 0; place < bytes.size(); ++place) {
    auto altered = bytes;
    altered[place] ^= 0x5a;
    EXPECT_FALSE(bool(DeviceKernel::parse(altered))) << place;
  }
  bytes.push_back(0);
  EXPECT_FALSE(bool(DeviceKernel::parse(bytes)));
}

TEST(DeviceKernel, WhatIsInconsistentIsRefused) {
  DeviceKernel kernel = example();
  kernel.images[1].resources.push_back({});
  EXPECT_FALSE(bool(DeviceKernel::parse(kernel.serialise())));
  kernel = example();
  kernel.launches[0].blocks.steps.pop_back();
  EXPECT_FALSE(bool(DeviceKernel::parse(kernel.serialise())));
  kernel = example();
  kernel.launches[0].threads = 0;
  EXPECT_FALSE(bool(DeviceKernel::parse(kernel.serialise())));
}

TEST(DeviceKernel, ExpressionsAreComputed) {
  const DeviceExpression blocks = example().launches[0].blocks;
  EXPECT_EQ(blocks.text(), "((t1.2+255)/256)");
  EXPECT_FALSE(blocks.constantValue());
  std::vector<std::vector<int64_t>> extents = {{}, {1, 1, 257}};
  EXPECT_EQ(*blocks.evaluate(extents), 2);
  extents[1].pop_back();
  EXPECT_FALSE(bool(blocks.evaluate(extents)));
  EXPECT_EQ(*DeviceExpression::constant(7).constantValue(), 7);
  EXPECT_FALSE(bool(
      DeviceExpression({{Op::Constant, 0, 1}, {Op::Constant, 0, 0}, {Op::Divide}}).evaluate({})));
  EXPECT_FALSE(
      bool(DeviceExpression({{Op::Constant, 0, INT64_MAX}, {Op::Constant, 0, 1}, {Op::Add}})
               .evaluate({})));
}

TEST(DeviceKernel, HostKernelsSurviveTheirBytes) {
  HostKernels kernels;
  kernels.entries = {{"phase0", 0, 3, 256, 1024, true}, {"phase1", 2, 1, 128, 0, false}};
  kernels.code = {0xc3, 0x90, 0xc3};
  auto bytes = kernels.serialise();
  auto again = HostKernels::parse(bytes);
  ASSERT_TRUE(bool(again)) << again.error().message;
  EXPECT_EQ(again->entries, kernels.entries);
  EXPECT_EQ(again->code, kernels.code);
  EXPECT_EQ(again->find("phase1")->threads, 128u);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(bool(HostKernels::parse(std::span(bytes).first(size)))) << size;
  kernels.entries[1].offset = 3; // behind the code
  EXPECT_FALSE(bool(HostKernels::parse(kernels.serialise())));
}

} // namespace
} // namespace dovetail
