// SPDX-License-Identifier: Apache-2.0
//
// Loading plug-ins that lie, are old or are broken; the target of this machine.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "support/File.h"
#include "support/Plugin.h"

using namespace dovetail;

namespace {

PluginSet loadTestPlugins() {
  std::string folder = std::string(DOVETAIL_BINARY_DIR) + "/test/plugins";
  EXPECT_TRUE(writeFile(folder + "/dovetail_garbage.so", "not an object"));
  PluginSet::Options options;
  options.folders = {"/no/such/folder", folder};
  return PluginSet::load(options);
}

TEST(Plugin, BrokenOnesCostOnlyThemselves) {
  PluginSet set = loadTestPlugins();
  ASSERT_NE(set.find("lying"), nullptr);
  EXPECT_EQ(set.find("old"), nullptr);
  EXPECT_EQ(set.find("holes"), nullptr);
  std::string reasons;
  for (const auto &failure : set.failures())
    reasons += failure.file + ": " + failure.reason + "\n";
  EXPECT_NE(reasons.find("version 999"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("holes"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("dovetail_garbage.so"), std::string::npos) << reasons;
}

TEST(Plugin, NonsenseBecomesRefusals) {
  PluginSet set = loadTestPlugins();
  const Provider *provider = set.find("lying");
  ASSERT_NE(provider, nullptr);
  Target target = Target::host(1);
  auto problem = Problem::parse("problem(%0: f32[2,3]) %1: f32[2,3] = relu@14(%0) return(%1)");
  ASSERT_TRUE(problem);
  Proposal proposal = provider->propose(target, *problem);
  ASSERT_EQ(proposal.candidates.size(), 1u);
  EXPECT_EQ(proposal.candidates[0].label(), "lying:plain");
  EXPECT_EQ(proposal.candidates[0].estimateMicros, -1);
  EXPECT_EQ(proposal.refusals.size(), 14u);
  EXPECT_EQ(proposal.refusals.back().reason, "had nothing more");

  Target device;
  device.device = "cuda";
  device.architecture = "sm_90";
  Proposal elsewhere = provider->propose(device, *problem);
  ASSERT_EQ(elsewhere.candidates.size(), 1u);
  EXPECT_EQ(elsewhere.candidates[0].label(), "lying:elsewhere");
  EXPECT_EQ(elsewhere.candidates[0].memory, DVT_MEMORY_DEVICE);
  EXPECT_EQ(elsewhere.refusals[0].reason, "works in host memory; the target is cuda:sm_90");
  std::vector<const char *> storage;
  EXPECT_EQ(elsewhere.candidates[0].view(storage).memory, DVT_MEMORY_DEVICE);

  auto bytes = provider->compile(target, *problem, proposal.candidates[0]);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(std::string(bytes->begin(), bytes->end()), "abc");
  Candidate other = proposal.candidates[0];
  other.algorithm = "other";
  auto failed = provider->compile(target, *problem, other);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(std::string(other.label()), "lying:other");
  other.inputLayouts = {"ba"};
  EXPECT_EQ(other.label(), "lying:other[ba->_]");
}

// The kernel lists the same names in /proc/cpuinfo.
TEST(Target, FeaturesAgreeWithTheKernel) {
  std::ifstream file("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(file, line))
    if (line.starts_with("flags")) {
      flags = line.substr(line.find(':') + 1) + " ";
      break;
    }
  if (flags.empty())
    GTEST_SKIP() << "no flags in /proc/cpuinfo";
  Target target = Target::host(0);
  std::istringstream names(target.features);
  std::string name, previous;
  while (std::getline(names, name, ',')) {
    EXPECT_NE(flags.find(" " + name + " "), std::string::npos) << name;
    EXPECT_LT(previous, name);
    previous = name;
    EXPECT_TRUE(target.hasFeature(name));
  }
  for (const char *wanted : {"avx2", "fma", "avx512f", "avx512_vnni", "amx_tile", "f16c"})
    EXPECT_EQ(target.hasFeature(wanted),
              flags.find(std::string(" ") + wanted + " ") != std::string::npos)
        << wanted;
  EXPECT_FALSE(target.hasFeature("avx51"));
  EXPECT_GE(target.threads, 1u);
  EXPECT_NE(target.text().find("threads="), std::string::npos);
}

TEST(Version, WhatFollowsAHashSignIsTheCompilersOwn) {
  EXPECT_EQ(loadableVersion("1+oneDNN-3.2.0"), "1+oneDNN-3.2.0");
  EXPECT_EQ(loadableVersion("2#4a56"), "2");
  EXPECT_EQ(loadableVersion(""), "");
}

} // namespace
