// SPDX-License-Identifier: Apache-2.0
//
// Contractions of bytes: all pairs of signs, zero points at the ends of their ranges and by column,
// depths and columns that are no multiples of words and vectors, windows that leave the image,
// rows known at run time, and what follows the sums. Integers must be equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

CheckOptions bytes() {
  CheckOptions options;
  options.allBytes = true;
  options.values = {0.004, 0.0085, 0.012}; // scales among them
  options.relative = 1e-6;
  options.absolute = 1e-5;
  options.byteQuanta = 1; // at ties
  return options;
}

std::string zeroOf(const std::string &type, const std::string &which) {
  bool isSigned = type == "i8";
  return which == "low" ? (isSigned ? "{-128}" : "{0}") : (isSigned ? "{127}" : "{255}");
}

/// A product of quantised matrices that gives f32, by columns' scales.
std::string product(const std::string &left, const std::string &right, int64_t rows, int64_t depth,
                    int64_t columns, const std::string &leftZero, const std::string &rightZero,
                    const std::string &symbol = "") {
  std::string m = symbol.empty() ? std::to_string(rows) : symbol;
  return fmt::format("problem(%0: {0}[{2},{3}], %1: const f32[], %2: {0}[]{5}, %3: const "
                     "{1}[{3},{4}], %4: const f32[{4}], %5: {6}) %6: f32[{2},{3}] = "
                     "dequantize_linear@19(%0, %1, %2) {{axis=1}}; %7: f32[{3},{4}] = "
                     "dequantize_linear@19(%3, %4, %5) {{axis=1}}; %8: f32[{2},{4}] = "
                     "mat_mul@13(%6, %7) return(%8){7}",
                     left, right, m, depth, columns, leftZero, rightZero,
                     symbol.empty() ? "" : " where " + symbol + " in 0..4096");
}

TEST(Int8, ProductsOfAllSignsAndZeroPoints) {
  for (std::string left : {"u8", "i8"})
    for (std::string right : {"u8", "i8"})
      for (std::string end : {"low", "high"}) {
        std::string column = fmt::format("const {}[40]", right);
        checkNative(product(left, right, 7, 36, 40, " " + zeroOf(left, end), column), bytes());
        checkNative(
            product(left, right, 7, 36, 40, "",
                    fmt::format("{}[40] {{{}..}}", right,
                                zeroOf(right, end).substr(1, zeroOf(right, end).size() - 2))),
            bytes());
      }
}

TEST(Int8, ProductsOfOddSizes) {
  struct Sizes {
    int64_t rows, depth, columns;
  };
  for (Sizes s : std::vector<Sizes>{{1, 64, 100},
                                    {1, 7, 1},
                                    {2, 1, 17},
                                    {3, 30, 33},
                                    {29, 65, 16},
                                    {13, 131, 70},
                                    {64, 128, 129},
                                    {5, 3, 15}})
    for (std::string left : {"u8", "i8"})
      checkNative(product(left, "i8", s.rows, s.depth, s.columns, "",
                          fmt::format("i8[{}] {{0..}}", s.columns)),
                  bytes());
  checkNative(product("u8", "u8", 9, 63, 50, "", "const u8[50]"), bytes());
}

TEST(Int8, RowsKnownAtRunTime) {
  CheckOptions options = bytes();
  options.bindings.clear();
  for (int64_t rows : {1, 2, 5, 8, 9, 31, 200, 0})
    options.bindings.push_back({{"M", rows}});
  for (int64_t depth : {64, 37}) {
    checkNative(product("i8", "i8", 0, depth, 50, "", "i8[50] {0..}", "M"), options);
    checkNative(product("u8", "i8", 0, depth, 50, "", "const i8[50]", "M"), options);
  }
}

TEST(Int8, IntegerOps) {
  for (std::string left : {"u8", "i8"})
    for (std::string right : {"u8", "i8"}) {
      checkNative(fmt::format("problem(%0: {}[3,5,24], %1: const {}[24,20], %2: {}[], %3: const "
                              "{}[20]) %4: i32[3,5,20] = mat_mul_integer@10(%0, %1, %2, %3) "
                              "return(%4)",
                              left, right, left, right),
                  bytes());
      checkNative(fmt::format("problem(%0: {0}[3,5,24], %1: const {1}[24,20], %2: {0}[], "
                              "%3: f32[], %4: const f32[20]) %5: i32[3,5,20] = "
                              "mat_mul_integer@10(%0, %1, %2); %6: f32[3,5,20] = cast@13(%5) "
                              "{{to=1}}; %7: f32[3,5,20] = mul@14(%6, %3); %8: f32[3,5,20] = "
                              "add@14(%7, %4) return(%8)",
                              left, right),
                  bytes());
      checkNative(fmt::format("problem(%0: {0}[2,6,9,7], %1: const {1}[10,6,3,3], %2: {0}[], "
                              "%3: const {1}[]) %4: i32[2,10,9,7] = conv_integer@10(%0, %1, %2, "
                              "%3) {{pads=[1,1,1,1], strides=[1,1], dilations=[1,1], group=1, "
                              "kernel_shape=[3,3]}} return(%4)",
                              left, right),
                  bytes());
    }
}

