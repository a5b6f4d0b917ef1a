// SPDX-License-Identifier: Apache-2.0
//
// Element types beyond f32: 16-bit floats, which are computed in f32 and rounded once, integers of
// all widths, and quantisation between them, in every family that computes or moves single
// elements. The reference provider computes in f64 and rounds after each op.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

constexpr const char *kHalves[] = {"f16", "bf16"};

/// `text` with every T replaced by a type.
std::string withType(std::string text, const std::string &type) {
  for (size_t at; (at = text.find('T')) != text.npos;)
    text.replace(at, 1, type);
  return text;
}

void checkHalves(const std::string &text, const CheckOptions &options = {}) {
  for (const char *type : kHalves)
    checkNative(withType(text, type), options);
}

TEST(ElementTypes, UnaryOnHalves) {
  for (const char *op :
       {"abs@13", "neg@13", "sign@13", "exp@13", "tanh@13", "erf@13", "sigmoid@13", "floor@13",
        "ceil@13", "round@22", "relu@14", "softplus@22", "hard_swish@22", "sqrt@13", "log@13"}) {
    CheckOptions options;
    checkHalves(fmt::format("problem(%0: T[1037]) %1: T[1037] = {}(%0) return(%1)", op), options);
    options.specials = true;
    checkHalves(fmt::format("problem(%0: T[333]) %1: T[333] = {}(%0) return(%1)", op), options);
  }
}

TEST(ElementTypes, ArithmeticOnHalves) {
  for (const char *op : {"add@14", "sub@14", "mul@14", "div@14", "max@13", "min@13", "pow@15"}) {
    CheckOptions options;
    options.low = 0.1; // powers of negative numbers are NaN
    checkHalves(
        fmt::format("problem(%0: T[7,33], %1: T[33]) %2: T[7,33] = {}(%0, %1) return(%2)", op),
        options);
    options.low = -3;
    options.specials = std::string(op) != "pow@15";
    checkHalves(fmt::format("problem(%0: T[5,1,19], %1: T[1,4,19]) %2: T[5,4,19] = {}(%0, %1) "
                            "return(%2)",
                            op),
                options);
  }
}

TEST(ElementTypes, OverflowAndTinyNumbersOfHalves) {
  CheckOptions options;
  // 65520 is the smallest number that rounds to infinity in f16; 6e-8 the smallest above zero.
  options.values = {65504, 300, -300, 6e-8, -6e-8, 3e-5, 0.0, -0.0, 1, 65519.99, 1e-3, -70000};
  checkHalves("problem(%0: T[501], %1: T[501]) %2: T[501] = mul@14(%0, %1) return(%2)", options);
  checkHalves("problem(%0: T[501], %1: T[501]) %2: T[501] = add@14(%0, %1) return(%2)", options);
  for (auto [type, number] : {std::pair("f16", 10), {"bf16", 16}})
    checkNative(fmt::format("problem(%0: f32[501]) %1: {}[501] = cast@28(%0) {{round_mode=\"up\", "
                            "saturate=1, to={}}} return(%1)",
                            type, number),
                options);
}

TEST(ElementTypes, ComparisonsSeeRoundedHalves) {
  CheckOptions options;
  options.values = {1, 1.0009765625, 1.5, 0.333, 3, 2.998, -1};
  // In f32 the product differs from the third operand where the rounded one does not.
  checkHalves("problem(%0: T[700], %1: T[700], %2: T[700]) %3: T[700] = mul@14(%0, %1); "
              "%4: bool[700] = equal@19(%3, %2); %5: bool[700] = less@13(%3, %2) return(%4, %5)",
              options);
  checkHalves("problem(%0: T[700], %1: T[700]) %2: T[700] = mul@14(%0, %1); "
              "%3: T[700] = floor@13(%2) return(%3)",
              options);
}

TEST(ElementTypes, CastsBetweenAllTypes) {
  struct Type {
    const char *name;
    int number;
  };
  const Type types[] = {{"f32", 1}, {"u8", 2},   {"i8", 3},   {"u16", 4},  {"i16", 5},  {"i32", 6},
                        {"i64", 7}, {"bool", 9}, {"f16", 10}, {"u32", 12}, {"bf16", 16}};
  for (const Type &from : types)
    for (const Type &to : types) {
      CheckOptions options;
      options.low = std::string(from.name)[0] == 'u' || std::string(to.name)[0] == 'u' ? 0 : -100;
      options.high = 100;
      checkNative(fmt::format("problem(%0: {0}[77]) %1: {1}[77] = cast@28(%0) "
                              "{{round_mode=\"up\", saturate=1, to={2}}} return(%1)",
                              from.name, to.name, to.number),
                  options);
    }
}

