// SPDX-License-Identifier: Apache-2.0
//
// A depthwise convolution and the pointwise one behind it in one kernel: channels around the vector
// width, strides, pads and dilations, narrow images whose tiles are several rows, several images,
// followers of both halves, rows known at run time; and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Harness.h"

namespace dovetail::test {
namespace {

struct Shape {
  int64_t n = 1, c = 32, h = 9, w = 11, k = 24, size = 3, stride = 1, dilation = 1, pad = 1;
  std::string inputs = "", between = "", behind = "", middle = "%5", result = "%6";
  std::string image(int64_t channels, int64_t step) const {
    int64_t reach = (size - 1) * dilation + 1;
    auto out = [&](int64_t extent) {
      return step == 1 ? extent : (extent + 2 * pad - reach) / stride + 1;
    };
    return fmt::format("f32[{},{},{},{}]", n, channels, out(h), out(w));
  }
  std::string before() const { return image(c, 1); }
  std::string inside() const { return image(c, 0); }
  std::string after() const { return image(k, 0); }
  std::string problem() const {
    return fmt::format(
        "problem(%0: {0}, %1: const f32[{1},1,{2},{2}], %2: const f32[{1}], %3: const "
        "f32[{3},{1},1,1], %4: const f32[{3}]{4}) %5: {5} = conv@22(%0, %1, %2) "
        "{{dilations=[{6},{6}], group={1}, kernel_shape=[{2},{2}], pads=[{7},{7},{7},{7}], "
        "strides=[{8},{8}]}}{9}; %6: {10} = conv@22({11}, %3, %4) {{dilations=[1,1], group=1, "
        "kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]}}{12} return({13})",
        before(), c, size, k, inputs, inside(), dilation, pad, stride, between, after(), middle,
        behind, result);
  }
};

CheckOptions separable() {
  CheckOptions options;
  options.only = "separable";
  return options;
}

void check(const Shape &shape) {
  EXPECT_GE(checkProblem(shape.problem(), separable()).schedules, 2u) << shape.problem();
}

TEST(Separable, Channels) {
  for (int64_t c : {16, 24, 33, 80})
    for (int64_t k : {1, 16, 40})
      check({.c = c, .k = k});
}

TEST(Separable, Windows) {
  check({.h = 13, .w = 14, .size = 5, .stride = 2, .pad = 2});
  check({.h = 12, .w = 9, .dilation = 2, .pad = 1});
  check({.h = 6, .w = 6, .size = 1, .pad = 0});
  check({.h = 3, .w = 2, .size = 7, .pad = 3});
  check({.h = 15, .w = 16, .stride = 3, .pad = 0});
}

TEST(Separable, ImagesOfAllWidths) {
  for (int64_t w : {1, 3, 7, 14, 29, 150})
    check({.n = 2, .c = 40, .h = 7, .w = w, .k = 33});
}

TEST(Separable, Followers) {
  Shape s{.n = 2, .c = 40, .h = 8, .w = 9, .k = 24};
  s.inputs = fmt::format(", %7: {}, %8: const f32[40,1,1]", s.after());
  s.between = fmt::format("; %9: {0} = mul@14(%5, %8); %10: {0} = relu@14(%9)", s.inside());
  s.middle = "%10";
  s.behind = fmt::format("; %11: {0} = add@14(%6, %7); %12: {0} = sigmoid@13(%11)", s.after());
  s.result = "%12";
  check(s);
  s.result = "%6, %12";
  check(s);
}

TEST(Separable, OperandOfFullExtentsBetween) {
  Shape s{.n = 2, .c = 20, .h = 5, .w = 6};
  s.inputs = fmt::format(", %7: {}", s.inside());
  s.between = fmt::format("; %8: {} = add@14(%5, %7)", s.inside());
  s.middle = "%8";
  check(s);
}

TEST(Separable, RowsKnownAtRunTime) {
  CheckOptions options = separable();
  options.symbols = {{{"N", 1}, {"H", 1}}, {{"N", 3}, {"H", 10}}, {{"N", 2}, {"H", 37}}};
  Checked checked = checkProblem(
      "problem(%0: f32[N,20,H,9], %1: const f32[20,1,3,3], %2: const f32[32,20,1,1]) %3: "
      "f32[N,20,H,9] = conv@22(%0, %1) {dilations=[1,1], group=20, kernel_shape=[3,3], "
      "pads=[1,1,1,1], strides=[1,1]}; %4: f32[N,32,H,9] = conv@22(%3, %2) {dilations=[1,1], "
      "group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]} return(%4) where N in 1..4, H "
      "in 1..64",
      options);
  EXPECT_GE(checked.schedules, 2u);
}

TEST(Separable, OneSpatialDimension) {
  Checked checked = checkProblem(
      "problem(%0: f32[2,24,30], %1: const f32[24,1,5], %2: const f32[32,24,1]) %3: f32[2,24,30] = "
      "conv@22(%0, %1) {dilations=[1], group=24, kernel_shape=[5], pads=[2,2], strides=[1]}; %4: "
      "f32[2,32,30] = conv@22(%3, %2) {dilations=[1], group=1, kernel_shape=[1], pads=[0,0], "
      "strides=[1]} return(%4)",
      separable());
  EXPECT_GE(checked.schedules, 2u);
}

TEST(Separable, Refusals) {
  auto refuses = [](const std::string &problem, const std::string &why) {
    for (const std::string &refusal : refusalsOf(problem))
      if (refusal.find(why) != refusal.npos)
        return true;
    return false;
  };
  EXPECT_TRUE(refuses(Shape{.c = 4}.problem(), "these are 4"));
  EXPECT_TRUE(refuses(
      "problem(%0: f32[1,16,9,9], %1: const f32[16,1,3,3], %2: const f32[8,16,3,3]) %3: "
      "f32[1,16,9,9] = conv@22(%0, %1) {dilations=[1,1], group=16, kernel_shape=[3,3], "
      "pads=[1,1,1,1], strides=[1,1]}; %4: f32[1,8,7,7] = conv@22(%3, %2) {dilations=[1,1], "
      "group=1, kernel_shape=[3,3], pads=[0,0,0,0], strides=[1,1]} return(%4)",
      "pointwise ones are supported"));
  EXPECT_TRUE(refuses(
      "problem(%0: f32[1,16,9,W], %1: const f32[16,1,3,3], %2: const f32[8,16,1,1]) %3: "
      "f32[1,16,9,W] = conv@22(%0, %1) {dilations=[1,1], group=16, kernel_shape=[3,3], "
      "pads=[1,1,1,1], strides=[1,1]}; %4: f32[1,8,9,W] = conv@22(%3, %2) {dilations=[1,1], "
      "group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]} return(%4) where W in 1..64",
      "must be known"));
}

} // namespace
} // namespace dovetail::test
