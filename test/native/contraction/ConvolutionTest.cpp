// SPDX-License-Identifier: Apache-2.0
//
// Convolutions with channels around the vector width, groups, uneven pads, strides, dilations, one
// and two spatial dimensions, followers and run-time extents, in all layouts on offer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Harness.h"

namespace dovetail::test {
namespace {

struct Shape {
  int64_t n = 1, c = 3, h = 9, w = 11, k = 16, kh = 3, kw = 3, group = 1;
  int64_t sh = 1, sw = 1, dh = 1, dw = 1, top = 0, left = 0, bottom = 0, right = 0;
  bool bias = false;
  int64_t outRows() const { return (h + top + bottom - ((kh - 1) * dh + 1)) / sh + 1; }
  int64_t outColumns() const { return (w + left + right - ((kw - 1) * dw + 1)) / sw + 1; }
  std::string out() const { return fmt::format("f32[{},{},{},{}]", n, k, outRows(), outColumns()); }
  std::string inputs() const {
    return fmt::format("%0: f32[{},{},{},{}], %1: const f32[{},{},{},{}]{}", n, c, h, w, k,
                       c / group, kh, kw, bias ? fmt::format(", %2: const f32[{}]", k) : "");
  }
  std::string op(int result) const {
    return fmt::format(
        "%{}: {} = conv@22(%0, %1{}) {{dilations=[{},{}], group={}, kernel_shape=[{},{}], "
        "pads=[{},{},{},{}], strides=[{},{}]}}",
        result, out(), bias ? ", %2" : "", dh, dw, group, kh, kw, top, left, bottom, right, sh, sw);
  }
  std::string problem() const {
    int result = bias ? 3 : 2;
    return fmt::format("problem({}) {} return(%{})", inputs(), op(result), result);
  }
};

TEST(Convolution, Channels) {
  for (int64_t c : {1, 3, 15, 16, 40})
    for (int64_t k : {1, 16, 33}) {
      Shape s{.c = c, .k = k};
      s.top = s.left = s.bottom = s.right = 1;
      s.bias = k % 2;
      checkProblem(s.problem());
    }
}

TEST(Convolution, Pointwise) {
  for (int64_t c : {3, 16, 24, 64})
    for (int64_t k : {5, 16, 100})
      checkProblem(
          Shape{.n = 2, .c = c, .h = 5, .w = 13, .k = k, .kh = 1, .kw = 1, .bias = true}.problem());
}

TEST(Convolution, PointwiseWithStride) {
  checkProblem(
      Shape{.c = 32, .h = 9, .w = 14, .k = 48, .kh = 1, .kw = 1, .sh = 2, .sw = 2}.problem());
}

TEST(Convolution, WindowsStridesDilations) {
  checkProblem(Shape{.c = 3,
                     .h = 20,
                     .w = 21,
                     .k = 32,
                     .kh = 7,
                     .kw = 7,
                     .sh = 2,
                     .sw = 2,
                     .top = 3,
                     .left = 3,
                     .bottom = 3,
                     .right = 3,
                     .bias = true}
                   .problem());
  checkProblem(Shape{.c = 16,
                     .h = 12,
                     .w = 17,
                     .k = 32,
                     .kh = 3,
                     .kw = 5,
                     .dh = 2,
                     .dw = 3,
                     .top = 1,
                     .left = 6,
                     .bottom = 2,
                     .right = 5}
                   .problem());
  checkProblem(
      Shape{.c = 20, .h = 12, .w = 17, .k = 20, .kh = 1, .kw = 5, .sh = 3, .sw = 1, .left = 4}
          .problem());
  checkProblem(Shape{
      .c = 16, .h = 7, .w = 7, .k = 40, .kh = 2, .kw = 2, .sh = 2, .sw = 2, .bottom = 1, .right = 1}
                   .problem());
  checkProblem(Shape{.c = 16,
                     .h = 3,
                     .w = 3,
                     .k = 16,
                     .kh = 3,
                     .kw = 3,
                     .top = 4,
                     .left = 4,
                     .bottom = 4,
                     .right = 4}
                   .problem());
  checkProblem(Shape{.c = 16, .h = 6, .w = 6, .k = 16, .kh = 6, .kw = 6}.problem());
}

TEST(Convolution, Columns) {
  for (int64_t w : {1, 2, 3, 7, 13, 14, 28, 57})
    checkProblem(
        Shape{.c = 32, .h = 7, .w = w, .k = 48, .top = 1, .left = 1, .bottom = 1, .right = 1}
            .problem());
}

TEST(Convolution, Groups) {
  checkProblem(
      Shape{.n = 2, .c = 32, .k = 64, .group = 2, .top = 1, .left = 1, .bottom = 1, .right = 1}
          .problem());
  checkProblem(
      Shape{.c = 12, .k = 18, .group = 3, .top = 1, .left = 0, .bottom = 0, .right = 1}.problem());
  checkProblem(Shape{.c = 40, .k = 40, .kh = 1, .kw = 1, .group = 2}.problem());
  checkProblem(Shape{.c = 4, .k = 8, .group = 4}.problem());
}

TEST(Convolution, OneSpatialDimension) {
  checkProblem(
      "problem(%0: f32[2,20,31], %1: const f32[24,20,5]) %2: f32[2,24,16] = conv@22(%0, %1) "
      "{dilations=[1], group=1, kernel_shape=[5], pads=[2,2], strides=[2]} return(%2)");
}

TEST(Convolution, Followers) {
  for (int64_t k : {16, 40}) {
    Shape s{.n = 2,
            .c = 32,
            .h = 7,
            .w = 9,
            .k = k,
            .top = 1,
            .left = 1,
            .bottom = 1,
            .right = 1,
            .bias = true};
    std::string o = s.out();
    checkProblem(fmt::format(
        "problem({}, %3: {}, %4: const f32[1,{},1,1], %5: f32[2,{},1,1], %6: f32[] {{0.0}}, "
        "%7: f32[] {{2.0}}) {}; %9: {} = add@14(%8, %3); %10: {} = mul@14(%9, %4); "
        "%11: {} = mul@14(%10, %5); %12: {} = clip@13(%11, %6, %7) return(%12, %8)",
        s.inputs(), o, k, k, s.op(8), o, o, o, o));
    Shape p{.n = 2, .c = 32, .h = 7, .w = 9, .k = k, .kh = 1, .kw = 1, .bias = true};
    o = p.out();
    checkProblem(
        fmt::format("problem({}, %3: {}, %4: f32[7,1], %5: f32[7,9]) {}; %7: {} = add@14(%6, %3); "
                    "%8: {} = mul@14(%7, %4); %9: {} = hard_swish@14(%8); %10: {} = add@14(%9, %5) "
                    "return(%10)",
                    p.inputs(), o, p.op(6), o, o, o, o));
  }
}

TEST(Convolution, RunTimeExtents) {
  CheckOptions options;
  options.symbols = {{{"N", 1}, {"H", 4}, {"W", 5}},
                     {{"N", 2}, {"H", 13}, {"W", 30}},
                     {{"N", 1}, {"H", 9}, {"W", 97}}};
  for (int64_t c : {3, 32})
    checkProblem(
        fmt::format(
            "problem(%0: f32[N,{0},H,W], %1: const f32[40,{0},3,3], %2: f32[N,40,H,W]) "
            "%3: f32[N,40,H,W] = conv@22(%0, %1) {{dilations=[1,1], group=1, kernel_shape=[3,3], "
            "pads=[1,1,1,1], strides=[1,1]}}; %4: f32[N,40,H,W] = add@14(%3, %2) return(%4) "
            "where H in 1..200, N in 1..4, W in 1..200",
            c),
        options);
  checkProblem(
      "problem(%0: f32[N,32,H,W], %1: const f32[40,32,1,1]) %2: f32[N,40,H,W] = conv@22(%0, %1) "
      "{dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]} return(%2) "
      "where H in 1..200, N in 1..4, W in 1..200",
      options);
}

TEST(Depthwise, ChannelsAndWindows) {
  for (int64_t c : {2, 8, 15, 16, 33})
    for (int64_t k : {1, 3, 5}) {
      Shape s{.n = 2, .c = c, .h = 9, .w = 20, .k = c, .kh = k, .kw = k, .group = c};
      s.top = s.left = s.bottom = s.right = k / 2;
      s.bias = true;
      checkProblem(s.problem());
      s.sh = s.sw = 2;
      checkProblem(s.problem());
    }
}

TEST(Depthwise, Columns) {
  for (int64_t w : {1, 2, 7, 14, 33, 56, 112})
    for (int64_t stride : {1, 2, 3})
      checkProblem(Shape{.c = 16,
                         .h = 5,
                         .w = w,
                         .k = 16,
                         .kh = 3,
                         .kw = 3,
                         .group = 16,
                         .sh = stride,
                         .sw = stride,
                         .top = 1,
                         .left = 1,
                         .bottom = 1,
                         .right = 1}
                       .problem());
}

TEST(Depthwise, UnevenPadsAndDilations) {
  checkProblem(Shape{.c = 20,
                     .h = 12,
                     .w = 37,
                     .k = 20,
                     .kh = 3,
                     .kw = 5,
                     .group = 20,
                     .dh = 2,
                     .dw = 3,
                     .top = 3,
                     .left = 1,
                     .bottom = 0,
                     .right = 9}
                   .problem());
  checkProblem(Shape{.c = 3,
                     .h = 4,
                     .w = 4,
                     .k = 3,
                     .kh = 3,
                     .kw = 3,
                     .group = 3,
                     .top = 5,
                     .left = 5,
                     .bottom = 5,
                     .right = 5}
                   .problem());
  checkProblem(Shape{.c = 17, .h = 7, .w = 40, .k = 17, .kh = 7, .kw = 7, .group = 17}.problem());
}

TEST(Depthwise, Followers) {
  for (int64_t c : {16, 20}) {
    Shape s{.n = 2,
            .c = c,
            .h = 7,
            .w = 19,
            .k = c,
            .group = c,
            .top = 1,
            .left = 1,
            .bottom = 1,
            .right = 1,
            .bias = true};
    std::string o = s.out();
    checkProblem(
        fmt::format("problem({}, %3: {}, %4: f32[2,{},1,1]) {}; %6: {} = hard_swish@14(%5); "
                    "%7: {} = mul@14(%6, %4); %8: {} = gelu@20(%7) {{approximate=\"none\"}}; "
                    "%9: {} = add@14(%8, %3) return(%9, %5)",
                    s.inputs(), o, c, s.op(5), o, o, o, o));
  }
}

TEST(Depthwise, RunTimeExtents) {
  CheckOptions options;
  options.symbols = {{{"N", 1}, {"H", 1}, {"W", 1}},
                     {{"N", 2}, {"H", 13}, {"W", 30}},
                     {{"N", 1}, {"H", 9}, {"W", 97}}};
  checkProblem(
      "problem(%0: f32[N,20,H,W], %1: const f32[20,1,3,3], %2: f32[N,20,H,W]) %3: f32[N,20,H,W] = "
      "conv@22(%0, %1) {dilations=[1,1], group=20, kernel_shape=[3,3], pads=[1,1,1,1], "
      "strides=[1,1]}; "
      "%4: f32[N,20,H,W] = add@14(%3, %2) return(%4) where H in 1..200, N in 1..4, W in 1..200",
      options);
}

TEST(Depthwise, OneSpatialDimension) {
  checkProblem(
      "problem(%0: f32[2,20,31], %1: const f32[20,1,5]) %2: f32[2,20,16] = conv@22(%0, %1) "
      "{dilations=[1], group=20, kernel_shape=[5], pads=[2,2], strides=[2]} return(%2)");
}

std::string transposed(const Shape &s, int64_t moreRows = 0, int64_t moreColumns = 0,
                       const std::string &after = "") {
  int64_t rows = (s.h - 1) * s.sh - s.top - s.bottom + (s.kh - 1) * s.dh + 1 + moreRows;
  int64_t columns = (s.w - 1) * s.sw - s.left - s.right + (s.kw - 1) * s.dw + 1 + moreColumns;
  std::string out = fmt::format("f32[{},{},{},{}]", s.n, s.k, rows, columns);
  std::string head = fmt::format(
      "problem(%0: f32[{},{},{},{}], %1: const f32[{},{},{},{}], %2: const f32[{}]{}) %{}: {} = "
      "conv_transpose@22(%0, %1, %2) "
      "{{dilations=[{},{}], group={}, kernel_shape=[{},{}], output_padding=[{},{}], "
      "pads=[{},{},{},{}], strides=[{},{}]}}",
      s.n, s.c, s.h, s.w, s.c, s.k / s.group, s.kh, s.kw, s.k,
      after.empty() ? "" : fmt::format(", %3: {}", out), after.empty() ? 3 : 4, out, s.dh, s.dw,
      s.group, s.kh, s.kw, moreRows, moreColumns, s.top, s.left, s.bottom, s.right, s.sh, s.sw);
  return after.empty() ? head + " return(%3)"
                       : head + fmt::format("; %5: {} = {}@14(%4, %3) return(%5)", out, after);
}

TEST(ConvolutionTransposed, Windows) {
  for (int64_t c : {3, 16, 40})
    for (int64_t k : {1, 16, 24}) {
      checkProblem(
          transposed({.n = 2, .c = c, .h = 5, .w = 9, .k = k, .kh = 2, .kw = 2, .sh = 2, .sw = 2}));
      checkProblem(transposed({.c = c,
                               .h = 5,
                               .w = 9,
                               .k = k,
                               .kh = 3,
                               .kw = 3,
                               .sh = 2,
                               .sw = 2,
                               .top = 1,
                               .left = 1,
                               .bottom = 1,
                               .right = 1},
                              1, 1, "add"));
    }
  checkProblem(transposed({.c = 20,
                           .h = 5,
                           .w = 9,
                           .k = 20,
                           .kh = 4,
                           .kw = 4,
                           .sh = 2,
                           .sw = 2,
                           .top = 1,
                           .left = 1,
                           .bottom = 1,
                           .right = 1},
                          0, 0, "mul"));
  checkProblem(transposed({.c = 16,
                           .h = 5,
                           .w = 9,
                           .k = 16,
                           .kh = 3,
                           .kw = 5,
                           .sh = 1,
                           .sw = 3,
                           .top = 2,
                           .left = 0,
                           .bottom = 1,
                           .right = 3}));
  checkProblem(transposed(
      {.c = 16, .h = 5, .w = 9, .k = 16, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .dh = 2, .dw = 3}));
  checkProblem(
      transposed({.c = 16, .h = 4, .w = 4, .k = 16, .kh = 2, .kw = 1, .sh = 3, .sw = 2}, 2, 1));
  checkProblem(transposed(
      {.c = 32, .h = 4, .w = 9, .k = 32, .kh = 3, .kw = 3, .group = 2, .sh = 2, .sw = 2}));
  checkProblem(
      transposed({.c = 8, .h = 4, .w = 9, .k = 8, .kh = 3, .kw = 3, .group = 8, .sh = 2, .sw = 2}));
}

TEST(ConvolutionTransposed, RunTimeExtents) {
  CheckOptions options;
  options.symbols = {{{"H", 4}, {"W", 5}}, {{"H", 13}, {"W", 30}}};
  checkProblem("problem(%0: f32[1,20,H,W], %1: const f32[20,24,2,2]) %2: f32[1,24,2*H,2*W] = "
               "conv_transpose@22(%0, %1) "
               "{dilations=[1,1], group=1, kernel_shape=[2,2], output_padding=[0,0], "
               "pads=[0,0,0,0], strides=[2,2]} "
               "return(%2) where H in 1..200, W in 1..200",
               options);
}

TEST(Convolution, RefusesWhatItCannot) {
  auto refusals = refusalsOf(
      "problem(%0: f32[1,4,5,5,5], %1: const f32[4,4,1,1,1]) %2: f32[1,4,5,5,5] = "
      "conv@22(%0, %1) {dilations=[1,1,1], group=1, kernel_shape=[1,1,1], pads=[0,0,0,0,0,0], "
      "strides=[1,1,1]} return(%2)");
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_NE(refusals[0].find("3 spatial dimensions"), std::string::npos) << refusals[0];
  refusals = refusalsOf(
      "problem(%0: f32[1,4,5,5], %1: f32[4,4,1,1]) %2: f32[1,4,5,5] = conv@22(%0, %1) "
      "{dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]} return(%2)");
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_NE(refusals[0].find("constant"), std::string::npos) << refusals[0];
}

} // namespace
} // namespace dovetail::test
