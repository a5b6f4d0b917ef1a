// SPDX-License-Identifier: Apache-2.0
//
// oneDNN 2.x through the same adapter: its candidates against plain loops, its Winograd, what is
// left to 3.x, and both libraries at work in one process.
#include <algorithm>

#include <gtest/gtest.h>

#include "CandidateCheck.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::Test;

namespace {

class OneDnn2 : public Test {
protected:
  static void SetUpTestSuite() {
    plugins = new PluginSet(loadPlugin("onednn2", DOVETAIL_VENDOR_DIRS));
  }
  void SetUp() override {
    provider = plugins->find("onednn2");
    ASSERT_TRUE(provider) << (plugins->failures().empty() ? "" : plugins->failures()[0].reason);
    if (std::string missing = provider->info().libraries[0].missing; !missing.empty())
      GTEST_SKIP() << missing;
  }
  std::vector<CheckedCandidate> check(const std::string &text, double tolerance = 1e-5) {
    std::vector<CheckedCandidate> found = checkCandidates(*provider, text, tolerance, 2);
    EXPECT_FALSE(found.empty()) << text << "\n" << refusalOf(*provider, text);
    return found;
  }
  static PluginSet *plugins;
  const Provider *provider = nullptr;
};
PluginSet *OneDnn2::plugins = nullptr;

bool isWinograd(const CheckedCandidate &candidate) {
  return candidate.algorithm.find("wino") != std::string::npos;
}

const char *const k3x3 =
    "dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]";

const std::string kConvolution =
    "problem(%0: f32[1,64,28,28], %1: const f32[64,64,3,3], %2: const f32[64], "
    "%3: f32[1,64,28,28]) %4: f32[1,64,28,28] = conv@11(%0, %1, %2) {" +
    std::string(k3x3) +
    "}; %5: f32[1,64,28,28] = add@14(%4, %3); %6: f32[1,64,28,28] = relu@14(%5) return(%6)";

} // namespace

TEST_F(OneDnn2, ConvolutionsOfAllForms) {
  auto conv = [&](const std::string &source, const std::string &weights, const std::string &result,
                  const std::string &attributes, const std::string &op = "conv@11") {
    check("problem(%0: f32" + source + ", %1: const f32" + weights + ") %2: f32" + result + " = " +
          op + "(%0, %1) {" + attributes + "} return(%2)");
  };
  conv("[1,3,32,32]", "[64,3,7,7]", "[1,64,16,16]",
       "dilations=[1,1], group=1, kernel_shape=[7,7], pads=[3,3,3,3], strides=[2,2]");
  conv("[2,32,9,9]", "[32,1,3,3]", "[2,32,5,5]",
       "dilations=[1,1], group=32, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]");
  conv("[1,5,12,11]", "[7,5,3,2]", "[1,7,12,10]",
       "dilations=[2,3], group=1, kernel_shape=[3,2], pads=[1,0,3,2], strides=[1,1]");
  conv("[1,16,40]", "[24,16,5]", "[1,24,20]",
       "dilations=[1], group=1, kernel_shape=[5], pads=[2,2], strides=[2]");
  conv("[1,24,8,8]", "[24,16,2,2]", "[1,16,16,16]",
       "dilations=[1,1], group=1, kernel_shape=[2,2], pads=[0,0,0,0], strides=[2,2]",
       "conv_transpose@11");
}

TEST_F(OneDnn2, EpiloguesArriveAtTheirArguments) {
  check(kConvolution);
  const std::string shape = "f32[1,32,10,10]";
  const std::string head = "problem(%0: f32[1,24,10,10], %1: const f32[32,24,3,3], "
                           "%2: const f32[32,1,1], %3: " +
                           shape + ") %4: " + shape + " = conv@11(%0, %1) {" + k3x3 + "}; ";
  // Several operands of post-operations, whose arguments have other numbers than in 3.x.
  check(head + "%5: " + shape + " = mul@14(%4, %2); %6: " + shape +
        " = sub@14(%5, %3); %7: " + shape + " = max@13(%6, %2) return(%7)");
  for (const char *op :
       {"hard_swish@22(%4)", "elu@22(%4) {alpha=1.5}", "gelu@20(%4) {approximate=\"none\"}",
        "gelu@20(%4) {approximate=\"tanh\"}", "sigmoid@13(%4)", "mish@22(%4)", "softplus@22(%4)"})
    check(head + "%5: " + shape + " = " + op + " return(%5)");
}

TEST_F(OneDnn2, TheSameFunctionTwiceHasItsOwnParameters) {
  const std::string shape = "f32[1,32,10,10]";
  const std::string head = "problem(%0: f32[1,24,10,10], %1: const f32[32,24,3,3], "
                           "%2: f32[] {0.5}, %3: f32[] {-2}) %4: " +
                           shape + " = conv@11(%0, %1) {" + k3x3 + "}; %5: " + shape +
                           " = mul@14(%4, %2); ";
  check(head + "%6: " + shape + " = add@14(%5, %3) return(%6)");
  const std::string text =
      head + "%6: " + shape + " = tanh@13(%5); %7: " + shape + " = add@14(%6, %3) return(%7)";
  EXPECT_NE(refusalOf(*provider, text), "");
}

