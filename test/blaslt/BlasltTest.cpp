// SPDX-License-Identifier: Apache-2.0
//
// Products through both plug-ins on the simulated device, compared with plain loops. The libraries
// are doubles: these tests prove that calls are right in order, sizes and lifetimes, and that the
// product handed over is the problem's; they prove nothing about the vendors' libraries.
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "BlasltFixture.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::HasSubstr;

namespace {

/// By class of rounding: relative to the largest result, for sums of up to some tens of terms.
const std::map<std::string, double> kBounds = {
    {"f32", 1e-6}, {"tf32", 2e-3}, {"f16", 1e-3}, {"bf16", 8e-3}};

class Products : public BlasltFixture {
protected:
  /// Runs all there is for the problem and compares; gives what there was.
  Proposal check(const std::string &text) {
    SCOPED_TRACE(text);
    const DeviceCase given(text);
    Proposal proposal = provider->propose(target, given.problem());
    EXPECT_FALSE(proposal.candidates.empty())
        << (proposal.refusals.empty() ? "" : proposal.refusals[0].reason);
    for (const Candidate &candidate : proposal.candidates) {
      SCOPED_TRACE(candidate.label());
      EXPECT_EQ(candidate.memory, DVT_MEMORY_DEVICE);
      EXPECT_GT(candidate.estimateMicros, 0);
      const DeviceKernel kernel(device, *provider, target, given, candidate);
      EXPECT_EQ(kernel.code(), DVT_OK) << kernel.message();
      if (kernel.code() != DVT_OK)
        continue;
      EXPECT_LE(kernel.workspaceBytes(), candidate.workspaceBytes);
      std::string failure;
      const double worst = kernel.run(failure);
      EXPECT_GE(worst, 0) << failure << " (" << doubleReason() << ")";
      EXPECT_LE(worst, kBounds.at(candidate.numerics));
    }
    return proposal;
  }
  std::vector<std::string> names(const Proposal &proposal) {
    std::vector<std::string> found;
    for (const Candidate &candidate : proposal.candidates)
      found.push_back(candidate.algorithm);
    return found;
  }
};

std::string product(const std::string &type, const std::string &a, const std::string &b,
                    const std::string &c) {
  return "problem(%0: " + type + a + ", %1: const " + type + b + ") %2: " + type + c +
         " = mat_mul@13(%0, %1) return(%2)";
}

} // namespace

TEST_P(Products, OfEveryTypeAndClass) {
  using testing::ElementsAre;
  EXPECT_THAT(names(check(product("f32", "[5,7]", "[7,6]", "[5,6]"))),
              ElementsAre("gemm:late", "gemm:measured", "gemm:late:tf32", "gemm:measured:tf32"));
  EXPECT_THAT(names(check(product("f16", "[5,7]", "[7,6]", "[5,6]"))),
              ElementsAre("gemm:late", "gemm:measured"));
  EXPECT_THAT(names(check(product("bf16", "[16,40]", "[40,33]", "[16,33]"))),
              ElementsAre("gemm:late", "gemm:measured"));
}

TEST_P(Products, OfVectorsAndSingleRows) {
  check(product("f32", "[1,7]", "[7,6]", "[1,6]"));
  check(product("f32", "[5,7]", "[7,1]", "[5,1]"));
  check(product("f32", "[7]", "[7,6]", "[6]"));
  check(product("f32", "[5,7]", "[7]", "[5]"));
  check(product("f32", "[3,1]", "[1,4]", "[3,4]"));
}

TEST_P(Products, OfBatches) {
  check(product("f32", "[2,3,5,7]", "[2,3,7,6]", "[2,3,5,6]"));
  check(product("f32", "[2,3,5,7]", "[7,6]", "[2,3,5,6]"));
  check(product("f16", "[5,7]", "[4,7,6]", "[4,5,6]"));
  check(product("f32", "[1,3,5,7]", "[1,1,7,6]", "[1,3,5,6]"));
}

TEST_P(Products, OfTransposedOperandsAndResults) {
  check("problem(%0: f32[7,5], %1: f32[6,7]) %2: f32[5,7] = transpose@13(%0) {perm=[1,0]}; %3: "
        "f32[7,6] = transpose@13(%1) {perm=[1,0]}; %4: f32[5,6] = mat_mul@13(%2, %3); %5: f32[6,5] "
        "= transpose@13(%4) {perm=[1,0]} return(%5)");
  // Heads of sequences side by side, as attention has them: of one, and of two, which takes two
  // calls.
  check("problem(%0: f16[2,5,3,4], %1: f16[2,6,3,4]) %2: f16[2,3,5,4] = transpose@13(%0) "
        "{perm=[0,2,1,3]}; %3: f16[2,3,4,6] = transpose@13(%1) {perm=[0,2,3,1]}; %4: f16[2,3,5,6] "
        "= mat_mul@13(%2, %3) return(%4)");
  check("problem(%0: f16[1,5,3,4], %1: f16[1,6,3,4]) %2: f16[1,3,5,4] = transpose@13(%0) "
        "{perm=[0,2,1,3]}; %3: f16[1,3,4,6] = transpose@13(%1) {perm=[0,2,3,1]}; %4: f16[1,3,5,6] "
        "= mat_mul@13(%2, %3) return(%4)");
}

