// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and convolutions of 16-bit floats: widened while they are packed or copied,
// summed in f32, rounded once. Bounds are in units of the last place of the largest results, since
// the reference rounds after each op.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

std::string withType(std::string text, const std::string &type) {
  for (size_t at; (at = text.find('T')) != text.npos;)
    text.replace(at, 1, type);
  return text;
}

CheckResult checkHalves(const std::string &text, double largest) {
  CheckOptions options;
  options.low = -1;
  options.high = 1;
  options.quanta = 2;
  options.largest = largest;
  options.relative = options.absolute = 0.01; // of f32 results, whose operands were rounded
  CheckResult all;
  for (const char *type : {"f16", "bf16"}) {
    CheckResult one = checkNative(withType(text, type), options);
    all.candidates.insert(all.candidates.end(), one.candidates.begin(), one.candidates.end());
  }
  return all;
}

TEST(HalfMatMul, ConstantRightSides) {
  for (int m : {1, 3, 7, 33})
    for (int n : {1, 17, 64, 100})
      checkHalves(fmt::format("problem(%0: T[{0},31], %1: const T[31,{1}]) %2: T[{0},{1}] = "
                              "mat_mul@13(%0, %1) return(%2)",
                              m, n),
                  8);
}

TEST(HalfMatMul, FewRowsKeepWeightsNarrow) {
  CheckResult result = checkHalves(
      "problem(%0: T[1,256], %1: const T[256,320]) %2: T[1,320] = mat_mul@13(%0, %1) return(%2)",
      16);
  bool narrow = false;
  for (const std::string &candidate : result.candidates)
    narrow |= candidate.find(":bh") != std::string::npos;
  EXPECT_TRUE(narrow);
}

TEST(HalfMatMul, ComputedRightSides) {
  for (int m : {1, 5, 40})
    for (int n : {1, 17, 70})
      checkHalves(fmt::format("problem(%0: T[2,{0},33], %1: T[2,33,{1}]) %2: T[2,{0},{1}] = "
                              "mat_mul@13(%0, %1) return(%2)",
                              m, n),
                  8);
}

TEST(HalfMatMul, TransposedSidesAndGemm) {
  for (int ta : {0, 1})
    for (int tb : {0, 1})
      for (const char *kind : {"const ", ""})
        checkHalves(fmt::format("problem(%0: T[{}], %1: {}T[{}], %2: const T[33]) %3: T[15,33] = "
                                "gemm@13(%0, %1, %2) {{alpha=0.5, beta=2.0, transA={}, transB={}}} "
                                "return(%3)",
                                ta ? "17,15" : "15,17", kind, tb ? "33,17" : "17,33", ta, tb),
                    4);
}

TEST(HalfMatMul, Followers) {
  checkHalves("problem(%0: T[5,64], %1: const T[64,48], %2: const T[48], %3: T[5,48]) "
              "%4: T[5,48] = mat_mul@13(%0, %1); %5: T[5,48] = add@14(%4, %2); "
              "%6: T[5,48] = add@14(%5, %3); %7: T[5,48] = relu@14(%6) return(%7)",
              16);
  checkHalves("problem(%0: T[9,64], %1: const T[64,48]) %2: T[9,48] = mat_mul@13(%0, %1); "
              "%3: f32[9,48] = cast@28(%2) {round_mode=\"up\", saturate=1, to=1} return(%3)",
              16);
  // Whole numbers: what is compared is exact before it is rounded, and bf16 must round it.
  for (const char *type : {"f16", "bf16"})
    checkNative(withType("problem(%0: T[9,64], %1: const T[64,48], %2: T[9,48]) "
                         "%3: T[9,48] = mat_mul@13(%0, %1); %4: bool[9,48] = less@13(%3, %2) "
                         "return(%4)",
                         type),
                {.values = {1, 2, 256, 129, 300, 258}});
}