TEST(Int8, RequantisingOps) {
  for (std::string left : {"u8", "i8"})
    for (std::string right : {"u8", "i8"})
      for (std::string zero : {"low", "high"}) {
        checkNative(
            fmt::format("problem(%0: {0}[9,24], %1: const f32[], %2: {0}[], %3: const {1}[24,33], "
                        "%4: const f32[], %5: const {1}[], %6: const f32[], %7: {0}[] {2}) "
                        "%8: {0}[9,33] = q_linear_mat_mul@10(%0, %1, %2, %3, %4, %5, %6, %7) "
                        "return(%8)",
                        left, right, zeroOf(left, zero)),
            bytes());
        checkNative(
            fmt::format("problem(%0: {0}[1,8,10,9], %1: const f32[], %2: {0}[], %3: const "
                        "{1}[20,8,3,3], %4: const f32[20], %5: const {1}[20], %6: const f32[], "
                        "%7: {0}[] {2}, %8: const i32[20]) %9: {0}[1,20,5,5] = "
                        "q_linear_conv@10(%0, %1, %2, %3, %4, %5, %6, %7, %8) {{pads=[1,1,1,1], "
                        "strides=[2,2], dilations=[1,1], group=1, kernel_shape=[3,3]}} return(%9)",
                        left, right, zeroOf(left, zero)),
            bytes());
      }
}

struct Window {
  int64_t size, stride, dilation, pad;
};

/// A convolution of a quantised image, followed by what a residual block adds.
std::string convolution(const std::string &left, const std::string &right, int64_t batch,
                        int64_t channels, int64_t outputs, int64_t groups, int64_t rows,
                        int64_t columns, Window w) {
  auto out = [&](int64_t in) {
    return (in + 2 * w.pad - (w.size - 1) * w.dilation - 1) / w.stride + 1;
  };
  std::string y = fmt::format("[{},{},{},{}]", batch, outputs, out(rows), out(columns));
  return fmt::format(
      "problem(%0: {0}[{2},{3},{4},{5}], %1: const f32[], %2: const {0}[], %3: const "
      "{1}[{6},{7},{8},{8}], %4: const f32[{6}], %5: const {1}[{6}], %6: const f32[{6}], %7: "
      "i8{9}, %8: const f32[], %9: const i8[], %10: const f32[], %11: const u8[]) %12: "
      "f32[{2},{3},{4},{5}] = dequantize_linear@19(%0, %1, %2) {{axis=1}}; %13: "
      "f32[{6},{7},{8},{8}] = dequantize_linear@19(%3, %4, %5) {{axis=0}}; %14: f32{9} = "
      "conv@11(%12, %13, %6) {{pads=[{10},{10},{10},{10}], strides=[{11},{11}], "
      "dilations=[{12},{12}], group={13}, kernel_shape=[{8},{8}]}}; %15: f32{9} = "
      "dequantize_linear@19(%7, %8, %9) {{axis=1}}; %16: f32{9} = add@14(%14, %15); %17: f32{9} = "
      "relu@14(%16); %18: u8{9} = quantize_linear@19(%17, %10, %11) {{axis=1}} return(%18)",
      left, right, batch, channels, rows, columns, outputs, channels / groups, w.size, y, w.pad,
      w.stride, w.dilation, groups);
}

TEST(Int8, Convolutions) {
  for (std::string left : {"u8", "i8"})
    for (std::string right : {"u8", "i8"}) {
      checkNative(convolution(left, right, 1, 64, 48, 1, 14, 14, {1, 1, 1, 0}), bytes());
      checkNative(convolution(left, right, 2, 3, 20, 1, 17, 23, {7, 2, 1, 3}), bytes());
      checkNative(convolution(left, right, 1, 80, 33, 1, 7, 7, {3, 1, 1, 1}), bytes());
    }
}

