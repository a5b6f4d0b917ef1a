// SPDX-License-Identifier: Apache-2.0
//
// What has no form in SPIR-V, and whether there is a driver; the kernels themselves are those of
// ../device/DeviceKernelsTest.cpp, by the checkDevices() of ShaderCheck.cpp.
#include <gtest/gtest.h>

#include "DeviceCheck.h"
#include "SecondOpinion.h"

namespace dovetail::test {
namespace {

TEST(SecondOpinion, HasADriver) {
  SecondOpinion &opinion = SecondOpinion::get();
  if (!opinion.reason().empty())
    GTEST_SKIP() << "device kernels are not run by Vulkan: " << opinion.reason();
  EXPECT_FALSE(opinion.deviceName().empty());
}

TEST(SecondOpinion, InstructionsOfMatrixUnitsHaveNoCounterpart) {
  auto problem = Problem::parse("problem(%0: f16[256,512], %1: const f16[512,256]) %2: "
                                "f16[256,256] = mat_mul@13(%0, %1) return(%2)");
  ASSERT_TRUE(bool(problem));
  auto candidates = compileForDevice(*problem, "sm_90", ":mma-f16:");
  ASSERT_FALSE(candidates.empty());
  EXPECT_FALSE(SecondOpinion::covers(candidates[0].algorithm));
  auto shaders = translateToSpirv(candidates[0].emitted, candidates[0].kernel);
  ASSERT_FALSE(bool(shaders));
  EXPECT_EQ(shaders.error().kind, ErrorKind::Unavailable) << shaders.error().message;
  EXPECT_NE(shaders.error().message.find("a call of dovetail_mma_"), std::string::npos)
      << shaders.error().message;
}

class RecordShaders : public testing::Environment {
public:
  void TearDown() override {
    for (const auto &[family, counts] : SecondOpinion::get().counts) {
      testing::Test::RecordProperty("spirv." + family + ".translated", int(counts.translated));
      testing::Test::RecordProperty("spirv." + family + ".ran", int(counts.ran));
    }
  }
};

[[maybe_unused]] const testing::Environment *const registered =
    testing::AddGlobalTestEnvironment(new RecordShaders);

} // namespace
} // namespace dovetail::test
