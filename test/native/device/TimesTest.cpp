// SPDX-License-Identifier: Apache-2.0
//
// What kernels of tiles are thought to take on a device: the rooflines, and that candidates of one
// problem are told apart.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/DeviceTime.h"
#include "providers/native/CompactProblem.h"

namespace dovetail::test {
namespace {

using codegen::BlockWork;
using device::DeviceDescription;

DeviceDescription described(const std::string &target) {
  auto found = device::findDescription(target, {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : DeviceDescription();
}

/// A device of ten units that multiply and add 1000 times in a microsecond each.
DeviceDescription plain() {
  DeviceDescription device;
  device.computeUnits = 10;
  device.peakTeraops["f32"] = 0.02;
  device.memoryGigabytesPerSecond = 1000;
  device.threadsPerUnit = 1024;
  device.sharedBytesPerUnit = 64 << 10;
  device.registersPerUnit = 65536;
  device.blocksPerUnit = 16;
  return device;
}

BlockWork work(double blocks) {
  BlockWork work;
  work.blocks = blocks;
  work.threads = 256;
  work.sharedBytes = 32 << 10;
  work.registers = 32;
  work.multiplyAdds = 1000;
  work.threadsForPeak = 512;
  return work;
}

TEST(DeviceTimes, TheBusiestUnitDecides) {
  DeviceDescription device = plain();
  EXPECT_DOUBLE_EQ(blockMicros(device, work(10)), 2) << "half of the threads that hide latency";
  EXPECT_DOUBLE_EQ(blockMicros(device, work(11)), 2) << "two at once hide it";
  EXPECT_DOUBLE_EQ(blockMicros(device, work(20)), 2);
  EXPECT_DOUBLE_EQ(blockMicros(device, work(21)), 3);
  device.launchMicros = 5;
  EXPECT_DOUBLE_EQ(blockMicros(device, work(21)), 8);
}

TEST(DeviceTimes, WhatABlockTakesDecidesHowManyThereAreAtOnce) {
  DeviceDescription device = plain();
  BlockWork large = work(100);
  EXPECT_DOUBLE_EQ(blockMicros(device, large), 10);
  large.sharedBytes = 40 << 10; // one at once
  EXPECT_DOUBLE_EQ(blockMicros(device, large), 20);
  large = work(100);
  large.registers = 200;
  EXPECT_DOUBLE_EQ(blockMicros(device, large), 20);
  device.registersPerUnit = 0; // not known
  EXPECT_DOUBLE_EQ(blockMicros(device, large), 10);
}

TEST(DeviceTimes, MemoryIsARoofToo) {
  DeviceDescription device = plain();
  BlockWork moving = work(100);
  moving.bytes = 800e3 * 50;
  EXPECT_DOUBLE_EQ(blockMicros(device, moving), 50);
  moving.tileBytes = 800e3 * 3;
  EXPECT_DOUBLE_EQ(blockMicros(device, moving), 100);
  moving.peak = "f16_matrix";
  EXPECT_EQ(blockMicros(device, moving), -1) << "its peak is not known";
}

/// Label and time of each schedule of tiles.
std::vector<std::pair<std::string, double>> times(const std::string &text,
                                                  const std::string &target) {
  std::vector<std::pair<std::string, double>> found;
  auto problem = Problem::parse(text);
  EXPECT_TRUE(problem) << problem.error().message;
  ProblemView view(*problem);
  const dvt_problem *given = view;
  native::CompactProblem compact(*given);
  codegen::ProblemReader reader(*compact.get());
  DeviceDescription device = described(target);
  Target of = device.target();
  auto machine = codegen::Machine::of(of.view());
  EXPECT_TRUE(machine) << machine.error().message;
  codegen::ScheduleSink sink;
  sink.refuse = [](const char *, const std::string &) {};
  sink.offer = [&](const codegen::Schedule &schedule) {
    if (auto micros = codegen::deviceMicros(reader, *machine, device, schedule))
      found.emplace_back(schedule.algorithm, *micros);
  };
  for (const codegen::ScheduleFamily &family : codegen::scheduleFamilies())
    if (family.serves(*machine))
      family.propose(reader, *machine, sink);
  return found;
}

/// Of a square whose best two tiles are each other turned, both take as long; not of these.
TEST(DeviceTimes, TilesOfOneProductAreToldApart) {
  for (const char *target :
       {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "rocm:gfx90a", "rocm:gfx942"})
    for (int size : {100, 4096}) {
      auto found = times(fmt::format("problem(%0: f16[{0},{0}], %1: f16[{0},{0}]) %2: f16[{0},{0}] "
                                     "= mat_mul@13(%0, %1) return(%2)",
                                     size),
                         target);
      std::set<double> different;
      size_t onMatrixUnits = 0;
      for (const auto &[algorithm, micros] : found)
        if (algorithm.find("mma-") != std::string::npos) {
          different.insert(micros);
          ++onMatrixUnits;
        }
      EXPECT_EQ(onMatrixUnits, 2u) << target << " " << size;
      EXPECT_EQ(different.size(), onMatrixUnits) << target << " " << size;
    }
}

TEST(DeviceTimes, AttentionKnowsItsBlocks) {
  auto micros = [](int heads) {
    auto found = times(fmt::format("problem(%0: f32[1,{0},128,64], %1: f32[1,{0},128,64], %2: "
                                   "f32[1,{0},128,64]) %3: f32[1,{0},128,64] = attention@24(%0, "
                                   "%1, %2) {{is_causal=0, scale=0.125}} return(%3)",
                                   heads),
                       "cuda:sm_90");
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? 0 : found.front().second;
  };
  // Eight blocks for a head, of which each unit takes one at first.
  EXPECT_EQ(micros(1), micros(16));
  EXPECT_GT(micros(160), 2 * micros(16));
}

} // namespace
} // namespace dovetail::test