TEST(Int8, ConvolutionsOfOddForms) {
  for (std::string left : {"u8", "i8"}) {
    checkNative(convolution(left, "i8", 1, 30, 17, 1, 9, 11, {3, 1, 2, 2}), bytes());
    checkNative(convolution(left, "i8", 2, 12, 64, 1, 8, 9, {1, 2, 1, 0}), bytes());
    checkNative(convolution(left, "i8", 1, 24, 40, 2, 6, 13, {3, 2, 1, 0}), bytes());
    checkNative(convolution(left, "i8", 1, 18, 30, 3, 10, 5, {3, 1, 1, 1}), bytes());
    checkNative(convolution(left, "i8", 1, 5, 7, 1, 33, 2, {2, 1, 1, 1}), bytes());
  }
}

TEST(Int8, SeveralImagesWithUnevenPads) {
  for (std::string left : {"u8", "i8"})
    for (int64_t group : {1, 2}) {
      // What lies outside of the image is the zero point, which is not 0.
      checkNative(fmt::format("problem(%0: {0}[3,24,9,10], %1: const f32[], %2: {0}[] {1}, %3: "
                              "const i8[40,{2},3,2], %4: const f32[40], %5: const i8[40], %6: "
                              "const f32[], %7: {0}[] {1}, %8: const i32[40]) %9: {0}[3,40,10,6] = "
                              "q_linear_conv@10(%0, %1, %2, %3, %4, %5, %6, %7, %8) "
                              "{{pads=[0,2,3,0], strides=[1,2], dilations=[1,1], group={3}, "
                              "kernel_shape=[3,2]}} return(%9)",
                              left, zeroOf(left, "high"), 24 / group, group),
                  bytes());
      checkNative(fmt::format("problem(%0: {0}[2,16,7,33], %1: const i8[20,{1},1,3], %2: {0}[] {2}"
                              ") %3: i32[2,20,7,33] = conv_integer@10(%0, %1, %2) "
                              "{{pads=[0,0,0,2], strides=[1,1], dilations=[1,1], group={3}, "
                              "kernel_shape=[1,3]}} return(%3)",
                              left, 16 / group, zeroOf(left, "low"), group),
                  bytes());
    }
}

TEST(Int8, BatchesOfProducts) {
  for (std::string left : {"u8", "i8"})
    checkNative(fmt::format("problem(%0: {0}[3,2,5,36], %1: const i8[36,50], %2: {0}[]) %3: "
                            "i32[3,2,5,50] = mat_mul_integer@10(%0, %1, %2) return(%3)",
                            left),
                bytes());
}

TEST(Int8, ProductsOfOneRow) {
  for (std::string left : {"u8", "i8"})
    for (int64_t columns : {16, 130, 768, 1000})
      checkNative(product(left, "i8", 1, 132, columns, "", fmt::format("i8[{}] {{0..}}", columns)),
                  bytes());
}

TEST(Int8, GemmWithBiasGivesBytes) {
  checkNative("problem(%0: i8[6,40], %1: const f32[], %2: const i8[], %3: const i8[50,40], %4: "
              "const f32[50], %5: i8[50] {0..}, %6: const f32[50], %7: const f32[], %8: const i8[])"
              " %9: f32[6,40] = dequantize_linear@19(%0, %1, %2) {axis=1}; %10: f32[50,40] = "
              "dequantize_linear@19(%3, %4, %5) {axis=0}; %11: f32[6,50] = gemm@13(%9, %10, %6) "
              "{alpha=0.5, beta=2.0, transA=0, transB=1}; %12: i8[6,50] = quantize_linear@19(%11, "
              "%7, %8) {axis=1} return(%12)",
              bytes());
}

TEST(Int8, SaysWhatItDoesNotTake) {
  EXPECT_NE(refusalOf("problem(%0: u8[2,8], %1: u8[8,4], %2: u8[2], %3: u8[]) %4: i32[2,4] = "
                      "mat_mul_integer@10(%0, %1, %2, %3) return(%4)")
                .find("no constant"),
            std::string::npos);
  EXPECT_NE(refusalOf("problem(%0: u8[2,8], %1: const u8[8,4], %2: u8[2], %3: u8[]) %4: i32[2,4] = "
                      "mat_mul_integer@10(%0, %1, %2, %3) return(%4)")
                .find("zero points"),
            std::string::npos);
  EXPECT_NE(refusalOf("problem(%0: u8[1,8,4,4], %1: const u8[8,1,3,3]) %2: i32[1,8,2,2] = "
                      "conv_integer@10(%0, %1) {group=8, kernel_shape=[3,3], pads=[0,0,0,0], "
                      "strides=[1,1], dilations=[1,1]} return(%2)")
                .find("depthwise"),
            std::string::npos);
}

} // namespace
} // namespace dovetail::test
