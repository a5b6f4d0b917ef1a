// SPDX-License-Identifier: Apache-2.0
//
// Winograd convolutions: images that tiles do not divide, uneven pads, channels around the vector
// width, several images to a chunk, followers, run-time extents; what is refused; and that they are
// a numerics class of their own.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Harness.h"
#include "support/Problem.h"

namespace dovetail::test {
namespace {

struct Shape {
  int64_t n = 1, c = 16, h = 9, w = 11, k = 16;
  int64_t top = 1, left = 1, bottom = 1, right = 1;
  std::string followers = "", result = "%3", inputs = "";

  std::string problem() const {
    return fmt::format("problem(%0: f32[{},{},{},{}], %1: const f32[{},{},3,3], %2: const "
                       "f32[{}]{}) %3: {} = conv@22(%0, %1, %2) {{dilations=[1,1], group=1, "
                       "kernel_shape=[3,3], pads=[{},{},{},{}], strides=[1,1]}}{} return({})",
                       n, c, h, w, k, c, k, inputs, out(), top, left, bottom, right, followers,
                       result);
  }
  std::string out() const {
    return fmt::format("f32[{},{},{},{}]", n, k, h + top + bottom - 2, w + left + right - 2);
  }
};

/// Sums cancel in the transforms: an eighth of what trials allow for.
CheckOptions winograd() {
  CheckOptions options;
  options.only = "winograd";
  options.tolerance = 1e-4;
  return options;
}

bool has(const Checked &checked, const std::string &part) {
  return std::any_of(checked.algorithms.begin(), checked.algorithms.end(),
                     [&](const std::string &name) { return name.find(part) != name.npos; });
}

TEST(Winograd, Images) {
  bool small = false, large = false;
  for (int64_t h : {1, 2, 7})
    for (int64_t w : {1, 6, 17}) {
      Checked checked = checkProblem(Shape{.h = h, .w = w, .k = 32}.problem(), winograd());
      EXPECT_GE(checked.schedules, 2u);
      small |= has(checked, ":f2:");
      large |= has(checked, ":f4:");
    }
  EXPECT_TRUE(small);
  EXPECT_TRUE(large);
}

TEST(Winograd, Channels) {
  for (int64_t c : {16, 31, 40})
    for (int64_t k : {23, 48})
      checkProblem(Shape{.c = c, .k = k}.problem(), winograd());
}

TEST(Winograd, Pads) {
  checkProblem(Shape{.top = 0, .left = 0, .bottom = 0, .right = 0}.problem(), winograd());
  checkProblem(Shape{.h = 5, .w = 6, .top = 2, .left = 0, .bottom = 1, .right = 3}.problem(),
               winograd());
  checkProblem(Shape{.h = 2, .w = 1, .top = 5, .left = 6, .bottom = 7, .right = 4}.problem(),
               winograd());
}

TEST(Winograd, TilesOfSeveralImages) {
  checkProblem(Shape{.n = 3, .c = 24, .h = 6, .w = 5, .k = 40}.problem(), winograd());
  checkProblem(Shape{.n = 5, .h = 3, .w = 3}.problem(), winograd());
}

TEST(Winograd, SharedTransforms) {
  // Few tiles and many weights: tasks share the transformed image.
  Checked checked = checkProblem(Shape{.c = 128, .h = 7, .w = 7, .k = 128}.problem(), winograd());
  EXPECT_TRUE(has(checked, ":s1"));
  EXPECT_TRUE(
      has(checkProblem(Shape{.c = 16, .h = 40, .w = 40, .k = 16}.problem(), winograd()), ":s0"));
}

TEST(Winograd, Followers) {
  Shape s{.n = 2, .c = 20, .h = 7, .w = 9, .k = 40};
  s.inputs = fmt::format(", %4: {0}", s.out());
  s.followers = fmt::format("; %5: {0} = add@14(%3, %4); %6: {0} = relu@14(%5); %7: {0} = "
                            "sigmoid@13(%6); %8: {0} = mul@14(%6, %7)",
                            s.out());
  s.result = "%8";
  EXPECT_GE(checkProblem(s.problem(), winograd()).schedules, 2u);
  s.result = "%3, %8";
  EXPECT_GE(checkProblem(s.problem(), winograd()).schedules, 2u);
}

TEST(Winograd, RunTimeExtents) {
  CheckOptions options = winograd();
  options.symbols = {{{"N", 1}, {"H", 4}, {"W", 4}},
                     {{"N", 2}, {"H", 9}, {"W", 7}},
                     {{"N", 3}, {"H", 33}, {"W", 12}}};
  Checked checked = checkProblem(
      "problem(%0: f32[N,24,H,W], %1: const f32[32,24,3,3]) %2: f32[N,32,H,W] = conv@22(%0, %1) "
      "{dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]} return(%2) "
      "where N in 1..4, H in 1..64, W in 1..64",
      options);
  EXPECT_GE(checked.schedules, 2u);
}

TEST(Winograd, Refusals) {
  auto refuses = [](const std::string &attributes, const char *weights, const char *out,
                    const std::string &why) {
    for (const std::string &refusal : refusalsOf(
             fmt::format("problem(%0: f32[1,32,9,9], %1: const {}) %2: {} = conv@22(%0, %1) {} "
                         "return(%2)",
                         weights, out, attributes)))
      if (refusal.find(why) != refusal.npos)
        return true;
    return false;
  };
  EXPECT_TRUE(refuses("{dilations=[1,1], group=2, kernel_shape=[3,3], pads=[1,1,1,1], "
                      "strides=[1,1]}",
                      "f32[32,16,3,3]", "f32[1,32,9,9]", "in one group, not 2"));
  EXPECT_TRUE(refuses("{dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], "
                      "strides=[2,1]}",
                      "f32[32,32,3,3]", "f32[1,32,5,9]", "stride 1 and dilation 1, not 2x1"));
  EXPECT_TRUE(refuses("{dilations=[2,2], group=1, kernel_shape=[3,3], pads=[2,2,2,2], "
                      "strides=[1,1]}",
                      "f32[32,32,3,3]", "f32[1,32,9,9]", "1x1 and 2x2"));
  EXPECT_TRUE(refuses("{dilations=[1,1], group=1, kernel_shape=[3,1], pads=[1,0,1,0], "
                      "strides=[1,1]}",
                      "f32[32,32,3,1]", "f32[1,32,9,9]", "windows of 3x3, not 3x1"));
  EXPECT_TRUE(refuses("{dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], "
                      "strides=[1,1]}",
                      "f32[4,32,3,3]", "f32[1,4,9,9]", "these are 32 to 4"));
}

} // namespace
} // namespace dovetail::test