TEST(ElementTypes, IntegerArithmeticWraps) {
  for (const char *type : {"u8", "i8", "u16", "i16", "i32", "u32", "i64"})
    for (const char *op : {"add@14", "sub@14", "mul@14", "min@13", "max@13"}) {
      CheckOptions options;
      options.low = type[0] == 'u' ? 0 : -128;
      options.high = type[0] == 'u' ? 255 : 127;
      checkNative(withType(fmt::format("problem(%0: T[3,21], %1: T[21]) %2: T[3,21] = {}(%0, %1) "
                                       "return(%2)",
                                       op),
                           type),
                  options);
    }
}

TEST(ElementTypes, WholeNumbersBeyondF64) {
  checkNative("problem(%0: i64[33], %1: i64[] {9223372036854775807}) "
              "%2: i64[33] = min@13(%0, %1) return(%2)");
  checkNative("problem(%0: i64[33], %1: i64[] {9007199254740993}) "
              "%2: i64[33] = add@14(%0, %1) return(%2)");
}

TEST(ElementTypes, SelectsAndClips) {
  for (const char *type : {"f16", "bf16", "i8", "u8", "i32", "i64", "bool"})
    checkNative(withType("problem(%0: bool[9,40], %1: T[40], %2: T[9,1]) "
                         "%3: T[9,40] = where@16(%0, %1, %2) return(%3)",
                         type),
                {.low = 0});
  for (const char *type : {"f16", "bf16", "i8", "u8", "i32", "i64"})
    checkNative(withType("problem(%0: T[90], %1: T[], %2: T[]) %3: T[90] = clip@13(%0, %1, %2) "
                         "return(%3)",
                         type),
                {.low = 0});
}

TEST(ElementTypes, ReductionsOfHalves) {
  for (const char *op :
       {"reduce_sum@13", "reduce_mean@18", "reduce_max@20", "reduce_min@20", "reduce_l2@18"})
    for (const char *axes : {"1", "0", "-1"})
      checkHalves(fmt::format("problem(%0: T[13,7,41], %1: i64[1] {{{1}}}) "
                              "%2: T[{2}] = {0}(%0, %1) {{keepdims=0, noop_with_empty_axes=0}} "
                              "return(%2)",
                              op, axes,
                              axes[0] == '1'   ? "13,41"
                              : axes[0] == '0' ? "7,41"
                                               : "13,7"),
                  {.largest = 4});
}

TEST(ElementTypes, NormalisationsOfHalves) {
  checkHalves("problem(%0: T[5,65]) %1: T[5,65] = softmax@13(%0) {axis=-1} return(%1)");
  checkHalves("problem(%0: T[5,65]) %1: T[5,65] = log_softmax@13(%0) {axis=-1} return(%1)",
              {.largest = 4});
  checkHalves("problem(%0: T[6,77], %1: T[77], %2: T[77]) %3: T[6,77] = "
              "layer_normalization@17(%0, %1, %2) {axis=-1, epsilon=1e-5f, stash_type=1} "
              "return(%3)",
              {.quanta = 2, .largest = 4});
  checkHalves("problem(%0: T[2,7,5,9]) %1: T[2,7,1,1] = global_average_pool@22(%0) return(%1)",
              {.largest = 1});
}

TEST(ElementTypes, ReductionsOfIntegers) {
  for (const char *type : {"u8", "i8", "i32", "u32", "i64", "i16", "u16"})
    for (const char *op : {"reduce_max@20", "reduce_min@20"})
      checkNative(withType(fmt::format("problem(%0: T[13,40], %1: i64[1] {{1}}) %2: T[13] = "
                                       "{}(%0, %1) {{keepdims=0, noop_with_empty_axes=0}} "
                                       "return(%2)",
                                       op),
                           type),
                  {.low = type[0] == 'u' ? 0.0 : -128.0, .high = 127});
  for (const char *type : {"i32", "i64"})
    checkNative(withType("problem(%0: T[13,40], %1: i64[1] {0}) %2: T[40] = reduce_sum@13(%0, %1) "
                         "{keepdims=0, noop_with_empty_axes=0} return(%2)",
                         type),
                {.low = -128, .high = 127});
  for (const char *type : {"f16", "bf16", "u8", "i8", "i32"})
    checkNative(withType("problem(%0: T[13,40]) %1: i64[13,1] = arg_max@13(%0) {axis=1, "
                         "keepdims=1, select_last_index=0} return(%1)",
                         type),
                {.low = 0});
}

