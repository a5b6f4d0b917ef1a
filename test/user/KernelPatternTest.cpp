// SPDX-License-Identifier: Apache-2.0
//
// Which problems a pattern is for.
#include <gtest/gtest.h>

#include "toolchain/KernelPattern.h"

namespace dovetail::toolchain {
namespace {

std::optional<PatternMatch> match(const std::string &pattern, const std::string &problem,
                                  std::string *why = nullptr) {
  auto first = Problem::parse(pattern), second = Problem::parse(problem);
  EXPECT_TRUE(bool(first)) << first.error().message;
  EXPECT_TRUE(bool(second)) << second.error().message;
  std::string reason;
  auto found = first && second ? matchPattern(*first, *second, reason) : std::nullopt;
  if (why)
    *why = reason;
  EXPECT_EQ(found.has_value(), reason.empty()) << reason;
  return found;
}

void refuses(const std::string &pattern, const std::string &problem, const std::string &says) {
  std::string why;
  EXPECT_FALSE(match(pattern, problem, &why)) << pattern << "\n" << problem;
  EXPECT_NE(why.find(says), std::string::npos) << why;
}

constexpr const char *kRelu = "problem(%0: f32[R,C]) %1: f32[R,C] = relu@14(%0) return(%1)";

TEST(KernelPattern, SymbolsTakeExtents) {
  auto found = match(kRelu, "problem(%0: f32[3,5]) %1: f32[3,5] = relu@14(%0) return(%1)");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->symbols.at("R"), 3);
  EXPECT_EQ(found->symbols.at("C"), 5);
  EXPECT_EQ(found->symbols.at("in0.elements"), 15);
  EXPECT_EQ(found->symbols.at("out0.elements"), 15);
}

TEST(KernelPattern, OtherProblemsAreRefused) {
  refuses(kRelu, "problem(%0: f32[3]) %1: f32[3] = relu@14(%0) return(%1)", "rank 1");
  refuses(kRelu, "problem(%0: f16[3,5]) %1: f16[3,5] = relu@14(%0) return(%1)", "f16");
  refuses(kRelu, "problem(%0: f32[3,5]) %1: f32[3,5] = abs@13(%0) return(%1)", "abs@13");
  refuses(kRelu, "problem(%0: f32[3,5]) %1: f32[3,5] = relu@6(%0) return(%1)", "relu@6");
  refuses(kRelu, "problem(%0: f32[N,5]) %1: f32[N,5] = relu@14(%0) return(%1)", "only the run");
  refuses(kRelu,
          "problem(%0: f32[3,5]) %1: f32[3,5] = relu@14(%0); %2: f32[3,5] = relu@14(%1) return(%2)",
          "other ops");
  refuses("problem(%0: f32[N,N]) %1: f32[N,N] = relu@14(%0) return(%1)",
          "problem(%0: f32[3,5]) %1: f32[3,5] = relu@14(%0) return(%1)", "an extent of 5");
}

TEST(KernelPattern, RangesBind) {
  const std::string eights =
      "problem(%0: f32[N]) %1: f32[N] = relu@14(%0) return(%1) where N in 8..64/8";
  EXPECT_TRUE(match(eights, "problem(%0: f32[32]) %1: f32[32] = relu@14(%0) return(%1)"));
  refuses(eights, "problem(%0: f32[12]) %1: f32[12] = relu@14(%0) return(%1)", "N is 12");
  refuses(eights, "problem(%0: f32[72]) %1: f32[72] = relu@14(%0) return(%1)", "N is 72");
}

TEST(KernelPattern, OrderDoesNotMatter) {
  const std::string pattern =
      "problem(%0: f32[N], %1: f32[N]) %2: f32[N] = relu@14(%0); %3: f32[N] = abs@13(%1); %4: "
      "f32[N] = sub@14(%2, %3) return(%4)";
  auto found = match(
      pattern, "problem(%0: f32[4], %1: f32[4]) %2: f32[4] = abs@13(%0); %3: f32[4] = relu@14(%1); "
               "%4: f32[4] = sub@14(%3, %2) return(%4)");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->inputs, (std::vector<uint32_t>{1, 0}));
  // Which operand is which does.
  refuses(pattern,
          "problem(%0: f32[4], %1: f32[4]) %2: f32[4] = abs@13(%0); %3: f32[4] = relu@14(%1); %4: "
          "f32[4] = sub@14(%2, %3) return(%4)",
          "abs@13");
}

TEST(KernelPattern, WiringCounts) {
  const std::string twice = "problem(%0: f32[N]) %1: f32[N] = mul@14(%0, %0) return(%1)";
  refuses(twice, "problem(%0: f32[4], %1: f32[4]) %2: f32[4] = mul@14(%0, %1) return(%2)",
          "hang together");
  // A kernel of two operands may be given one twice.
  EXPECT_TRUE(match("problem(%0: f32[N], %1: f32[N]) %2: f32[N] = mul@14(%0, %1) return(%2)",
                    "problem(%0: f32[4]) %1: f32[4] = mul@14(%0, %0) return(%1)"));
}

TEST(KernelPattern, AttributesMatchOrStayOpen) {
  const std::string problem = "problem(%0: f32[4,8], %1: f32[8]) %2: f32[4,8] = "
                              "rms_normalization@23(%0, %1) {axis=-1, epsilon=1e-05f, "
                              "stash_type=1} return(%2)";
  auto pattern = [](const std::string &attributes) {
    return "problem(%0: f32[R,C], %1: f32[C]) %2: f32[R,C] = rms_normalization@23(%0, %1) {" +
           attributes + "} return(%2)";
  };
  auto found = match(pattern("axis=-1, stash_type=1"), problem);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->open.size(), 1u);
  EXPECT_NEAR(std::get<double>(found->open.at("epsilon")), 1e-5, 1e-12);
  refuses(pattern("axis=0, stash_type=1"), problem, "axis of rms_normalization is another");
}

TEST(KernelPattern, LiteralsMatch) {
  const std::string half =
      "problem(%0: f32[N], %1: f32[] {0.5}) %2: f32[N] = mul@14(%0, %1) return(%2)";
  EXPECT_TRUE(
      match(half, "problem(%0: f32[4], %1: f32[] {0.5}) %2: f32[4] = mul@14(%0, %1) return(%2)"));
  refuses(half, "problem(%0: f32[4], %1: f32[] {0.25}) %2: f32[4] = mul@14(%0, %1) return(%2)",
          "a number in its text");
  refuses("problem(%0: f32[N], %1: f32[]) %2: f32[N] = mul@14(%0, %1) return(%2)",
          "problem(%0: f32[4], %1: f32[] {0.5}) %2: f32[4] = mul@14(%0, %1) return(%2)",
          "a number in its text");
}

TEST(KernelPattern, StridesAreRefused) {
  refuses(kRelu, "problem(%0: f32[3,5] strides[10,1]) %1: f32[3,5] = relu@14(%0) return(%1)",
          "strided");
}

} // namespace
} // namespace dovetail::toolchain