TEST(HalfMatMul, RunTimeRows) {
  CheckOptions options;
  options.bindings = {{{"N", 1}}, {{"N", 5}}, {{"N", 40}}};
  options.low = -1;
  options.high = 1;
  options.largest = 8;
  for (const char *type : {"f16", "bf16"})
    checkNative(withType("problem(%0: T[N,31], %1: const T[31,40]) %2: T[N,40] = "
                         "mat_mul@13(%0, %1) return(%2) where N in 1..4096",
                         type),
                options);
}

std::string convolution(const char *image, const char *weights, const char *result,
                        const char *attributes, const char *bias = "%2") {
  return fmt::format("problem(%0: T[{}], %1: const T[{}], %2: const T[{}]) %3: T[{}] = "
                     "conv@22(%0, %1, {}) {{{}}}; %4: T[{}] = relu@14(%3) return(%4)",
                     image, weights, std::string(weights).substr(0, std::string(weights).find(',')),
                     result, bias, attributes, result);
}

TEST(HalfConvolution, PointwiseAndWindows) {
  checkHalves(convolution("2,40,7,9", "24,40,1,1", "2,24,7,9",
                          "dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], "
                          "strides=[1,1]"),
              16);
  checkHalves(convolution("1,32,9,11", "48,32,3,3", "1,48,9,11",
                          "dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], "
                          "strides=[1,1]"),
              16);
  checkHalves(convolution("1,3,21,23", "20,3,7,7", "1,20,11,12",
                          "dilations=[1,1], group=1, kernel_shape=[7,7], pads=[3,3,3,3], "
                          "strides=[2,2]"),
              16);
  checkHalves(convolution("1,32,10,10", "32,8,3,3", "1,32,4,4",
                          "dilations=[2,2], group=4, kernel_shape=[3,3], pads=[1,1,1,1], "
                          "strides=[2,2]"),
              16);
}

TEST(HalfConvolution, Depthwise) {
  for (int stride : {1, 2})
    checkHalves(convolution("1,40,11,13", "40,1,3,3", stride == 1 ? "1,40,11,13" : "1,40,6,7",
                            fmt::format("dilations=[1,1], group=40, kernel_shape=[3,3], "
                                        "pads=[1,1,1,1], strides=[{0},{0}]",
                                        stride)
                                .c_str()),
                4);
}

/// A depthwise convolution, what follows it, and a pointwise one with a residual, in one kernel.
void checkSeparable(int channels, int columns, int size, int stride) {
  auto out = [&](int extent) { return (extent + size / 2 * 2 - size) / stride + 1; };
  std::string inside = fmt::format("T[2,{},{},{}]", channels, out(9), out(columns));
  std::string after = fmt::format("T[2,24,{},{}]", out(9), out(columns));
  CheckResult result = checkHalves(
      fmt::format("problem(%0: T[2,{0},9,{1}], %1: const T[{0},1,{2},{2}], %2: const T[{0}], %3: "
                  "const T[24,{0},1,1], %4: const T[24], %5: {3}) %6: {4} = conv@22(%0, %1, %2) "
                  "{{dilations=[1,1], group={0}, kernel_shape=[{2},{2}], pads=[{5},{5},{5},{5}], "
                  "strides=[{6},{6}]}}; %7: {4} = relu@14(%6); %8: {3} = conv@22(%7, %3, %4) "
                  "{{dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], "
                  "strides=[1,1]}}; %9: {3} = add@14(%8, %5) return(%9)",
                  channels, columns, size, after, inside, size / 2, stride),
      32);
  EXPECT_TRUE(
      std::any_of(result.candidates.begin(), result.candidates.end(), [](const std::string &label) {
        return label.find("separable") != std::string::npos;
      }));
}

TEST(HalfConvolution, Separable) {
  checkSeparable(40, 11, 3, 1);
  checkSeparable(33, 14, 5, 2);
  checkSeparable(64, 7, 3, 2);
}