TEST_P(Products, OfViewsIntoLargerTensors) {
  check("problem(%0: f32[5,7] strides[11,1], %1: f32[7,6] strides[1,9], %2: f32[5,6] strides[8,1]) "
        "%3: f32[5,6] = mat_mul@13(%0, %1); %4: f32[5,6] = add@14(%3, %2) return(%4)");
  check("problem(%0: f16[3,5,7] strides[60,12,1], %1: f16[3,7,6] strides[50,6,1]) %2: f16[3,5,6] = "
        "mat_mul@13(%0, %1) return(%2)");
}

TEST_P(Products, WithScalesAndAddends) {
  check("problem(%0: f32[5,7], %1: const f32[6,7], %2: const f32[6]) %3: f32[5,6] = gemm@13(%0, "
        "%1, %2) {alpha=0.5, beta=1.0, transA=0, transB=1} return(%3)");
  check("problem(%0: f32[7,5], %1: const f32[7,6], %2: f32[5,6]) %3: f32[5,6] = gemm@13(%0, %1, "
        "%2) {alpha=2.0, beta=-0.5, transA=1, transB=0} return(%3)");
  check("problem(%0: f32[5,7], %1: const f32[7,6], %2: f32[5,6], %3: f32[] {0.25}) %4: f32[5,6] = "
        "mat_mul@13(%0, %1); %5: f32[5,6] = mul@14(%4, %3); %6: f32[5,6] = sub@14(%2, %5) "
        "return(%6)");
}

TEST_P(Products, WithEpilogues) {
  const std::string begin = "problem(%0: f16[5,7], %1: const f16[7,6], %2: const f16[6], %3: "
                            "f16[5,6]) %4: f16[5,6] = mat_mul@13(%0, %1); ";
  check("problem(%0: f16[5,7], %1: const f16[7,6]) %2: f16[5,6] = mat_mul@13(%0, %1); %3: f16[5,6] "
        "= relu@14(%2) return(%3)");
  for (const std::string activation : {"relu@14(%4)", "gelu@20(%4) {approximate=\"tanh\"}"})
    check("problem(%0: f16[5,7], %1: const f16[7,6], %2: const f16[6]) %3: f16[5,6] = "
          "mat_mul@13(%0, %1); %4: f16[5,6] = add@14(%3, %2); %5: f16[5,6] = " +
          activation + " return(%5)");
  // A bias, a residual and an activation.
  check(begin + "%5: f16[5,6] = add@14(%4, %2); %6: f16[5,6] = add@14(%5, %3); %7: f16[5,6] = "
                "relu@14(%6) return(%7)");
  check(begin + "%5: f16[5,6] = add@14(%3, %4); %6: f16[5,6] = add@14(%2, %5) return(%6)");
}

TEST_P(Products, OfImages) {
  const std::string attributes =
      " {dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]}";
  const Proposal plain = check("problem(%0: f32[2,8,3,5], %1: const f32[6,8,1,1]) %2: f32[2,6,3,5] "
                               "= conv@22(%0, %1)" +
                               attributes + " return(%2)");
  const Proposal fused =
      check("problem(%0: f32[2,8,3,5], %1: const f32[6,8,1,1], %2: const f32[6], %3: f32[2,6,3,5]) "
            "%4: f32[2,6,3,5] = conv@22(%0, %1, %2)" +
            attributes +
            "; %5: f32[2,6,3,5] = add@14(%4, %3); %6: f32[2,6,3,5] = relu@14(%5) return(%6)");
  std::set<std::string> layouts;
  for (const Candidate &candidate : plain.candidates)
    layouts.insert(candidate.inputLayouts[0]);
  EXPECT_EQ(layouts, (std::set<std::string>{"", "acdb"}));
  // A bias is one for each column, so channels must be columns.
  for (const Candidate &candidate : fused.candidates) {
    EXPECT_EQ(candidate.inputLayouts[0], "acdb");
    EXPECT_EQ(candidate.inputLayouts[3], "acdb");
    EXPECT_EQ(candidate.outputLayouts[0], "acdb");
  }
}

