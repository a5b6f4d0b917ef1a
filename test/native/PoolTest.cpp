// SPDX-License-Identifier: Apache-2.0
//
// Pooling with padding, strides, dilations and ceil mode, in row-major and image layouts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

struct Case {
  int channels, height, width, outHeight, outWidth;
  const char *kernel, *strides, *pads, *dilations;
  int ceilMode = 0;
};

void check(const Case &one) {
  std::string attributes = fmt::format("auto_pad=\"NOTSET\", ceil_mode={}, ", one.ceilMode);
  std::string windows = fmt::format("kernel_shape=[{}], pads=[{}], ", one.kernel, one.pads);
  std::string shapes =
      fmt::format("problem(%0: f32[2,{0},{1},{2}]) %1: f32[2,{0},{3},{4}] = ", one.channels,
                  one.height, one.width, one.outHeight, one.outWidth);
  checkNative(fmt::format(
      "{}max_pool@22(%0) {{{}dilations=[{}], {}storage_order=0, strides=[{}]}} return(%1)", shapes,
      attributes, one.dilations, windows, one.strides));
  for (int include : {0, 1})
    checkNative(fmt::format("{}average_pool@22(%0) {{auto_pad=\"NOTSET\", ceil_mode={}, "
                            "count_include_pad={}, dilations=[{}], "
                            "{}strides=[{}]}} return(%1)",
                            shapes, one.ceilMode, include, one.dilations, windows, one.strides));
}

TEST(Pool, WindowsOfAllKinds) {
  check({16, 12, 20, 6, 10, "3,3", "2,2", "1,1,1,1", "1,1"});
  check({3, 9, 35, 9, 35, "3,3", "1,1", "1,1,1,1", "1,1"});
  check({20, 8, 8, 4, 4, "2,2", "2,2", "0,0,0,0", "1,1"});
  check({8, 11, 13, 4, 5, "3,2", "3,3", "1,0,0,1", "1,1"});
  check({8, 14, 14, 10, 10, "3,3", "1,1", "0,0,0,0", "2,2"});
  check({8, 7, 7, 1, 1, "7,7", "1,1", "0,0,0,0", "1,1"});
}

TEST(Pool, CeilMode) { check({8, 10, 11, 5, 5, "3,3", "2,2", "0,0,0,0", "1,1", 1}); }

TEST(Pool, OneAndThreeDimensions) {
  checkNative(
      "problem(%0: f32[2,18,33]) %1: f32[2,18,16] = max_pool@22(%0) {auto_pad=\"NOTSET\", "
      "ceil_mode=0, "
      "dilations=[1], kernel_shape=[3], pads=[0,0], storage_order=0, strides=[2]} return(%1)");
  checkNative("problem(%0: f32[1,9,4,6,8]) %1: f32[1,9,2,3,4] = average_pool@22(%0) "
              "{auto_pad=\"NOTSET\", ceil_mode=0, "
              "count_include_pad=0, dilations=[1,1,1], kernel_shape=[2,2,2], pads=[0,0,0,0,0,0], "
              "strides=[2,2,2]} return(%1)");
}

TEST(Pool, EpilogueAndRunTimeExtents) {
  CheckOptions options;
  options.bindings = {{{"H", 4}}, {{"H", 18}}};
  checkNative(
      "problem(%0: f32[1,24,2*H,2*H], %1: const f32[24,1,1]) %2: f32[1,24,H,H] = max_pool@22(%0) "
      "{auto_pad=\"NOTSET\", ceil_mode=0, dilations=[1,1], kernel_shape=[2,2], pads=[0,0,0,0], "
      "storage_order=0, "
      "strides=[2,2]}; %3: f32[1,24,H,H] = p_relu@16(%2, %1) return(%3)",
      options);
}

TEST(Pool, PadsThatFollowFromRunTimeExtents) {
  CheckOptions options;
  options.bindings = {{{"H", 3}, {"W", 7}}, {{"H", 10}, {"W", 40}}, {{"H", 11}, {"W", 33}}};
  for (const char *pad : {"SAME_UPPER", "SAME_LOWER"})
    for (auto [name, extra] : {std::pair{"max_pool", "storage_order=0, "},
                               {"average_pool", "count_include_pad=0, "},
                               {"average_pool", "count_include_pad=1, "}})
      EXPECT_FALSE(
          checkNative(fmt::format("problem(%0: f32[2,18,H-2,W]) %1: f32[2,18,floordiv(H-1,2),"
                                  "floordiv(W+2,3)] = {}@22(%0) {{auto_pad=\"{}\", ceil_mode=0, {}"
                                  "dilations=[1,1], kernel_shape=[2,4], strides=[2,3]}} "
                                  "return(%1) where H in 3..100, W in 1..100",
                                  name, pad, extra),
                      options)
              .candidates.empty());
}

TEST(Pool, WindowsLargerThanTheImage) {
  CheckOptions options;
  options.bindings = {{{"H", 1}}, {{"H", 2}}, {{"H", 9}}};
  EXPECT_FALSE(checkNative("problem(%0: f32[1,24,H,9]) %1: f32[1,24,max(1,floordiv(H,2)),4] = "
                           "max_pool@22(%0) {auto_pad=\"NOTSET\", ceil_mode=0, dilations=[1,1], "
                           "kernel_shape=[2,2], pads=[0,0,0,0], storage_order=0, strides=[2,2]} "
                           "return(%1)",
                           options)
                   .candidates.empty());
}

} // namespace
} // namespace dovetail::test
