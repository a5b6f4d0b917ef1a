// SPDX-License-Identifier: Apache-2.0
//
// Products with weights of 4 and 8 bits: depths that are no multiple of a block or a word, odd
// numbers of columns, with and without zero points, both orders of the weights, all numbers of
// rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

CheckOptions sums() {
  CheckOptions options;
  options.low = -1;
  options.high = 1;
  options.allBytes = true;
  options.relative = 1e-5;
  options.absolute = 4e-4; // of sums of some hundred terms of up to 16
  return options;
}

struct Sizes {
  int64_t rows, depth, columns, block;
};

/// Weights by column (as MatMulNBits has them) or by depth (as exporters of QDQ graphs do).
std::string problem(Sizes s, const std::string &type, bool byColumn, const std::string &zeros,
                    const std::string &rows = "") {
  int64_t blocks = (s.depth + s.block - 1) / s.block;
  std::string x = fmt::format("f32[{},{}]", rows.empty() ? std::to_string(s.rows) : rows, s.depth),
              y = fmt::format("f32[{},{}]", rows.empty() ? std::to_string(s.rows) : rows,
                              s.columns),
              weights = byColumn ? fmt::format("[{},{}]", s.columns, s.depth)
                                 : fmt::format("[{},{}]", s.depth, s.columns),
              scales = byColumn ? fmt::format("[{},{}]", s.columns, blocks)
                                : fmt::format("[{},{}]", blocks, s.columns);
  std::string text =
      fmt::format("problem(%0: {}, %1: const {}{}, %2: const f32{}", x, type, weights, scales);
  if (zeros == "given")
    text += fmt::format(", %3: const {}{}", type, scales);
  else if (!zeros.empty())
    text += fmt::format(", %3: {}{} {{{}..}}", type, scales, zeros);
  text += fmt::format(") %4: f32{} = dequantize_linear@21(%1, %2{}) {{axis={}, block_size={}}}; ",
                      weights, zeros.empty() ? "" : ", %3", byColumn ? 1 : 0, s.block);
  if (byColumn)
    text += fmt::format("%5: f32[{},{}] = transpose@13(%4) {{perm=[1,0]}}; ", s.depth, s.columns);
  text += fmt::format("%6: {} = mat_mul@13(%0, %{}) return(%6)", y, byColumn ? 5 : 4);
  return rows.empty() ? text : text + " where " + rows + " in 0..4096";
}

TEST(BlockMatMul, TypesOrdersAndZeroPoints) {
  for (const char *type : {"u4", "i4", "u8", "i8"})
    for (bool byColumn : {true, false})
      for (const char *zeros : {"", "given", "3"})
        for (int64_t rows : {1, 5, 17})
          checkNative(problem({rows, 96, 80, 32}, type, byColumn, zeros), sums());
}

TEST(BlockMatMul, OddSizes) {
  for (Sizes sizes : std::vector<Sizes>{{1, 97, 33, 32},
                                        {2, 40, 17, 16},
                                        {3, 33, 65, 256},
                                        {4, 131, 7, 64},
                                        {8, 72, 49, 24},
                                        {9, 29, 100, 5},
                                        {20, 257, 31, 128}})
    for (bool byColumn : {true, false})
      for (const char *type : {"u4", "i8"})
        checkNative(problem(sizes, type, byColumn, "given"), sums());
}

TEST(BlockMatMul, EveryNumberOfFewRows) {
  for (int64_t rows = 1; rows <= 10; ++rows)
    checkNative(problem({rows, 64, 72, 16}, "u4", true, "8"), sums());
}

TEST(BlockMatMul, RowsKnownAtRunTime) {
  CheckOptions options = sums();
  options.bindings.clear();
  for (int64_t rows : {1, 2, 3, 4, 8, 9, 31, 200, 0})
    options.bindings.push_back({{"M", rows}});
  checkNative(problem({0, 96, 80, 32}, "u4", true, "given", "M"), options);
  checkNative(problem({0, 65, 50, 16}, "i4", false, "", "M"), options);
}

TEST(BlockMatMul, FewPanelsOfManyRowsAreShared) {
  CheckResult result = checkNative(problem({300, 64, 48, 32}, "i4", false, "given"), sums());
  bool isShared = false;
  for (const std::string &candidate : result.candidates)
    isShared |= candidate.find(":m96") != std::string::npos;
  EXPECT_TRUE(isShared);
}

