// SPDX-License-Identifier: Apache-2.0
//
// Kernels for all devices: compiled, taken by the devices' tools, and right in their host form.
#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "DeviceCheck.h"

namespace dovetail::test {
namespace {

CheckOptions loose() {
  CheckOptions options;
  options.relative = 2e-5;
  options.absolute = 2e-5;
  return options;
}

TEST(DeviceKernels, Pointwise) {
  checkDevices(
      "problem(%0: f32[3,5,70], %1: f32[5,1], %2: f32[]) %3: f32[3,5,70] = add@14(%0, %1); "
      "%4: f32[3,5,70] = mul@14(%3, %2); %5: f32[3,5,70] = gelu@20(%4) "
      "{approximate=\"none\"} return(%5)",
      loose());
  checkDevices("problem(%0: f32[1000]) %1: f32[1000] = exp@13(%0); %2: f32[1000] = tanh@13(%1) "
               "return(%2)",
               loose());
}

TEST(DeviceKernels, PointwiseOfOtherTypes) {
  // The truth rounds the product, which kernels keep in f32. Sigmoid makes at most 1e-4 of that,
  // less than half a unit of 0.25.
  CheckOptions options;
  options.largest = 0.25;
  checkDevices("problem(%0: f16[7,33], %1: f16[33]) %2: f16[7,33] = mul@14(%0, %1); %3: f16[7,33] "
               "= sigmoid@13(%2) return(%3)",
               options);
  checkDevices("problem(%0: f16[7,33]) %1: f16[7,33] = sigmoid@13(%0) return(%1)");
  checkDevices("problem(%0: bf16[7,33], %1: bf16[33]) %2: bf16[7,33] = mul@14(%0, %1) return(%2)");
  // What jumps between neighbours sees the rounded product.
  checkDevices("problem(%0: f16[700], %1: f16[700], %2: f16[700]) %3: f16[700] = mul@14(%0, %1); "
               "%4: bool[700] = equal@19(%3, %2); %5: bool[700] = less@13(%3, %2) return(%4, %5)",
               {.values = {1, 1.0009765625, 1.5, 0.333, 3, 2.998, -1}});
  checkDevices("problem(%0: i64[40], %1: i64[40]) %2: i64[40] = add@14(%0, %1); %3: bool[40] = "
               "less@13(%2, %0) return(%2, %3)");
}

TEST(DeviceKernels, RunTimeExtents) {
  CheckOptions options = loose();
  options.bindings = {{{"N", 1}, {"S", 7}}, {{"N", 3}, {"S", 600}}};
  checkDevices("problem(%0: f32[N,S,8], %1: f32[S,1]) %2: f32[N,S,8] = add@14(%0, %1); %3: "
               "f32[N,S,8] = relu@14(%2) return(%3)",
               options);
  checkDevices("problem(%0: f32[N,S]) %1: f32[N,S] = softmax@13(%0) {axis=-1} return(%1)", options);
}

TEST(DeviceKernels, Rows) {
  for (int extent : {1, 7, 33, 128, 1000})
    checkDevices(fmt::format("problem(%0: f32[5,{0}]) %1: f32[5,{0}] = softmax@13(%0) {{axis=-1}} "
                             "return(%1)",
                             extent),
                 loose());
  checkDevices("problem(%0: f32[2,20,3,9]) %1: f32[2,20,3,9] = softmax@13(%0) {axis=1} return(%1)",
               loose());
  checkDevices("problem(%0: f32[6,96], %1: const f32[96], %2: const f32[96]) %3: f32[6,96] = "
               "layer_normalization@17(%0, %1, %2) {axis=-1, epsilon=1e-5, stash_type=1} "
               "return(%3)",
               loose());
  checkDevices("problem(%0: f32[3,5,37], %1: i64[2] {0,2}) %2: f32[1,5,1] = reduce_mean@18(%0, %1) "
               "{keepdims=1, noop_with_empty_axes=0} return(%2)",
               loose());
  checkDevices("problem(%0: f32[2000]) %1: f32[] = reduce_sum@13(%0, _) {keepdims=0, "
               "noop_with_empty_axes=0} return(%1)",
               loose());
  checkDevices("problem(%0: f32[4,300]) %1: i64[4,1] = arg_max@13(%0) {axis=1, keepdims=1, "
               "select_last_index=0} return(%1)");
}

TEST(DeviceKernels, Moves) {
  checkDevices("problem(%0: f32[4,5,33]) %1: f32[33,4,5] = transpose@24(%0) {perm=[2,0,1]} "
               "return(%1)");
  checkDevices("problem(%0: f32[4,9], %1: f32[4,20]) %2: f32[4,29] = concat@13(%0, %1) {axis=1} "
               "return(%2)");
  CheckOptions options;
  options.low = -9;
  options.high = 8;
  checkDevices("problem(%0: f32[9,40], %1: i64[2,5]) %2: f32[2,5,40] = gather@13(%0, %1) {axis=0} "
               "return(%2)",
               options);
}

TEST(DeviceKernels, Pools) {
  checkDevices("problem(%0: f32[2,3,12,20]) %1: f32[2,3,6,10] = max_pool@22(%0) "
               "{auto_pad=\"NOTSET\", ceil_mode=0, dilations=[1,1], kernel_shape=[3,3], "
               "pads=[1,1,1,1], storage_order=0, strides=[2,2]} return(%1)");
  checkDevices("problem(%0: f32[1,8,11,13]) %1: f32[1,8,4,5] = average_pool@22(%0) "
               "{auto_pad=\"NOTSET\", ceil_mode=0, count_include_pad=0, dilations=[1,1], "
               "kernel_shape=[3,2], pads=[1,0,0,1], strides=[3,3]} return(%1)",
               loose());
}

TEST(DeviceKernels, MatrixProducts) {
  CheckOptions options;
  options.low = -1;
  options.high = 1;
  options.relative = options.absolute = 1e-4;
  checkDevices("problem(%0: f32[70,33], %1: const f32[33,90]) %2: f32[70,90] = mat_mul@13(%0, %1) "
               "return(%2)",
               options);
  checkDevices("problem(%0: f32[2,3,5,17], %1: f32[2,3,17,33], %2: f32[33]) %3: f32[2,3,5,33] = "
               "mat_mul@13(%0, %1); %4: f32[2,3,5,33] = add@14(%3, %2); %5: f32[2,3,5,33] = "
               "gelu@20(%4) {approximate=\"none\"} return(%5)",
               options);
  checkDevices("problem(%0: f32[3,100], %1: const f32[100,70]) %2: f32[3,70] = mat_mul@13(%0, %1) "
               "return(%2)",
               options);
  checkDevices("problem(%0: f32[33,17], %1: f32[17]) %2: f32[33] = mat_mul@13(%0, %1) return(%2)",
               options);
  options.bindings = {{{"N", 1}}, {{"N", 67}}};
  checkDevices("problem(%0: f32[N,40], %1: const f32[50,40], %2: const f32[50]) %3: f32[N,50] = "
               "gemm@13(%0, %1, %2) {alpha=0.5, beta=2.0, transA=0, transB=1} return(%3)",
               options);
}

TEST(DeviceKernels, MatrixProductsOfHalfFloats) {
  CheckOptions options;
  options.low = -1;
  options.high = 1;
  options.quanta = 2;
  options.largest = 4;
  for (const char *type : {"f16", "bf16"})
    checkDevices(fmt::format("problem(%0: {0}[20,64], %1: const {0}[64,40]) %2: {0}[20,40] = "
                             "mat_mul@13(%0, %1) return(%2)",
                             type),
                 options);
}

TEST(DeviceKernels, Convolutions) {
  CheckOptions options;
  options.low = -1;
  options.high = 1;
  options.relative = options.absolute = 1e-4;
  checkDevices("problem(%0: f32[2,6,11,13], %1: const f32[20,6,3,3], %2: const f32[20]) %3: "
               "f32[2,20,6,7] = conv@22(%0, %1, %2) {dilations=[1,1], group=1, "
               "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]}; %4: f32[2,20,6,7] = "
               "relu@14(%3) return(%4)",
               options);
  checkDevices(
      "problem(%0: f32[1,12,9,9], %1: const f32[12,1,3,3]) %2: f32[1,12,9,9] = conv@22(%0, "
      "%1) {dilations=[1,1], group=12, kernel_shape=[3,3], pads=[1,1,1,1], "
      "strides=[1,1]} return(%2)",
      options);
  checkDevices("problem(%0: f32[1,8,5,6], %1: const f32[8,10,3,3]) %2: f32[1,10,11,13] = "
               "conv_transpose@22(%0, %1) {dilations=[1,1], group=1, kernel_shape=[3,3], "
               "output_padding=[0,0], pads=[0,0,0,0], strides=[2,2]} return(%2)",
               options);
  options.bindings = {{{"N", 1}, {"H", 9}}, {{"N", 2}, {"H", 14}}};
  checkDevices("problem(%0: f32[N,16,H,10], %1: const f32[24,16,1,1]) %2: f32[N,24,H,10] = "
               "conv@22(%0, %1) {dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], "
               "strides=[1,1]} return(%2)",
               options);
}

TEST(DeviceKernels, Attention) {
  CheckOptions options = loose();
  options.low = -1;
  options.high = 1;
  // Lengths around the blocks of queries and keys, channels around those of a thread.
  for (auto [queries, keys, size, valueSize] :
       {std::array{1, 70, 16, 16}, std::array{19, 64, 24, 40}, std::array{33, 7, 5, 3}})
    checkDevices(fmt::format("problem(%0: f32[1,2,{0},{2}], %1: f32[1,2,{1},{2}], %2: "
                             "f32[1,2,{1},{3}]) %3: f32[1,2,{0},{3}] = attention@24(%0, %1, %2) "
                             "return(%3)",
                             queries, keys, size, valueSize),
                 options);
  for (const char *mask : {"f32[2,1,20,45]", "bool[20,45]"})
    checkDevices(fmt::format("problem(%0: f32[2,4,20,16], %1: f32[2,2,45,16], %2: f32[2,2,45,16], "
                             "%3: {}) %4: f32[2,4,20,16] = attention@24(%0, %1, %2, %3) "
                             "{{is_causal=1, scale=0.3}} return(%4)",
                             mask),
                 options);
  checkDevices("problem(%0: f32[2,20,3,16], %1: f32[2,33,3,16], %2: f32[2,33,3,16]) "
               "%3: f32[2,3,20,16] = transpose@13(%0) {perm=[0,2,1,3]}; "
               "%4: f32[2,3,33,16] = transpose@13(%1) {perm=[0,2,1,3]}; "
               "%5: f32[2,3,33,16] = transpose@13(%2) {perm=[0,2,1,3]}; "
               "%6: f32[2,3,20,16] = attention@24(%3, %4, %5) {scale=0.125}; "
               "%7: f32[2,20,3,16] = transpose@13(%6) {perm=[0,2,1,3]} return(%7)",
               options);
}

TEST(DeviceKernels, AttentionOfRunTimeLengthsAndHalves) {
  CheckOptions options = loose();
  options.low = -1;
  options.high = 1;
  options.bindings = {{{"B", 1}, {"S", 1}, {"T", 1}}, {{"B", 2}, {"S", 19}, {"T", 130}}};
  checkDevices("problem(%0: f32[B,2,S,16], %1: f32[B,2,T,16], %2: f32[B,2,T,16]) %3: "
               "f32[B,2,S,16] = attention@24(%0, %1, %2) return(%3) where B in 1..4, S in 1..512, "
               "T in 1..512",
               options);
  CheckOptions halves;
  halves.low = -1;
  halves.high = 1;
  halves.quanta = 2;
  halves.largest = 1;
  for (const char *type : {"f16", "bf16"})
    checkDevices(fmt::format("problem(%0: {0}[1,2,20,64], %1: {0}[1,2,70,64], %2: {0}[1,2,70,64]) "
                             "%3: {0}[1,2,20,64] = attention@24(%0, %1, %2) return(%3)",
                             type),
                 halves);
}

TEST(DeviceKernels, CarryWhatALaunchNeeds) {
  auto candidates =
      checkDevices("problem(%0: f32[N,S,8]) %1: f32[N,S,8] = relu@14(%0) return(%1)", [] {
        CheckOptions options;
        options.bindings = {{{"N", 2}, {"S", 40}}};
        return options;
      }());
  ASSERT_FALSE(candidates.empty());
  const DeviceLaunch &launch = candidates[0].kernel.launches.at(0);
  std::vector<std::vector<int64_t>> extents = {{2, 40, 8}, {2, 40, 8}};
  EXPECT_EQ(*launch.blocks.evaluate(extents), (2 * 40 * 8 + 255) / 256);
  extents = {{0, 40, 8}, {0, 40, 8}};
  EXPECT_EQ(*launch.blocks.evaluate(extents), 0);
}

} // namespace
} // namespace dovetail::test