TEST(ElementTypes, Pools) {
  const char *pool = "problem(%0: T[2,20,9,11]) %1: T[2,20,5,6] = {}@22(%0) {{{}ceil_mode=0, "
                     "dilations=[1,1], kernel_shape=[3,3], pads=[1,1,1,1], {}strides=[2,2]}} "
                     "return(%1)";
  for (const char *type : {"f16", "bf16", "i8", "u8"})
    checkNative(
        withType(fmt::format(fmt::runtime(pool), "max_pool", "", "storage_order=0, "), type),
        {.low = type[0] == 'u' ? 0.0 : -100.0, .high = 100});
  checkHalves(fmt::format(fmt::runtime(pool), "average_pool", "count_include_pad=0, ", ""),
              {.largest = 1});
}

TEST(ElementTypes, MovementOfAnyType) {
  for (const char *type :
       {"f16", "bf16", "f64", "u8", "i8", "u16", "i16", "i32", "u32", "i64", "u64", "bool"}) {
    CheckOptions options;
    options.low = 0;
    options.specials = true;
    for (const char *text :
         {"problem(%0: T[5,19,33]) %1: T[33,5,19] = transpose@25(%0) {perm=[2,0,1]} return(%1)",
          "problem(%0: T[3,17], %1: T[3,5]) %2: T[3,22] = concat@13(%0, %1) {axis=1} return(%2)",
          "problem(%0: T[40,19], %1: i64[7]) %2: T[7,19] = gather@13(%0, %1) {axis=0} return(%2)",
          "problem(%0: T[6,13], %1: i64[4] {0,2,1,3}) %2: T[7,18] = pad@25(%0, %1) "
          "{mode=\"constant\"} return(%2)",
          "problem(%0: T[6,13], %1: i64[4] {0,2,1,3}, %2: T[]) %3: T[7,18] = pad@25(%0, %1, %2) "
          "{mode=\"constant\"} return(%3)"})
      checkNative(withType(text, type), options);
  }
}

TEST(ElementTypes, ComputingBesideMovement) {
  checkHalves("problem(%0: T[5,19,33], %1: T[33,1,1]) %2: T[33,5,19] = transpose@25(%0) "
              "{perm=[2,0,1]}; %3: T[33,5,19] = add@14(%2, %1) return(%3)");
  checkHalves("problem(%0: T[40,19], %1: i64[7]) %2: T[7,19] = gather@13(%0, %1) {axis=0}; "
              "%3: f32[7,19] = cast@28(%2) {round_mode=\"up\", saturate=1, to=1} return(%3)");
}

TEST(ElementTypes, QuantizeLinear) {
  for (const char *type : {"u8", "i8", "u16", "i16"})
    for (const char *zero : {"0", "3", "127"}) {
      CheckOptions options;
      options.low = -40;
      options.high = 40;
      options.specials = true;
      checkNative(fmt::format("problem(%0: f32[3,211], %1: f32[] {{0.125}}, %2: {0}[] {{{1}}}) "
                              "%3: {0}[3,211] = quantize_linear@28(%0, %1, %2) {{axis=1, "
                              "block_size=0, output_dtype=0, precision=0, saturate=1}} return(%3)",
                              type, zero),
                  options);
      // Half of these quotients lie on ties.
      options.specials = false;
      options.values = {0.25, 0.75, -0.25, -0.75, 1.25, 100, -100, 63.75, -63.75, 15.9375};
      checkNative(fmt::format("problem(%0: f32[3,211], %1: f32[] {{0.5}}, %2: {0}[] {{{1}}}) "
                              "%3: {0}[3,211] = quantize_linear@28(%0, %1, %2) {{axis=1, "
                              "block_size=0, output_dtype=0, precision=0, saturate=1}} return(%3)",
                              type, zero),
                  options);
    }
}

