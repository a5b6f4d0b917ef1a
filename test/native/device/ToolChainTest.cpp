// SPDX-License-Identifier: Apache-2.0
//
// The tool chains of devices one by one: what they make, what they tell of it, and what they say to
// broken input.
#include <gtest/gtest.h>

#include "DeviceCheck.h"
#include "codegen/schedule/Machine.h"
#include "toolchain/CodeObjectNotes.h"
#include "toolchain/PtxAssembler.h"

namespace dovetail::test {
namespace {

using toolchain::PtxAssembler;

constexpr const char *kAdd =
    "problem(%0: f32[3,500], %1: f32[3,500]) %2: f32[3,500] = add@14(%0, %1) return(%2)";

std::string ptxFor(const std::string &architecture) {
  auto candidates = compileForDevice(*Problem::parse(kAdd), architecture);
  const DeviceImage *image = candidates.at(0).kernel.find(DeviceImage::Kind::Ptx);
  return reinterpret_cast<const char *>(image->bytes.data());
}

TEST(ToolChain, PtxIsForTheArchitecture) {
  for (std::string architecture : {"sm_80", "sm_90", "sm_100"}) {
    std::string ptx = ptxFor(architecture);
    EXPECT_NE(ptx.find(".target " + architecture), ptx.npos) << ptx;
    EXPECT_NE(ptx.find(".entry phase0"), ptx.npos) << ptx;
    EXPECT_NE(ptx.find(".maxntid"), ptx.npos) << ptx;
    EXPECT_NE(ptx.find("ld.global"), ptx.npos) << ptx;
  }
}

class Assembler : public testing::TestWithParam<PtxAssembler::Tool> {};

TEST_P(Assembler, MakesCubinsAndTellsTheirRegisters) {
  PtxAssembler assembler = PtxAssembler::of(GetParam());
  if (assembler.tool() == PtxAssembler::Tool::None)
    GTEST_SKIP() << "not there";
  for (std::string architecture : {"sm_80", "sm_90", "sm_100"}) {
    auto assembled = assembler.assemble(ptxFor(architecture), architecture);
    ASSERT_TRUE(bool(assembled)) << assembled.error().message;
    ASSERT_GT(assembled->cubin.size(), 4u);
    EXPECT_EQ(std::string(assembled->cubin.begin(), assembled->cubin.begin() + 4), "\x7f"
                                                                                   "ELF");
    EXPECT_GT(assembled->resources["phase0"].registers, 0u) << assembled->log;
    EXPECT_EQ(assembled->resources["phase0"].spillBytes, 0u) << assembled->log;
  }
}

TEST_P(Assembler, RefusesBrokenText) {
  PtxAssembler assembler = PtxAssembler::of(GetParam());
  if (assembler.tool() == PtxAssembler::Tool::None)
    GTEST_SKIP() << "not there";
  auto assembled = assembler.assemble(".version 7.8\n.target sm_90\nnonsense", "sm_90");
  ASSERT_FALSE(bool(assembled));
  EXPECT_NE(assembled.error().message.find("refuses PTX for sm_90"), std::string::npos);
}

TEST_P(Assembler, DoesNotKnowEveryArchitecture) {
  PtxAssembler assembler = PtxAssembler::of(GetParam());
  if (assembler.tool() == PtxAssembler::Tool::None)
    GTEST_SKIP() << "not there";
  auto assembled = assembler.assemble(ptxFor("sm_90"), "sm_12345");
  ASSERT_FALSE(bool(assembled));
  EXPECT_EQ(assembled.error().kind, ErrorKind::Unavailable) << assembled.error().message;
}

INSTANTIATE_TEST_SUITE_P(Both, Assembler,
                         testing::Values(PtxAssembler::Tool::NvJitLink, PtxAssembler::Tool::Ptxas),
                         [](const auto &info) {
                           return info.param == PtxAssembler::Tool::Ptxas ? "Ptxas" : "NvJitLink";
                         });

TEST(ToolChain, LogsAreRead) {
  auto resources = toolchain::resourcesOfLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'phase0' for 'sm_90'\n"
      "ptxas info    : Function properties for phase0\n"
      "    24 bytes stack frame, 16 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 24 registers, used 1 barriers, 1024 bytes smem, 24 bytes "
      "cumulative stack size\n"
      "ptxas info    : Compiling entry function 'phase1' for 'sm_90'\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  EXPECT_EQ(resources["phase0"], (DeviceResources{24, 16, 24, 1024}));
  EXPECT_EQ(resources["phase1"], (DeviceResources{8, 0, 0, 0}));
  EXPECT_TRUE(toolchain::resourcesOfLog("Used 24 registers").empty());
}

TEST(ToolChain, CodeObjectsTellTheirRegisters) {
  for (const char *architecture : {"gfx90a", "gfx942"}) {
    auto candidates = compileForDevice(*Problem::parse(kAdd), architecture);
    ASSERT_FALSE(candidates.empty());
    const DeviceImage *image = candidates[0].kernel.find(DeviceImage::Kind::Hsaco);
    ASSERT_TRUE(image);
    auto resources = toolchain::codeObjectResources(image->bytes);
    ASSERT_TRUE(bool(resources)) << resources.error().message;
    EXPECT_GT(resources->at("phase0").registers, 0u);
    EXPECT_EQ(resources->at("phase0").spillBytes, 0u);
    // No prefix of it is taken for a whole one, and none makes the reader fall.
    for (size_t size : {size_t(0), size_t(3), size_t(64), size_t(100), size_t(300)})
      EXPECT_FALSE(bool(toolchain::codeObjectResources(std::span(image->bytes).first(size))));
  }
}

TEST(ToolChain, ArchitecturesOutsideTheTableAreRefused) {
  dvt_target target{};
  target.struct_size = sizeof(target);
  target.device = "cuda";
  target.architecture = "sm_61";
  auto machine = codegen::Machine::of(target);
  ASSERT_FALSE(bool(machine));
  EXPECT_EQ(machine.error().message,
            "native kernels for cuda are made for sm_80, sm_90, sm_100, not 'sm_61'");
}

} // namespace
} // namespace dovetail::test