TEST(BlockMatMul, ScalesByColumnAndForAll) {
  for (const char *scale : {"const f32[50]", "f32[] {0.125}"})
    for (const char *zero : {"", ", %3: const i8[50]"}) {
      bool one = std::string(scale).starts_with("f32[]");
      checkNative(fmt::format("problem(%0: f32[2,40], %1: const i8[40,50], %2: {}{}) "
                              "%4: f32[40,50] = dequantize_linear@21(%1, %2{}) {{axis=1, "
                              "block_size=0}}; %5: f32[2,50] = mat_mul@13(%0, %4) return(%5)",
                              scale, one && *zero ? ", %3: i8[] {5}" : zero, *zero ? ", %3" : ""),
                  sums());
    }
}

TEST(BlockMatMul, GemmBiasAndFollowers) {
  checkNative("problem(%0: f32[4,64], %1: const u4[50,64], %2: const f32[50,2], %3: const f32[50], "
              "%4: f32[4,50]) %5: f32[50,64] = dequantize_linear@21(%1, %2) {axis=1, "
              "block_size=32}; %6: f32[4,50] = gemm@13(%0, %5, %3) {alpha=0.5, beta=2.0, transA=0, "
              "transB=1}; %7: f32[4,50] = sigmoid@13(%6); %8: f32[4,50] = mul@14(%7, %4) "
              "return(%8)",
              sums());
  checkNative("problem(%0: f32[2,3,64], %1: const i4[64,50], %2: const f32[2,50], "
              "%3: f32[2,3,50]) %4: f32[64,50] = dequantize_linear@21(%1, %2) {axis=0, "
              "block_size=32}; %5: f32[2,3,50] = mat_mul@13(%0, %4); %6: f32[2,3,50] = "
              "add@14(%3, %5) return(%6)",
              sums());
}

TEST(BlockMatMul, SixteenBitFloats) {
  CheckOptions options = sums();
  options.quanta = 4; // the truth rounds the weights, too
  options.largest = 64;
  for (const char *type : {"f16", "bf16"})
    for (int rows : {1, 5, 20})
      checkNative(fmt::format("problem(%0: {0}[{1},96], %1: const u4[50,96], %2: const {0}[50,3], "
                              "%3: const u4[50,3]) %4: {0}[50,96] = dequantize_linear@21(%1, %2, "
                              "%3) {{axis=1, block_size=32}}; %5: {0}[96,50] = transpose@13(%4) "
                              "{{perm=[1,0]}}; %6: {0}[{1},50] = mat_mul@13(%0, %5) return(%6)",
                              type, rows),
                  options);
}

TEST(BlockMatMul, SmallConstantsThatArePartOfTheProblem) {
  checkNative("problem(%0: f32[2,4], %1: u4[2,4] {15,0,3,8,7,1,2,9}, %2: const f32[2,2], "
              "%3: u4[2,2] {1,2,3,15}) %4: f32[2,4] = dequantize_linear@21(%1, %2, %3) {axis=1, "
              "block_size=2}; %5: f32[4,2] = transpose@13(%4) {perm=[1,0]}; %6: f32[2,2] = "
              "mat_mul@13(%0, %5) return(%6)",
              sums());
}

TEST(BlockMatMul, SaysWhatItDoesNotTake) {
  auto with = [](const std::string &scales, const std::string &attributes) {
    return refusalOf(fmt::format("problem(%0: f32[2,64], %1: const u4[64,32], %2: const {}) "
                                 "%3: f32[64,32] = dequantize_linear@21(%1, %2) {{{}}}; "
                                 "%4: f32[2,32] = mat_mul@13(%0, %3) return(%4)",
                                 scales, attributes));
  };
  EXPECT_NE(with("f32[64,2]", "axis=1, block_size=16").find("blocks along the depth"),
            std::string::npos);
  EXPECT_NE(with("f32[64]", "axis=0, block_size=0").find("blocks along the depth"),
            std::string::npos);
  EXPECT_EQ(with("f32[2,32]", "axis=0, block_size=32"), "");
}

} // namespace
} // namespace dovetail::test
