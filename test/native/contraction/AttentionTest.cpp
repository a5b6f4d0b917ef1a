// SPDX-License-Identifier: Apache-2.0
//
// Attention with sizes around the vector width and the blocks of keys, masks of both kinds,
// causality, shared heads, transposes around it and run-time lengths.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Harness.h"

namespace dovetail::test {
namespace {

std::string plain(int64_t queries, int64_t keys, int64_t size, int64_t valueSize) {
  return fmt::format("problem(%0: f32[1,2,{0},{2}], %1: f32[1,2,{1},{2}], %2: f32[1,2,{1},{3}]) "
                     "%3: f32[1,2,{0},{3}] = attention@24(%0, %1, %2) return(%3)",
                     queries, keys, size, valueSize);
}

TEST(Attention, Lengths) {
  for (int64_t queries : {1, 7, 33, 70})
    for (int64_t keys : {1, 15, 32, 33, 64, 257})
      checkProblem(plain(queries, keys, 16, 16));
}

TEST(Attention, HeadSizes) {
  for (int64_t size : {1, 3, 16, 20, 64})
    for (int64_t valueSize : {1, 17, 32, 40, 64})
      checkProblem(plain(20, 40, size, valueSize));
}

TEST(Attention, Masks) {
  for (const char *mask :
       {"f32[1,1,1,45]", "f32[2,3,20,45]", "f32[20,45]", "bool[2,1,20,45]", "bool[45]"})
    checkProblem(
        fmt::format("problem(%0: f32[2,3,20,24], %1: f32[2,3,45,24], %2: f32[2,3,45,24], %3: {}) "
                    "%4: f32[2,3,20,24] = attention@24(%0, %1, %2, %3) {{scale=0.3}} return(%4)",
                    mask));
}

TEST(Attention, Causal) {
  for (int64_t keys : {20, 45, 300})
    checkProblem(fmt::format(
        "problem(%0: f32[1,2,70,16], %1: f32[1,2,{0},16], %2: f32[1,2,{0},16], %3: bool[70,{0}]) "
        "%4: f32[1,2,70,16] = attention@24(%0, %1, %2, %3) {{is_causal=1}} return(%4)",
        keys));
}

TEST(Attention, SharedHeadsSideBySide) {
  checkProblem("problem(%0: f32[2,20,48], %1: f32[2,33,16], %2: f32[2,33,24]) %3: f32[2,20,72] = "
               "attention@24(%0, %1, %2) {kv_num_heads=2, q_num_heads=6} return(%3)");
}

TEST(Attention, TransposesAround) {
  checkProblem("problem(%0: f32[2,20,3,16], %1: f32[2,33,3,16], %2: f32[2,33,3,16]) "
               "%3: f32[2,3,20,16] = transpose@13(%0) {perm=[0,2,1,3]}; "
               "%4: f32[2,3,33,16] = transpose@13(%1) {perm=[0,2,1,3]}; "
               "%5: f32[2,3,33,16] = transpose@13(%2) {perm=[0,2,1,3]}; "
               "%6: f32[2,3,20,16] = attention@24(%3, %4, %5) {scale=0.125}; "
               "%7: f32[2,20,3,16] = transpose@13(%6) {perm=[0,2,1,3]} return(%7)");
  checkProblem("problem(%0: f32[2,3,20,16], %1: f32[2,3,16,33], %2: f32[2,3,33,16]) "
               "%3: f32[2,3,33,16] = transpose@13(%1) {perm=[0,1,3,2]}; "
               "%4: f32[2,3,20,16] = attention@24(%0, %3, %2) return(%4)");
}

TEST(Attention, RunTimeLengths) {
  CheckOptions options;
  options.symbols = {{{"B", 1}, {"S", 1}, {"T", 1}},
                     {{"B", 2}, {"S", 19}, {"T", 300}},
                     {{"B", 1}, {"S", 70}, {"T", 33}}};
  checkProblem("problem(%0: f32[B,2,S,16], %1: f32[B,2,T,16], %2: f32[B,2,T,16], %3: f32[B,1,1,T]) "
               "%4: f32[B,2,S,16] = attention@24(%0, %1, %2, %3) return(%4) where B in 1..4, S in "
               "1..512, T in 1..512",
               options);
}

TEST(Attention, RefusesWhatItCannot) {
  auto refusals =
      refusalsOf("problem(%0: f32[1,2,4,4], %1: f32[1,2,4,4], %2: f32[1,2,4,4]) %3: f32[1,2,4,4] = "
                 "attention@24(%0, %1, %2) {softcap=2.0} return(%3)");
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_NE(refusals[0].find("soft cap"), std::string::npos) << refusals[0];
}

} // namespace
} // namespace dovetail::test