TEST(HalfConvolution, SeparableRowsKnownAtRunTime) {
  CheckOptions options;
  options.bindings = {{{"H", 1}}, {{"H", 10}}, {{"H", 21}}};
  options.low = -1;
  options.high = 1;
  options.quanta = 2;
  options.largest = 32;
  for (const char *type : {"f16", "bf16"})
    checkNative(withType("problem(%0: T[1,20,H,9], %1: const T[20,1,3,3], %2: const T[32,20,1,1]) "
                         "%3: T[1,20,H,9] = conv@22(%0, %1) {dilations=[1,1], group=20, "
                         "kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]}; %4: T[1,32,H,9] = "
                         "conv@22(%3, %2) {dilations=[1,1], group=1, kernel_shape=[1,1], "
                         "pads=[0,0,0,0], strides=[1,1]} return(%4) where H in 1..64",
                         type),
                options);
}

TEST(HalfConvolution, Transposed) {
  checkHalves("problem(%0: T[1,20,5,6], %1: const T[20,17,2,2]) %2: T[1,17,10,12] = "
              "conv_transpose@22(%0, %1) {dilations=[1,1], group=1, kernel_shape=[2,2], "
              "output_padding=[0,0], pads=[0,0,0,0], strides=[2,2]} return(%2)",
              8);
}

TEST(HalfConvolution, LiteralsAfterIt) {
  for (const char *type : {"f32", "f16"})
    checkNative(
        withType("problem(%0: T[1,20,5,6], %1: const T[3,20,1,1], %2: T[3] {0.5,-1.0,2.0}, "
                 "%3: T[3,1,1] {1.0,0.5,0.25}) %4: T[1,3,5,6] = conv@22(%0, %1, %2) "
                 "{dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], "
                 "strides=[1,1]}; %5: T[1,3,5,6] = mul@14(%4, %3) return(%5)",
                 type),
        {.low = -1, .high = 1, .relative = 1e-5, .absolute = 1e-5, .quanta = 2, .largest = 16});
  checkNative("problem(%0: f32[1,33,9,11], %1: const f32[1,33,3,3], %2: f32[1] {-0.36}) "
              "%3: f32[1,1,9,11] = conv@22(%0, %1, %2) {dilations=[1,1], group=1, "
              "kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]} return(%3)",
              {.low = -1, .high = 1, .relative = 1e-5, .absolute = 1e-5});
}

TEST(HalfAttention, MaskedCausalAndTransposed) {
  const char *attributes = "is_causal={}, left_window_size=-1, qk_matmul_output_mode=0, "
                           "right_window_size=-1, softcap=0.0f, softmax_precision=1";
  for (int causal : {0, 1})
    checkHalves(fmt::format("problem(%0: T[1,2,13,20], %1: T[1,2,13,20], %2: T[1,2,13,17]) "
                            "%3: T[1,2,13,17] = attention@25(%0, %1, %2) {{{}}} return(%3)",
                            fmt::format(fmt::runtime(attributes), causal)),
                2);
  checkHalves(fmt::format("problem(%0: T[1,2,9,16], %1: T[1,2,40,16], %2: T[1,2,40,16], "
                          "%3: T[9,40]) %4: T[1,2,9,16] = attention@25(%0, %1, %2, %3) {{{}}} "
                          "return(%4)",
                          fmt::format(fmt::runtime(attributes), 0)),
              2);
}

TEST(QuantisedFollowers, ConvolutionThenQuantizeLinear) {
  checkNative("problem(%0: f32[1,16,5,6], %1: const f32[16,16,1,1], %2: f32[] {0.5}, %3: u8[] {7}) "
              "%4: f32[1,16,5,6] = conv@22(%0, %1) {dilations=[1,1], group=1, kernel_shape=[1,1], "
              "pads=[0,0,0,0], strides=[1,1]}; %5: u8[1,16,5,6] = quantize_linear@28(%4, %2, %3) "
              "{axis=1, block_size=0, output_dtype=0, precision=0, saturate=1} return(%5)",
              // Whole numbers, so that no rounding of sums decides at a tie.
              {.values = {-2, -1, 0, 1, 2, 3}});
}

} // namespace
} // namespace dovetail::test
