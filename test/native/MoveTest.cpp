// SPDX-License-Identifier: Apache-2.0
//
// Movement by computed positions: gathers with good, negative and bad indices, every mode of
// padding and resizing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

TEST(Move, Gathers) {
  CheckOptions options;
  options.low = -9;
  options.high = 8;
  for (const char *type : {"i64", "i32"}) {
    checkNative(fmt::format("problem(%0: f32[9,40], %1: {}[2,5]) %2: f32[2,5,40] = gather@13(%0, "
                            "%1) {{axis=0}} return(%2)",
                            type),
                options);
    checkNative(fmt::format("problem(%0: f32[4,9], %1: {}[7]) %2: f32[4,7] = gather@13(%0, %1) "
                            "{{axis=1}} return(%2)",
                            type),
                options);
    checkNative(fmt::format("problem(%0: f32[4,9], %1: {}[4,7]) %2: f32[4,7] = "
                            "gather_elements@13(%0, %1) {{axis=1}} "
                            "return(%2)",
                            type),
                options);
  }
  checkNative("problem(%0: f32[5,9,8], %1: i64[] {3}) %2: f32[5,8] = gather@13(%0, %1) {axis=1} "
              "return(%2)");
  checkNative(
      "problem(%0: i64[9], %1: i64[17]) %2: i64[17] = gather@13(%0, %1) {axis=0} return(%2)",
      options);
  options.low = -3;
  options.high = 2;
  checkNative("problem(%0: f32[3,4,5], %1: i64[6,2]) %2: f32[6,5] = gather_nd@13(%0, %1) "
              "{batch_dims=0} return(%2)",
              options);
  options.bindings = {{{"S", 1}}, {{"S", 19}}};
  checkNative("problem(%0: const f32[3,24], %1: i64[2,S], %2: const f32[24]) %3: f32[2,S,24] = "
              "gather@13(%0, %1) {axis=0}; "
              "%4: f32[2,S,24] = add@14(%3, %2) return(%4)",
              options);
}

TEST(Move, Pads) {
  for (const char *mode : {"constant", "edge", "reflect", "wrap"}) {
    checkNative(fmt::format("problem(%0: f32[3,6,9], %1: i64[6] {{0,2,1,0,3,2}}) %2: f32[3,11,12] "
                            "= pad@25(%0, %1, _, _) "
                            "{{mode=\"{}\"}} return(%2)",
                            mode));
    checkNative(fmt::format("problem(%0: f32[1,20,5,7], %1: i64[8] {{0,0,1,2,0,0,1,2}}) %2: "
                            "f32[1,20,7,11] = pad@25(%0, %1, _, "
                            "_) {{mode=\"{}\"}} return(%2)",
                            mode));
  }
  checkNative("problem(%0: f32[3,6], %1: i64[4] {1,-1,0,2}, %2: f32[] {7.5}) %3: f32[4,7] = "
              "pad@25(%0, %1, %2, _) "
              "{mode=\"constant\"}; %4: f32[4,7] = neg@13(%3) return(%4)");
}

TEST(Move, PadsOfRunTimeExtents) {
  CheckOptions options;
  options.bindings = {{{"N", 1}, {"S", 1}}, {{"N", 3}, {"S", 16}}, {{"N", 2}, {"S", 37}}};
  for (const char *mode : {"constant", "edge", "reflect", "wrap"}) {
    checkNative(fmt::format("problem(%0: f32[N,S], %1: i64[4] {{0,2,1,3}}) %2: f32[N+1,S+5] = "
                            "pad@25(%0, %1, _, _) {{mode=\"{}\"}} return(%2)",
                            mode),
                options);
    checkNative(fmt::format("problem(%0: f32[N,20,S,7], %1: i64[8] {{0,0,1,2,0,0,1,2}}) %2: "
                            "f32[N,20,S+2,11] = pad@25(%0, %1, _, _) {{mode=\"{}\"}} return(%2)",
                            mode),
                options);
  }
  checkNative("problem(%0: f32[N,S+1], %1: i64[4] {1,-1,0,2}, %2: f32[] {7.5}) %3: f32[N+1,S+2] = "
              "pad@25(%0, %1, %2, _) "
              "{mode=\"constant\"}; %4: f32[N+1,S+2] = neg@13(%3) return(%4)",
              options);
}

TEST(Move, Resizes) {
  for (const char *coordinates :
       {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}) {
    for (const char *nearest : {"round_prefer_floor", "floor", "ceil", "round_prefer_ceil"})
      checkNative(fmt::format(
          "problem(%0: f32[1,19,4,6], %2: f32[4] {{1,1,2,2}}) %1: f32[1,19,8,12] = resize@19(%0, "
          "_, %2, _) "
          "{{antialias=0, coordinate_transformation_mode=\"{}\", cubic_coeff_a=-0.75, "
          "exclude_outside=0, "
          "extrapolation_value=0.0, keep_aspect_ratio_policy=\"stretch\", mode=\"nearest\", "
          "nearest_mode=\"{}\"}} return(%1)",
          coordinates, nearest));
    checkNative(fmt::format(
        "problem(%0: f32[1,16,4,6], %2: i64[4] {{1,16,7,15}}) %1: f32[1,16,7,15] = resize@19(%0, "
        "_, _, %2) "
        "{{antialias=0, coordinate_transformation_mode=\"{}\", cubic_coeff_a=-0.75, "
        "exclude_outside=0, "
        "extrapolation_value=0.0, keep_aspect_ratio_policy=\"stretch\", mode=\"linear\", "
        "nearest_mode=\"floor\"}}; %3: f32[1,16,7,15] = relu@14(%1) return(%3)",
        coordinates));
  }
}

TEST(Move, Triangles) {
  for (int upper : {0, 1})
    checkNative(fmt::format(
        "problem(%0: f32[2,9,20], %1: i64[] {{1}}) %2: f32[2,9,20] = trilu@14(%0, %1) {{upper={}}} "
        "return(%2)",
        upper));
}

TEST(Move, Refusals) {
  EXPECT_NE(refusalOf("problem(%0: f32[3,6], %1: i64[4]) %2: f32[4,7] = pad@25(%0, %1, _, _) "
                      "{mode=\"constant\"} return(%2)"),
            "");
}

} // namespace
} // namespace dovetail::test
