// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any axes, softmax and normalisations, with element-wise ops on both sides, in
// row-major and image layouts, static and with run-time extents.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

CheckOptions loose() {
  CheckOptions options;
  options.relative = 2e-5;
  options.absolute = 2e-5;
  return options;
}

TEST(Rows, EveryReduction) {
  for (const char *op :
       {"reduce_sum@13", "reduce_mean@18", "reduce_max@20", "reduce_min@20", "reduce_prod@18",
        "reduce_l1@18", "reduce_l2@18", "reduce_sum_square@18", "reduce_log_sum_exp@18"})
    for (const char *axes : {"-1", "0", "1", "0,2"})
      checkNative(fmt::format("problem(%0: f32[3,5,37], %1: i64[{2}] {{{1}}}) %2: f32[{3}] = "
                              "{0}(%0, %1) {{keepdims=1, "
                              "noop_with_empty_axes=0}} return(%2)",
                              op, axes, std::string(axes) == "0,2" ? 2 : 1,
                              std::string(axes) == "-1"  ? "3,5,1"
                              : std::string(axes) == "0" ? "1,5,37"
                              : std::string(axes) == "1" ? "3,1,37"
                                                         : "1,5,1"),
                  loose());
  CheckOptions positive = loose();
  positive.low = 0.1;
  checkNative(
      "problem(%0: f32[3,50], %1: i64[1] {1}) %2: f32[3] = reduce_log_sum@28(%0, %1) {keepdims=0, "
      "noop_with_empty_axes=0} return(%2)",
      positive);
}

TEST(Rows, ReductionsWithoutKeptDimensions) {
  checkNative(
      "problem(%0: f32[4,6,50], %1: i64[1] {1}) %2: f32[4,50] = reduce_sum@13(%0, %1) {keepdims=0, "
      "noop_with_empty_axes=0} return(%2)",
      loose());
  EXPECT_FALSE(
      refusalOf("problem(%0: f32[4,6,50]) %1: f32[4,50] = reduce_mean@18(%0, _) {keepdims=0, "
                "noop_with_empty_axes=0} return(%1)")
          .empty());
}

TEST(Rows, ReductionsOfRunTimeExtents) {
  CheckOptions options = loose();
  options.bindings = {{{"N", 1}, {"S", 1}, {"D", 1}},
                      {{"N", 3}, {"S", 16}, {"D", 5}},
                      {{"N", 2}, {"S", 37}, {"D", 19}}};
  struct Axes {
    const char *axes, *kept, *dropped;
    int count;
  };
  const Axes last{"-1", "N,S,1", "N,S", 1}, outermost{"0", "1,S,D", "S,D", 1},
      middle{"1", "N,1,D", "N,D", 1}, two{"0,2", "1,S,1", "S", 2};
  auto reduce = [&](const std::string &op, const Axes &axes, bool keeps) {
    checkNative(fmt::format("problem(%0: f32[N,S,D], %1: i64[{}] {{{}}}) %2: f32[{}] = {}(%0, %1) "
                            "{{keepdims={}, noop_with_empty_axes=0}} return(%2)",
                            axes.count, axes.axes, keeps ? axes.kept : axes.dropped, op,
                            int(keeps)),
                options);
  };
  for (const char *op :
       {"reduce_sum@13", "reduce_mean@18", "reduce_max@20", "reduce_min@20", "reduce_prod@18",
        "reduce_l1@18", "reduce_l2@18", "reduce_sum_square@18", "reduce_log_sum_exp@18"})
    for (const Axes &axes : {last, two})
      reduce(op, axes, true);
  for (const char *op : {"reduce_mean@18", "reduce_max@20"})
    for (const Axes &axes : {outermost, middle}) {
      reduce(op, axes, true);
      reduce(op, axes, false);
    }
  checkNative("problem(%0: f32[N,S,D]) %1: f32[] = reduce_mean@18(%0, _) {keepdims=0, "
              "noop_with_empty_axes=0} return(%1)",
              options);
  checkNative("problem(%0: i64[N,S,D], %1: i64[1] {1}) %2: i64[N,D] = reduce_sum@13(%0, %1) "
              "{keepdims=0, noop_with_empty_axes=0} return(%2)",
              options);
  checkNative("problem(%0: f32[N,S,D], %1: f32[S,D], %2: i64[1] {1}, %3: f32[D]) %4: f32[N,S,D] = "
              "mul@14(%0, %1); %5: f32[N,1,D] = reduce_mean@18(%4, %2) {keepdims=1, "
              "noop_with_empty_axes=0}; %6: f32[N,1,D] = add@14(%5, %3) return(%6)",
              options);
  options.values = {0, 1, 2, 3}; // ties
  for (const char *op : {"arg_max@13", "arg_min@13"})
    checkNative(fmt::format("problem(%0: f32[N,S,D]) %1: i64[N,1,D] = {}(%0) {{axis=1, keepdims=1, "
                            "select_last_index=0}} return(%1)",
                            op),
                options);
}

