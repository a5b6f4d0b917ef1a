// SPDX-License-Identifier: Apache-2.0
//
// What trials allow of quantised results, and that their operands make errors show.
#include <algorithm>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "plan/Quanta.h"

namespace dovetail::plan {
namespace {

Problem parsed(const std::string &text) {
  auto problem = Problem::parse(text);
  EXPECT_TRUE(problem) << (problem ? "" : problem.error().message);
  return std::move(*problem);
}

const char *const kProduct =
    "problem(%0: u8[4,400], %1: const f32[], %2: const u8[], %3: const i8[400,8], %4: const "
    "f32[8], "
    "%5: const f32[], %6: const i8[]) "
    "%7: f32[4,400] = dequantize_linear@28(%0, %1, %2) {axis=1, block_size=0, output_dtype=0}; "
    "%8: f32[400,8] = dequantize_linear@28(%3, %4) {axis=1, block_size=0, output_dtype=0}; "
    "%9: f32[4,8] = mat_mul@13(%7, %8); "
    "%10: i8[4,8] = quantize_linear@28(%9, %5, %6) {axis=1, block_size=0, output_dtype=0, "
    "precision=0, saturate=1} return(%10)";

TEST(Quanta, onlyWhatAQuantisationGivesMayDiffer) {
  Problem product = parsed(kProduct);
  EXPECT_EQ(allowedQuanta(product, product.outputs[0]), 1u);
  EXPECT_EQ(allowedQuanta(product, product.inputs[0]), 0u);
  Problem sums = parsed("problem(%0: u8[4,9], %1: const i8[9,8]) %2: i32[4,8] = "
                        "mat_mul_integer@10(%0, %1) return(%2)");
  EXPECT_EQ(allowedQuanta(sums, sums.outputs[0]), 0u);
}

TEST(Quanta, differencesAreCountedInTheTypesOwnRange) {
  const int8_t a[] = {-128, 5, 127}, b[] = {127, 5, 127};
  EXPECT_EQ(quantaBetween(DVT_I8, a, b, 3), 255u);
  const uint8_t c[] = {0, 255}, d[] = {1, 255};
  EXPECT_EQ(quantaBetween(DVT_U8, c, d, 2), 1u);
  EXPECT_FALSE(quantaBetween(DVT_I32, a, b, 0).has_value());
}

TEST(Quanta, noiseUsesTheWholeRangeAndResultsNeitherVanishNorSaturate) {
  Problem product = parsed(kProduct);
  auto bytes = quantizedNoise(product, product.inputs[0], {4, 400}, 1);
  ASSERT_TRUE(bytes);
  EXPECT_GT(std::set<uint8_t>(bytes->begin(), bytes->end()).size(), 200u);
  std::vector<float> scales[2];
  for (uint32_t value : product.inputs) {
    const ProblemValue &described = product.values[value];
    if (described.type != DVT_F32)
      continue;
    const bool single = described.extents.empty();
    auto noise = quantizedNoise(product, value,
                                single ? std::vector<int64_t>{} : std::vector<int64_t>{8}, 2);
    ASSERT_TRUE(noise);
    for (size_t i = 0; i < noise->size(); i += 4) {
      float scale;
      std::memcpy(&scale, &(*noise)[i], 4);
      EXPECT_GT(scale, 0);
      scales[single].push_back(scale);
    }
  }
  ASSERT_EQ(scales[0].size(), 8u);
  ASSERT_EQ(scales[1].size(), 2u);
  // The spread of a result in quanta: 73 * 73 * sqrt(400) times the scales, over that of the
  // result.
  const double spread = 73 * 73 * 20.0 * scales[0][0] * scales[1][0] / scales[1][1];
  EXPECT_GT(spread, 10);
  EXPECT_LT(spread, 300);
}

} // namespace
} // namespace dovetail::plan