TEST(ElementTypes, QuantizeLinearAlongAxes) {
  for (auto [axis, extent] : {std::pair(0, 4), {1, 6}, {2, 6}, {-1, 35}})
    for (const char *type : {"u8", "i8"}) {
      CheckOptions options;
      options.low = 1;
      options.high = 90;
      checkNative(fmt::format("problem(%0: f32[4,6,6,35], %1: f32[{1}], %2: {2}[{1}]) "
                              "%3: {2}[4,6,6,35] = quantize_linear@28(%0, %1, %2) {{axis={0}, "
                              "block_size=0, output_dtype=0, precision=0, saturate=1}} return(%3)",
                              axis, extent, type),
                  options);
      checkNative(fmt::format("problem(%0: {2}[4,6,6,35], %1: f32[{1}], %2: {2}[{1}]) "
                              "%3: f32[4,6,6,35] = dequantize_linear@28(%0, %1, %2) {{axis={0}, "
                              "block_size=0, output_dtype=0}} return(%3)",
                              axis, extent, type),
                  options);
    }
}

TEST(ElementTypes, DequantizeLinear) {
  for (const char *type : {"u8", "i8", "u16", "i16"})
    for (const char *to : {"f32", "f16", "bf16"})
      checkNative(fmt::format("problem(%0: {0}[3,70], %1: {1}[] {{0.0625}}, %2: {0}[] {{5}}) "
                              "%3: {1}[3,70] = dequantize_linear@28(%0, %1, %2) {{axis=1, "
                              "block_size=0, output_dtype=0}} return(%3)",
                              type, to),
                  {.low = type[0] == 'u' ? 0.0 : -128.0, .high = 127});
  checkNative("problem(%0: i32[3,70], %1: f32[70]) %2: f32[3,70] = dequantize_linear@28(%0, %1) "
              "{axis=1, block_size=0, output_dtype=0} return(%2)",
              {.low = -100000, .high = 100000});
}

TEST(ElementTypes, QuantizeHalves) {
  for (const char *type : kHalves)
    checkNative(fmt::format("problem(%0: {0}[3,211], %1: {0}[] {{0.3}}, %2: i8[] {{3}}) "
                            "%3: i8[3,211] = quantize_linear@28(%0, %1, %2) {{axis=1, "
                            "block_size=0, output_dtype=0, precision=0, saturate=1}} return(%3)",
                            type),
                {.low = -40, .high = 40});
}

TEST(ElementTypes, DynamicQuantizeLinear) {
  for (const char *extents : {"3,211", "1", "2,3,5,7", "4096"})
    for (double low : {-3.0, 1.0}) {
      CheckOptions options;
      options.low = low;
      checkNative(fmt::format("problem(%0: f32[{0}]) %1: u8[{0}], %2: f32[], %3: u8[] = "
                              "dynamic_quantize_linear@11(%0) return(%1, %2, %3)",
                              extents),
                  options);
    }
  CheckOptions zeros;
  zeros.values = {0};
  checkNative("problem(%0: f32[37]) %1: u8[37], %2: f32[], %3: u8[] = "
              "dynamic_quantize_linear@11(%0) return(%1, %2, %3)",
              zeros);
}

TEST(ElementTypes, QuantisedChains) {
  // As exporters write a residual of quantised images; also in the layouts of convolutions.
  CheckOptions options;
  options.low = -128;
  options.high = 127;
  checkNative(
      "problem(%0: i8[1,32,9,11], %1: f32[] {0.02}, %2: i8[] {-3}, %3: i8[1,32,9,11], "
      "%4: f32[] {0.05}) %5: f32[1,32,9,11] = dequantize_linear@28(%0, %1, %2) {axis=1, "
      "block_size=0, output_dtype=0}; %6: f32[1,32,9,11] = dequantize_linear@28(%3, %4, %2) "
      "{axis=1, block_size=0, output_dtype=0}; %7: f32[1,32,9,11] = add@14(%5, %6); "
      "%8: f32[1,32,9,11] = relu@14(%7); %9: i8[1,32,9,11] = quantize_linear@28(%8, %4, %2) "
      "{axis=1, block_size=0, output_dtype=0, precision=0, saturate=1} return(%9)",
      options);
}

TEST(ElementTypes, BatchNormalisationLiesAlongChannels) {
  // All extents are equal, so that only the op's meaning tells which dimension is meant.
  for (const char *type : {"f32", "f16"})
    checkNative(withType("problem(%0: T[6,6,6], %1: T[6], %2: T[6], %3: T[6], %4: T[6]) "
                         "%5: T[6,6,6] = batch_normalization@15(%0, %1, %2, %3, %4) "
                         "{epsilon=1e-5f, momentum=0.9f, training_mode=0} return(%5)",
                         type),
                {.low = 0.5, .largest = 8});
}

} // namespace
} // namespace dovetail::test