TEST(Rows, WholeTensor) {
  for (int n : {1, 5, 16, 100, 5000})
    checkNative(fmt::format("problem(%0: f32[{}]) %1: f32[] = reduce_sum@13(%0, _) {{keepdims=0, "
                            "noop_with_empty_axes=0}} "
                            "return(%1)",
                            n),
                loose());
  checkNative("problem(%0: i64[7,9]) %1: i64[] = reduce_max@20(%0, _) {keepdims=0, "
              "noop_with_empty_axes=0} return(%1)");
}

TEST(Rows, SoftmaxAlongAnyAxis) {
  for (int extent : {1, 7, 16, 17, 33, 128, 197})
    checkNative(fmt::format(
        "problem(%0: f32[5,{0}]) %1: f32[5,{0}] = softmax@13(%0) {{axis=-1}} return(%1)", extent));
  for (int axis : {0, 1, 2, 3}) {
    checkNative(fmt::format(
        "problem(%0: f32[2,20,3,9]) %1: f32[2,20,3,9] = softmax@13(%0) {{axis={}}} return(%1)",
        axis));
    checkNative(fmt::format("problem(%0: f32[2,20,3,9]) %1: f32[2,20,3,9] = log_softmax@13(%0) "
                            "{{axis={}}} return(%1)",
                            axis),
                loose());
  }
}

TEST(Rows, SoftmaxWithScaleAndMask) {
  checkNative("problem(%0: f32[2,3,10,40], %1: f32[] {0.125}, %2: f32[2,1,1,40]) %3: "
              "f32[2,3,10,40] = mul@14(%0, %1); "
              "%4: f32[2,3,10,40] = add@14(%3, %2); %5: f32[2,3,10,40] = softmax@13(%4) {axis=-1} "
              "return(%5)");
  CheckOptions options;
  options.bindings = {{{"S", 1}}, {{"S", 16}}, {{"S", 45}}};
  checkNative("problem(%0: f32[2,S,S], %1: f32[S]) %2: f32[2,S,S] = add@14(%0, %1); %3: f32[2,S,S] "
              "= softmax@13(%2) "
              "{axis=2} return(%3)",
              options);
  CheckOptions masked;
  masked.values = {-INFINITY, 1, 2, 3, 0.5};
  checkNative("problem(%0: f32[40,20]) %1: f32[40,20] = softmax@13(%0) {axis=-1} return(%1)",
              masked);
}

TEST(Rows, LayerNormalization) {
  for (int extent : {1, 8, 31, 768})
    checkNative(
        fmt::format(
            "problem(%0: f32[7,{0}], %1: const f32[{0}], %2: const f32[{0}]) %3: f32[7,{0}] = "
            "layer_normalization@17(%0, %1, %2) {{axis=-1, epsilon=1e-05, stash_type=1}} "
            "return(%3)",
            extent),
        loose());
  checkNative("problem(%0: f32[2,5,96], %1: f32[2,5,96], %2: const f32[96], %3: const f32[96]) %4: "
              "f32[2,5,96] = "
              "add@14(%0, %1); %5: f32[2,5,96] = layer_normalization@17(%4, %2, %3) {axis=-1, "
              "epsilon=1e-05, "
              "stash_type=1} return(%4, %5)",
              loose());
  checkNative("problem(%0: f32[2,5,6,8], %1: f32[6,8]) %2: f32[2,5,6,8] = "
              "layer_normalization@17(%0, %1) {axis=2, "
              "epsilon=1e-03, stash_type=1} return(%2)",
              loose());
  CheckOptions options = loose();
  options.bindings = {{{"N", 1}, {"D", 5}}, {{"N", 9}, {"D", 64}}, {{"N", 4}, {"D", 100}}};
  checkNative("problem(%0: f32[N,D], %1: f32[D], %2: f32[D]) %3: f32[N,D] = "
              "layer_normalization@17(%0, %1, %2) {axis=-1, "
              "epsilon=1e-05, stash_type=1}; %4: f32[N,D] = relu@14(%3) return(%4)",
              options);
}