TEST_P(Products, InPlaceOfAResidual) {
  const DeviceCase given("problem(%0: f32[5,7], %1: const f32[7,6], %2: f32[5,6]) %3: f32[5,6] = "
                         "mat_mul@13(%0, %1); %4: f32[5,6] alias(2) = add@14(%3, %2) return(%4)");
  const Proposal proposal = provider->propose(target, given.problem());
  ASSERT_FALSE(proposal.candidates.empty());
  const DeviceKernel kernel(device, *provider, target, given, proposal.candidates[0]);
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  std::string failure;
  const double worst = kernel.run({nullptr, 2, false}, failure);
  EXPECT_GE(worst, 0) << failure << doubleReason();
  EXPECT_LE(worst, kBounds.at("f32"));
}

TEST_P(Products, TakeOtherMemoryInEachRun) {
  const std::string text = "problem(%0: f32[5,7], %1: f32[7,6], %2: f32[6]) %3: f32[5,6] = "
                           "mat_mul@13(%0, %1); %4: f32[5,6] = add@14(%3, %2) return(%4)";
  const DeviceCase first(text, 1), second(text, 2);
  const Candidate candidate = provider->propose(target, first.problem()).candidates.at(0);
  const DeviceKernel kernel(device, *provider, target, first, candidate);
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  std::string failure;
  for (const DeviceCase *operands : {&first, &second, &first}) {
    const double worst = kernel.run({operands, -1, false}, failure);
    EXPECT_GE(worst, 0) << failure << doubleReason();
    EXPECT_LE(worst, kBounds.at("f32"));
  }
  std::string failures[2];
  double errors[2] = {};
  std::thread other([&] { errors[1] = kernel.run({&second, -1, false}, failures[1]); });
  errors[0] = kernel.run({&first, -1, false}, failures[0]);
  other.join();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GE(errors[i], 0) << failures[i];
    EXPECT_LE(errors[i], kBounds.at("f32"));
  }
}

TEST_P(Products, LeaveNothingBehind) {
  EXPECT_EQ(doubleObjects(), 0u);
  {
    const DeviceCase given(product("f32", "[5,7]", "[7,6]", "[5,6]"));
    const Candidate candidate = provider->propose(target, given.problem()).candidates.at(0);
    const DeviceKernel one(device, *provider, target, given, candidate),
        two(device, *provider, target, given, candidate);
    // A handle for both; of each a description and four layouts.
    EXPECT_EQ(doubleObjects(), 1u + 2 * 5);
  }
  EXPECT_EQ(doubleObjects(), 0u);
}

TEST_P(Products, AreTimedWhereThatIsWanted) {
  const DeviceCase given("problem(%0: f32[32,16], %1: const f32[16,32], %2: const f32[32], %3: "
                         "f32[32,32]) %4: f32[32,32] = mat_mul@13(%0, %1); %5: f32[32,32] = "
                         "add@14(%4, %2); %6: f32[32,32] = add@14(%5, %3) return(%6)");
  const Candidate candidate = provider->propose(target, given.problem()).candidates.at(1);
  ASSERT_EQ(candidate.algorithm, "gemm:measured");
  EXPECT_FALSE(candidate.deterministic);
  auto count = [&](const char *what) { return device::simulatedCount(api(), what); };
  const uint64_t calls = count("library calls"), blocks = count("blocks"), events = count("events");
  const DeviceKernel kernel(device, *provider, target, given, candidate);
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  // Two algorithms; of each one run and two rounds of four.
  EXPECT_EQ(count("library calls"), calls + 2 * (1 + 2 * 4));
  EXPECT_EQ(count("blocks"), blocks);
  EXPECT_EQ(count("events"), events);
  std::string failure;
  const double worst = kernel.run(failure);
  EXPECT_GE(worst, 0) << failure << doubleReason();
  EXPECT_LE(worst, kBounds.at("f32"));
}

TEST_P(Products, ThatReadFreedMemoryAreNoticed) {
  const DeviceCase given(product("f32", "[5,7]", "[7,6]", "[5,6]"));
  const Candidate candidate = provider->propose(target, given.problem()).candidates.at(0);
  const DeviceKernel kernel(device, *provider, target, given, candidate);
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  std::string failure;
  EXPECT_LT(kernel.run({nullptr, -1, true}, failure), 0);
  EXPECT_THAT(failure, HasSubstr("multiplying: " + status("EXECUTION_FAILED")));
  EXPECT_THAT(doubleReason(), HasSubstr("freed"));
}

INSTANTIATE_TEST_SUITE_P(, Products, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });
