// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of all sizes around the vector width, with constant and computed right sides,
// transposes, batches, element-wise followers and run-time extents.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Harness.h"

namespace dovetail::test {
namespace {

TEST(MatMul, TailsWithConstantRight) {
  for (int m : {1, 2, 7, 16, 33})
    for (int n : {1, 3, 15, 16, 17, 64, 100})
      checkProblem(fmt::format("problem(%0: f32[{0},31], %1: const f32[31,{1}]) %2: f32[{0},{1}] = "
                               "mat_mul@13(%0, %1) return(%2)",
                               m, n));
}

TEST(MatMul, TailsWithComputedRight) {
  for (int m : {1, 3, 17, 64})
    for (int n : {1, 2, 17, 33, 100})
      for (int k : {1, 2, 33})
        checkProblem(fmt::format("problem(%0: f32[{0},{2}], %1: f32[{2},{1}]) %2: f32[{0},{1}] = "
                                 "mat_mul@13(%0, %1) return(%2)",
                                 m, n, k));
}

TEST(MatMul, Depths) {
  for (int k : {1, 2, 3, 7, 15, 16, 64, 100, 1024})
    checkProblem(fmt::format("problem(%0: f32[31,{0}], %1: const f32[{0},33]) %2: f32[31,33] = "
                             "mat_mul@13(%0, %1) return(%2)",
                             k));
}

TEST(MatMul, Gemm) {
  for (int ta : {0, 1})
    for (int tb : {0, 1})
      for (const char *kind : {"const ", ""}) {
        std::string a = ta ? "17,15" : "15,17", b = tb ? "33,17" : "17,33";
        checkProblem(fmt::format(
            "problem(%0: f32[{}], %1: {}f32[{}], %2: const f32[33]) %3: f32[15,33] = "
            "gemm@13(%0, %1, %2) {{alpha=0.5, beta=2.0, transA={}, transB={}}} return(%3)",
            a, kind, b, ta, tb));
      }
}

TEST(MatMul, BatchesFoldIntoRows) {
  checkProblem(
      "problem(%0: f32[2,3,5,17], %1: const f32[17,33], %2: const f32[33], %3: f32[2,3,5,33]) "
      "%4: f32[2,3,5,33] = mat_mul@13(%0, %1); %5: f32[2,3,5,33] = add@14(%4, %2); "
      "%6: f32[2,3,5,33] = add@14(%5, %3) return(%6)");
}

TEST(MatMul, BatchesWithFollowersThatDoNotFold) {
  checkProblem(
      "problem(%0: f32[2,3,5,17], %1: const f32[17,33], %2: f32[3,1,33], %3: f32[2,1,5,1]) "
      "%4: f32[2,3,5,33] = mat_mul@13(%0, %1); %5: f32[2,3,5,33] = add@14(%4, %2); "
      "%6: f32[2,3,5,33] = mul@14(%5, %3) return(%6)");
}

TEST(MatMul, BatchedBothSides) {
  checkProblem("problem(%0: f32[2,3,20,17], %1: f32[2,3,17,33]) %2: f32[2,3,20,33] = "
               "mat_mul@13(%0, %1) return(%2)");
  checkProblem("problem(%0: f32[2,1,20,17], %1: f32[3,17,33]) %2: f32[2,3,20,33] = mat_mul@13(%0, "
               "%1) return(%2)");
}

TEST(MatMul, TransposesFeedIt) {
  checkProblem(
      "problem(%0: f32[2,40,3,17], %1: f32[2,33,3,17]) %2: f32[2,3,40,17] = transpose@13(%0) "
      "{perm=[0,2,1,3]}; %3: f32[2,3,17,33] = transpose@13(%1) {perm=[0,2,3,1]}; "
      "%4: f32[2,3,40,33] = mat_mul@13(%2, %3) return(%4)");
}

TEST(MatMul, Vectors) {
  checkProblem(
      "problem(%0: f32[17], %1: const f32[17,33]) %2: f32[33] = mat_mul@13(%0, %1) return(%2)");
  checkProblem("problem(%0: f32[33,17], %1: f32[17]) %2: f32[33] = mat_mul@13(%0, %1) return(%2)");
  checkProblem("problem(%0: f32[17], %1: f32[17]) %2: f32[] = mat_mul@13(%0, %1) return(%2)");
  checkProblem("problem(%0: f32[2,3,17], %1: const f32[17], %2: f32[2,3]) %3: f32[2,3] = "
               "mat_mul@13(%0, %1); "
               "%4: f32[2,3] = add@14(%3, %2) return(%4)");
}

TEST(MatMul, Followers) {
  checkProblem(
      "problem(%0: f32[20,17], %1: const f32[17,40], %2: const f32[40], %3: f32[20,40], %4: "
      "bool[20,40]) "
      "%5: f32[20,40] = mat_mul@13(%0, %1); %6: f32[20,40] = add@14(%5, %2); "
      "%7: f32[20,40] = gelu@20(%6) {approximate=\"none\"}; %8: f32[20,40] = add@14(%7, %3); "
      "%9: f32[20,40] = where@16(%4, %8, %6) return(%9, %5)");
  checkProblem("problem(%0: f32[20,17], %1: const f32[17,40], %2: f32[] {0.25}, %3: f32[20,1]) "
               "%4: f32[20,40] = mat_mul@13(%0, %1); %5: f32[20,40] = mul@14(%4, %2); "
               "%6: f32[20,40] = mul@14(%5, %3); %7: f32[20,40] = hard_swish@14(%6) return(%7)");
}

TEST(MatMul, RunTimeRows) {
  CheckOptions options;
  for (int64_t m : {1, 2, 5, 8, 9, 31, 64})
    options.symbols.push_back({{"M", m}});
  options.symbols.erase(options.symbols.begin());
  checkProblem("problem(%0: f32[M,17], %1: const f32[17,40], %2: const f32[40]) %3: f32[M,40] = "
               "mat_mul@13(%0, %1); "
               "%4: f32[M,40] = add@14(%3, %2) return(%4) where M in 1..64",
               options);
}

TEST(MatMul, RunTimeEverything) {
  CheckOptions options;
  options.symbols = {{{"B", 1}, {"S", 1}}, {{"B", 2}, {"S", 19}}, {{"B", 3}, {"S", 40}}};
  // Attention scores and their use.
  checkProblem("problem(%0: f32[B,S,12], %1: f32[B,S,12]) %2: f32[B,12,S] = transpose@13(%1) "
               "{perm=[0,2,1]}; "
               "%3: f32[B,S,S] = mat_mul@13(%0, %2) return(%3) where B in 1..4, S in 1..64",
               options);
  checkProblem(
      "problem(%0: f32[B,S,S], %1: f32[B,S,24]) %2: f32[B,S,24] = mat_mul@13(%0, %1) return(%2) "
      "where B in 1..4, S in 1..64",
      options);
}

TEST(MatMul, RefusesWhatItCannot) {
  auto refusals = refusalsOf("problem(%0: f32[4,4], %1: f32[4,4]) %2: f32[4,4] = relu@14(%0); "
                             "%3: f32[4,4] = mat_mul@13(%2, %1) return(%3)");
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_NE(refusals[0].find("relu before mat_mul"), std::string::npos) << refusals[0];
  refusals = refusalsOf(
      "problem(%0: f64[4,4], %1: f64[4,4]) %2: f64[4,4] = mat_mul@13(%0, %1) return(%2)");
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_NE(refusals[0].find("f64"), std::string::npos) << refusals[0];
}

TEST(MatMul, PanelsSideBySide) {
  // Weights too large for the cache; the columns leave every number of panels for the last tile.
  for (int n : {256, 320, 336, 560, 1008}) {
    Checked checked = checkProblem(
        fmt::format("problem(%0: f32[1,601], %1: const f32[601,{0}], %2: const f32[{0}]) "
                    "%3: f32[1,{0}] = mat_mul@13(%0, %1); %4: f32[1,{0}] = add@14(%3, %2) "
                    "return(%4)",
                    n));
    EXPECT_TRUE(std::any_of(checked.algorithms.begin(), checked.algorithms.end(),
                            [](const std::string &name) { return name.find(":s") != name.npos; }))
        << n;
  }
  checkProblem("problem(%0: f32[1,512], %1: const f32[528,512]) %2: f32[1,528] = gemm@13(%0, %1) "
               "{alpha=1.0, beta=1.0, transA=0, transB=1} return(%2)");
  checkProblem(
      "problem(%0: f32[3,1,64], %1: const f32[64,4096]) %2: f32[3,1,4096] = mat_mul@13(%0, "
      "%1) return(%2)");
}

} // namespace
} // namespace dovetail::test