TEST(Rows, NormalizationWrittenOut) {
  checkNative("problem(%0: f32[3,4,50], %1: i64[1] {-1}, %2: f32[] {2}, %3: f32[] {1e-5}, %4: "
              "const f32[50], %5: const "
              "f32[50]) %6: f32[3,4,1] = reduce_mean@18(%0, %1) {keepdims=1, "
              "noop_with_empty_axes=0}; %7: f32[3,4,50] = "
              "sub@14(%0, %6); %8: f32[3,4,50] = pow@15(%7, %2); %9: f32[3,4,1] = "
              "reduce_mean@18(%8, %1) {keepdims=1, "
              "noop_with_empty_axes=0}; %10: f32[3,4,1] = add@14(%9, %3); %11: f32[3,4,1] = "
              "sqrt@13(%10); %12: "
              "f32[3,4,50] = div@14(%7, %11); %13: f32[3,4,50] = mul@14(%12, %4); %14: f32[3,4,50] "
              "= add@14(%13, %5) "
              "return(%14)",
              loose());
  checkNative("problem(%0: f32[6,20], %1: f32[20]) %2: f32[6,20] = rms_normalization@23(%0, %1) "
              "{axis=-1, epsilon=1e-05, "
              "stash_type=1} return(%2)",
              loose());
  for (int p : {1, 2})
    checkNative(fmt::format("problem(%0: f32[6,20,3]) %1: f32[6,20,3] = lp_normalization@22(%0) "
                            "{{axis=1, p={}}} return(%1)",
                            p),
                loose());
  checkNative("problem(%0: f32[2,6,5,7], %1: const f32[6], %2: const f32[6]) %3: f32[2,6,5,7] = "
              "instance_normalization@22(%0, %1, %2) {epsilon=1e-05} return(%3)",
              loose());
}

TEST(Rows, GlobalPoolsInAllLayouts) {
  for (int channels : {16, 24, 19}) {
    auto result = checkNative(fmt::format("problem(%0: f32[2,{0},5,7]) %1: f32[2,{0},1,1] = "
                                          "global_average_pool@22(%0) return(%1)",
                                          channels),
                              loose());
    EXPECT_GE(result.candidates.size(), 6u);
    checkNative(fmt::format(
        "problem(%0: f32[2,{0},5,7]) %1: f32[2,{0},1,1] = global_max_pool@22(%0) return(%1)",
        channels));
    checkNative(fmt::format("problem(%0: f32[2,{0},5,7], %1: const f32[{0},1,1]) %2: "
                            "f32[2,{0},5,7] = add@14(%0, %1); %3: "
                            "f32[2,{0},5,7] = hard_swish@22(%2); %4: f32[2,{0},1,1] = "
                            "global_average_pool@22(%3) return(%3, "
                            "%4)",
                            channels),
                loose());
    checkNative(fmt::format("problem(%0: f32[2,{0},5,7], %1: i64[2] {{2,3}}) %2: f32[2,{0}] = "
                            "reduce_mean@18(%0, %1) "
                            "{{keepdims=0, noop_with_empty_axes=0}} return(%2)",
                            channels),
                loose());
    // Over the channels, which lie in blocks.
    checkNative(
        fmt::format(
            "problem(%0: f32[2,{0},3,7]) %1: f32[2,{0},3,7] = softmax@13(%0) {{axis=1}} return(%1)",
            channels),
        loose());
    checkNative(fmt::format(
        "problem(%0: f32[2,{0},3,7], %1: i64[1] {{1}}) %2: f32[2,1,3,7] = reduce_max@20(%0, %1) "
        "{{keepdims=1, noop_with_empty_axes=0}} return(%2)",
        channels));
  }
}

TEST(Rows, Arguments) {
  for (const char *op : {"arg_max@13", "arg_min@13"})
    for (int lastIndex : {0, 1})
      for (int axis : {0, 1, 2}) {
        CheckOptions ties;
        ties.values = {0, 1, 2, 3};
        checkNative(
            fmt::format("problem(%0: f32[5,40,9]) %1: i64[{}] = {}(%0) {{axis={}, keepdims=1, "
                        "select_last_index={}}} return(%1)",
                        axis == 0   ? "1,40,9"
                        : axis == 1 ? "5,1,9"
                                    : "5,40,1",
                        op, axis, lastIndex),
            ties);
      }
  checkNative("problem(%0: f32[5,400]) %1: i64[5] = arg_max@13(%0) {axis=-1, keepdims=0, "
              "select_last_index=0} return(%1)");
}

TEST(Rows, Epilogues) {
  checkNative("problem(%0: f32[4,30,20], %1: i64[1] {1}, %2: f32[20]) %3: f32[4,20] = "
              "reduce_sum@13(%0, %1) {keepdims=0, "
              "noop_with_empty_axes=0}; %4: f32[4,20] = add@14(%3, %2); %5: f32[4,20] = "
              "relu@14(%4) return(%5)",
              loose());
  EXPECT_FALSE(
      refusalOf(
          "problem(%0: f32[4,30], %1: i64[1]) %2: f32[4,1] = reduce_sum@13(%0, %1) {keepdims=1, "
          "noop_with_empty_axes=0} return(%2)")
          .empty());
}

} // namespace
} // namespace dovetail::test
