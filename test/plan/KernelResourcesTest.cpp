// SPDX-License-Identifier: Apache-2.0
//
// What device kernels take, out of their bytes.
#include <gtest/gtest.h>

#include "plan/KernelResources.h"
#include "support/DeviceKernel.h"

namespace dovetail::plan {
namespace {

TEST(KernelResources, AreTheMostOfAnyLaunch) {
  DeviceKernel kernel;
  for (const char *entry : {"phase0", "phase1"})
    kernel.launches.push_back({entry, DeviceExpression::constant(1), 256, 0, {}});
  kernel.images.push_back(
      {DeviceImage::Kind::Cubin, "sm_90", {1, 2, 3}, {{24, 16, 16, 1024}, {40, 0, 0, 512}}});
  kernel.images.push_back({DeviceImage::Kind::Ptx, "sm_90", {0}, {}});
  Candidate candidate;
  takeResources(kernel.serialise(), candidate);
  EXPECT_EQ(candidate.registers, 40u);
  EXPECT_EQ(candidate.sharedBytes, 1024u);
  EXPECT_EQ(candidate.scratchBytes, 16u);
}

TEST(KernelResources, OfOtherKernelsAreNotKnown) {
  Candidate candidate;
  candidate.registers = 7;
  takeResources(std::vector<uint8_t>{'n', 'o', 'n', 'e'}, candidate);
  std::vector<uint8_t> damaged = DeviceKernel().serialise();
  damaged.back() ^= 1;
  takeResources(damaged, candidate);
  EXPECT_EQ(candidate.registers, 7u);
  EXPECT_EQ(candidate.sharedBytes, 0u);
}

} // namespace
} // namespace dovetail::plan
