// SPDX-License-Identifier: Apache-2.0
//
// What is on offer without a library and without a device, what is refused, and what is said where
// the library is missing or another one.
#include <gmock/gmock.h>

#include "Problems.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::HasSubstr;

namespace {

constexpr const char *kConvolution =
    "problem(%0: f32[1,64,56,56], %1: const f32[64,64,3,3], %2: const f32[64]) %3: "
    "f32[1,64,56,56] = conv@11(%0, %1, %2) {dilations=[1,1], group=1, kernel_shape=[3,3], "
    "pads=[1,1,1,1], strides=[1,1]}; %4: f32[1,64,56,56] = relu@14(%3) return(%4)";

/// Where there is no library, as on most machines that compile.
class MiopenOffers : public testing::Test {
protected:
  MiopenOffers() : plugins(loadMiopen("/nonexistent")), provider(plugins.find("miopen")) {}
  void SetUp() override { ASSERT_TRUE(provider); }
  std::string refusalOf(const std::string &text, const Target &target = rocmTarget()) {
    Expected<Problem> problem = Problem::parse(text);
    if (!problem)
      return "not parsed: " + problem.error().message;
    const Proposal proposal = provider->propose(target, *problem);
    EXPECT_TRUE(proposal.candidates.empty()) << text;
    return proposal.refusals.empty() ? "" : proposal.refusals[0].reason;
  }
  PluginSet plugins;
  const Provider *provider;
};

TEST_F(MiopenOffers, NeedNoLibrary) {
  for (const char *architecture : {"gfx90a", "gfx942"}) {
    const Proposal proposal =
        provider->propose(rocmTarget(architecture), *Problem::parse(kConvolution));
    EXPECT_EQ(proposal.candidates.size(), 10u); // five ways, two layouts
    for (const Candidate &candidate : proposal.candidates) {
      EXPECT_GT(candidate.estimateMicros, 0);
      EXPECT_TRUE(candidate.algorithm.ends_with(":late")) << candidate.algorithm;
      EXPECT_EQ(candidate.numerics, candidate.algorithm.find("winograd") != std::string::npos ||
                                            candidate.algorithm.find("fusion") != std::string::npos
                                        ? "f32-winograd"
                                        : "f32");
      EXPECT_FALSE(candidate.deterministic);
      EXPECT_GE(candidate.workspaceBytes, 64u * 9 * 56 * 56 * 4);
    }
  }
}

TEST_F(MiopenOffers, ResultsAreOfAFastDevice) {
  const Proposal proposal = provider->propose(rocmTarget(), *Problem::parse(kConvolution));
  for (const Candidate &candidate : proposal.candidates)
    EXPECT_LT(candidate.estimateMicros, 100) << candidate.label();
}

TEST_F(MiopenOffers, WithoutALibraryNothingIsPrepared) {
  const std::string missing = provider->info().libraries[0].missing;
  if (missing.empty())
    GTEST_SKIP() << "the system has a MIOpen of its own: " << provider->info().libraries[0].path;
  EXPECT_THAT(missing, HasSubstr("libMIOpen.so.1"));
  EXPECT_THAT(missing, HasSubstr("ROCm has it"));
  const Problem problem = *Problem::parse(kConvolution);
  const Candidate candidate = provider->propose(rocmTarget(), problem).candidates.at(0);
  ProblemView view(problem);
  std::vector<const char *> storage;
  const dvt_candidate given = candidate.view(storage);
  const Target target = rocmTarget();
  const dvt_target targetView = target.view();
  const void *constants[3] = {};
  dvt_prepare_args args{};
  args.struct_size = sizeof args;
  args.constants = constants;
  dvt_kernel *kernel = nullptr;
  dvt_error error{};
  EXPECT_EQ(provider->functions().prepare(provider->handle(), &targetView, view.get(), &given,
                                          &args, &kernel, &error),
            DVT_UNAVAILABLE);
  EXPECT_THAT(error.message, HasSubstr("was not found"));
  EXPECT_EQ(kernel, nullptr);
}

TEST_F(MiopenOffers, RefusalsSayWhy) {
  EXPECT_THAT(refusalOf(kConvolution, Target::host(1)), HasSubstr("serves devices of ROCm"));
  Target undescribed = rocmTarget();
  undescribed.description = "";
  EXPECT_THAT(refusalOf(kConvolution, undescribed), HasSubstr("no description"));
  const std::pair<const char *, const char *> cases[] = {
      {"problem(%0: i32[4]) %1: i32[4] = relu@14(%0) return(%1)", "f32, f16 and bf16"},
      {"problem(%0: bf16[4]) %1: bf16[4] = relu@14(%0) return(%1)", "in bf16 in convolutions"},
      {"problem(%0: f32[4]) %1: f32[4] = erf@13(%0) return(%1)", "no kernels for erf"},
      {"problem(%0: f32[4]) %1: f32[4] = clip@6(%0) {max=1.0, min=-1.0} return(%1)",
       "with these bounds"},
      {"problem(%0: f32[N]) %1: f32[N] = relu@14(%0) return(%1) where N in 1..8",
       "only at run time (N)"},
      {"problem(%0: f32[2,3,7,7]) %1: f32[2,3,3,3] = max_pool@12(%0) {ceil_mode=0, "
       "dilations=[2,2], kernel_shape=[3,3], pads=[0,0,0,0], storage_order=0, strides=[1,1]} "
       "return(%1)",
       "dilated windows"},
      {"problem(%0: f32[1,3,6,6]) %1: f32[1,3,3,3] = max_pool@12(%0) {ceil_mode=1, "
       "dilations=[1,1], kernel_shape=[3,3], pads=[0,0,0,0], storage_order=0, strides=[2,2]} "
       "return(%1)",
       "padding of this form"},
      // As ints these would be 0 and 1: the same windows.
      {"problem(%0: f32[1,3,1,1]) %1: f32[1,3,1,1] = max_pool@12(%0) {ceil_mode=0, "
       "dilations=[1,1], kernel_shape=[1,1], pads=[0,0,0,0], storage_order=0, "
       "strides=[4294967297,4294967297]} return(%1)",
       "of more than 2^31 - 1"},
      {"problem(%0: f32[1,4,1,1], %1: const f32[4,4,1,1]) %2: f32[1,4,3,1] = conv@11(%0, %1) "
       "{dilations=[1,1], group=1, kernel_shape=[1,1], pads=[4294967296,0,4294967296,0], "
       "strides=[4294967296,1]} return(%2)",
       "of more than 2^31 - 1"},
      {"problem(%0: bf16[1,4,4,4], %1: const bf16[4,4,1,1], %2: const bf16[4]) %3: "
       "bf16[1,4,4,4] = conv@11(%0, %1, %2) {dilations=[1,1], group=1, kernel_shape=[1,1], "
       "pads=[0,0,0,0], strides=[1,1]} return(%3)",
       "in bf16 in convolutions"},
      {"problem(%0: f32[4], %1: f32[4]) %2: f32[4] = relu@14(%0); %3: f32[4] = relu@14(%1); "
       "%4: f32[4] = add@14(%2, %3) return(%4)",
       "do not follow one another"},
  };
  for (const auto &[text, reason] : cases)
    EXPECT_THAT(refusalOf(text), HasSubstr(reason)) << text;
}

TEST(MiopenMissing, ALibraryThatIsTooOldIsPassedOver) {
  const PluginSet plugins = loadMiopen(MIOPEN_IMPOSTOR_FOLDER);
  const Provider *provider = plugins.find("miopen");
  ASSERT_TRUE(provider);
  const dvt_library_info &library = provider->info().libraries[0];
  EXPECT_EQ(std::string(library.path).find(MIOPEN_IMPOSTOR_FOLDER), std::string::npos);
  if (*library.missing) {
    EXPECT_THAT(library.missing, HasSubstr("version 1.8.1 found, versions from 2.10 to 3.x"));
  }
}

TEST(MiopenVersion, PlansDoNotDependOnIt) {
  const PluginSet without = loadMiopen("/nonexistent"), with = loadMiopen(doubleFolder(3));
  EXPECT_EQ(loadableVersion(without.find("miopen")->version()),
            loadableVersion(with.find("miopen")->version()));
  EXPECT_EQ(with.find("miopen")->version(), "1#MIOpen-3.2.0");
}

} // namespace