TEST_F(OneDnn2, WinogradIsOfItsOwnNumericsClass) {
  // Added to the result in place: its Winograd knows no operand of another kind.
  auto found =
      check("problem(%0: f32[1,64,28,28], %1: const f32[64,64,3,3], %2: const f32[64], "
            "%3: f32[1,64,28,28]) %4: f32[1,64,28,28] = conv@11(%0, %1, %2) {" +
            std::string(k3x3) + "}; %5: f32[1,64,28,28] alias(3) = add@14(%4, %3) return(%5)");
  auto winograd = std::find_if(found.begin(), found.end(), isWinograd);
  if (!Target::host(2).hasFeature("avx512f"))
    GTEST_SKIP() << "this processor lacks AVX-512, which the library's Winograd needs";
  ASSERT_NE(winograd, found.end());
  EXPECT_EQ(winograd->algorithm.rfind("winograd:", 0), 0u) << winograd->algorithm;
  EXPECT_EQ(winograd->numerics, "f32-winograd");
  for (const CheckedCandidate &candidate : found)
    EXPECT_EQ(candidate.numerics == "f32-winograd", isWinograd(candidate)) << candidate.algorithm;
}

TEST_F(OneDnn2, ProductsAndPooling) {
  check("problem(%0: f32[7,33], %1: const f32[33,20], %2: const f32[20]) %3: f32[7,20] = "
        "mat_mul@13(%0, %1); %4: f32[7,20] = add@14(%3, %2) return(%4)");
  check("problem(%0: f32[2,3,5,8], %1: f32[2,3,8,6]) %2: f32[2,3,5,6] = mat_mul@13(%0, %1) "
        "return(%2)");
  check("problem(%0: f32[1,16,9,9]) %1: f32[1,16,4,4] = max_pool@12(%0) {ceil_mode=0, "
        "dilations=[1,1], kernel_shape=[3,3], pads=[0,0,0,0], storage_order=0, strides=[2,2]} "
        "return(%1)");
}

TEST_F(OneDnn2, LeavesTheRestToTheNextGeneration) {
  EXPECT_NE(refusalOf(*provider, "problem(%0: f32[8]) %1: f32[8] = relu@14(%0) return(%1)"), "");
}

TEST_F(OneDnn2, BytesAreSummedWithoutSaturation) {
  const std::string text =
      "problem(%0: u8[1,64,14,14], %1: f32[] {0.02}, %2: u8[] {130}, %3: const i8[64,64,3,3], "
      "%4: const f32[64], %5: const f32[64], %6: f32[] {0.1}, %7: u8[] {9}) "
      "%8: f32[1,64,14,14] = dequantize_linear@21(%0, %1, %2) {axis=1, block_size=0}; "
      "%9: f32[64,64,3,3] = dequantize_linear@21(%3, %4) {axis=0, block_size=0}; "
      "%10: f32[1,64,14,14] = conv@11(%8, %9, %5) {" +
      std::string(k3x3) +
      "}; %11: u8[1,64,14,14] = quantize_linear@21(%10, %6, %7) {axis=1, block_size=0, "
      "saturate=1} return(%11)";
  Expected<Problem> problem = Problem::parse(text);
  ASSERT_TRUE(problem) << problem.error().message;
  Target target = Target::host(2);
  Proposal proposal = provider->propose(target, *problem);
  EXPECT_FALSE(proposal.candidates.empty())
      << (proposal.refusals.empty() ? "" : proposal.refusals[0].reason);
  for (const Candidate &candidate : proposal.candidates) {
    EXPECT_EQ(candidate.numerics, "int8") << candidate.algorithm;
    EXPECT_EQ(candidate.packing, DVT_PACKING_AT_LOAD) << candidate.algorithm;
  }
  // Without these instructions products are added in 16 bits.
  target.features = "sse41,avx,avx2,fma,avx512f";
  for (const Candidate &candidate : provider->propose(target, *problem).candidates)
    EXPECT_TRUE(candidate.algorithm.find("vnni") != std::string::npos ||
                candidate.algorithm.find("ref") != std::string::npos)
        << candidate.algorithm;
}

TEST_F(OneDnn2, WorksBesideItsSuccessor) {
  PluginSet plugins3 = loadPlugin("onednn", DOVETAIL_VENDOR_DIRS);
  const Provider *successor = plugins3.find("onednn");
  ASSERT_TRUE(successor);
  if (std::string missing = successor->info().libraries[0].missing; !missing.empty())
    GTEST_SKIP() << missing;
  EXPECT_NE(std::string(successor->info().libraries[0].version),
            std::string(provider->info().libraries[0].version));
  for (int round = 0; round < 2; ++round) {
    check(kConvolution);
    auto found = checkCandidates(*successor, kConvolution, 1e-5, 2);
    EXPECT_FALSE(found.empty());
    EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](const CheckedCandidate &candidate) {
      return candidate.algorithm.rfind("winograd", 0) == 0 && !isWinograd(candidate);
    })) << "direct kernels pose as Winograd";
  }
}
