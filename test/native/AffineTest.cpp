// SPDX-License-Identifier: Apache-2.0
//
// Movement by affine maps: transposes and changes of layout with all tails, slices, concats,
// reshapes, alone and with element-wise ops before and after.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

TEST(Affine, Transposes) {
  const char *cases[][3] = {{"5,7", "7,5", "1,0"},
                            {"16,16", "16,16", "1,0"},
                            {"33,47", "47,33", "1,0"},
                            {"1,9", "9,1", "1,0"},
                            {"64,3", "3,64", "1,0"},
                            {"3,64", "64,3", "1,0"},
                            {"2,3,5,7", "2,5,3,7", "0,2,1,3"},
                            {"2,9,4,20", "2,4,20,9", "0,2,3,1"},
                            {"2,4,20,9", "2,9,4,20", "0,3,1,2"},
                            {"3,4,5,6", "6,5,4,3", "3,2,1,0"},
                            {"2,18,17,33", "2,17,33,18", "0,2,3,1"}};
  for (auto &one : cases)
    checkNative(
        fmt::format("problem(%0: f32[{}]) %1: f32[{}] = transpose@25(%0) {{perm=[{}]}} return(%1)",
                    one[0], one[1], one[2]));
  for (const char *type : {"i64", "bool", "u8", "i32"})
    checkNative(fmt::format(
        "problem(%0: {0}[9,21]) %1: {0}[21,9] = transpose@25(%0) {{perm=[1,0]}} return(%1)", type));
  CheckOptions options;
  options.bindings = {{{"S", 1}}, {{"S", 16}}, {{"S", 37}}};
  checkNative(
      "problem(%0: f32[2,S,4,32]) %1: f32[2,4,S,32] = transpose@25(%0) {perm=[0,2,1,3]} return(%1)",
      options);
  checkNative(
      "problem(%0: f32[2,S,4,20]) %1: f32[2,4,20,S] = transpose@25(%0) {perm=[0,2,3,1]} return(%1)",
      options);
}

TEST(Affine, Reorders) {
  const char *layouts[] = {"", "acdb", "aBcd16b", "aBcd8b"};
  for (int channels : {3, 16, 24, 40})
    for (const char *from : layouts)
      for (const char *to : layouts)
        if (std::string(from) != to)
          checkNative(fmt::format("problem(%0: f32[2,{0},5,7]) %1: f32[2,{0},5,7] = "
                                  "dvt_reorder@1(%0) {{dst_layout=\"{1}\", "
                                  "src_layout=\"{2}\"}} return(%1)",
                                  channels, to, from));
  checkNative("problem(%0: f32[1,20,4]) %1: f32[1,20,4] = dvt_reorder@1(%0) "
              "{dst_layout=\"aBc16b\", src_layout=\"\"} "
              "return(%1)");
  CheckOptions options;
  options.bindings = {{{"N", 1}, {"H", 1}}, {{"N", 2}, {"H", 17}}};
  checkNative(
      "problem(%0: f32[N,24,H,H]) %1: f32[N,24,H,H] = dvt_reorder@1(%0) {dst_layout=\"aBcd16b\", "
      "src_layout=\"acdb\"} return(%1)",
      options);
  checkNative("problem(%0: f32[N,24,H,H]) %1: f32[N,24,H,H] = dvt_reorder@1(%0) {dst_layout=\"\", "
              "src_layout=\"aBcd16b\"} return(%1)",
              options);
}

TEST(Affine, Slices) {
  const char *cases[][5] = {{"10,20", "4,20", "2", "6", "1"},
                            {"10,20", "2,20", "-2", "1000", "1"},
                            {"10,20", "5,20", "0", "10", "2"},
                            {"10,20", "10,20", "-1", "-1000", "-1"}};
  for (auto &one : cases)
    checkNative(fmt::format("problem(%0: f32[{}], %2: i64[1] {{{}}}, %3: i64[1] {{{}}}, %4: i64[1] "
                            "{{0}}, %5: i64[1] {{{}}}) "
                            "%1: f32[{}] = slice@13(%0, %2, %3, %4, %5) return(%1)",
                            one[0], one[2], one[3], one[4], one[1]));
  checkNative("problem(%0: f32[3,40], %2: i64[1] {3}, %3: i64[1] {39}, %4: i64[1] {1}, %5: i64[1] "
              "{2}) %1: f32[3,18] = "
              "slice@13(%0, %2, %3, %4, %5) return(%1)");
  checkNative("problem(%0: f32[2,6,9], %3: i64[2] {2,4}) %1: f32[2,2,9], %2: f32[2,4,9] = "
              "split@18(%0, %3) {axis=1} "
              "return(%1, %2)");
  checkNative("problem(%0: f32[2,6,9], %3: i64[2] {2,4}) %1: f32[2,2,9], %2: f32[2,4,9] = "
              "split@18(%0, %3) {axis=1}; %4: "
              "f32[2,4,9] = sigmoid@13(%2) return(%1, %4)");
}

/// Less than a vector, whole vectors, and vectors with a rest.
CheckOptions runTimeExtents() {
  CheckOptions options;
  options.bindings = {{{"N", 1}, {"S", 1}}, {{"N", 3}, {"S", 16}}, {{"N", 2}, {"S", 37}}};
  return options;
}

TEST(Affine, SlicesOfRunTimeExtents) {
  const char *cases[][6] = {
      // Along an axis of a fixed extent beside others.
      {"N,9,S", "1", "8", "1", "3", "N,3,S"},
      // Every other one, from both ends.
      {"N,S", "0", "1000000", "1", "2", "N,floordiv(S+1,2)"},
      {"N,S,5", "0", "1000000", "1", "2", "N,floordiv(S+1,2),5"},
      {"N,S", "-1", "-1000000", "1", "-2", "N,floordiv(S+1,2)"},
      {"N,S,7", "-1", "-1000000", "1", "-1", "N,S,7"},
      // Without the first, without the last two, and these alone.
      {"N,S+1", "1", "1000000", "1", "1", "N,S"},
      {"S+1,20", "1", "1000000", "0", "1", "S,20"},
      {"N,S+2", "0", "-2", "1", "1", "N,S"},
      {"N,S+2,3", "-2", "1000000", "1", "1", "N,2,3"},
  };
  for (auto &one : cases)
    checkNative(fmt::format("problem(%0: f32[{}], %2: i64[1] {{{}}}, %3: i64[1] {{{}}}, %4: i64[1] "
                            "{{{}}}, %5: i64[1] {{{}}}) "
                            "%1: f32[{}] = slice@13(%0, %2, %3, %4, %5) return(%1)",
                            one[0], one[1], one[2], one[3], one[4], one[5]),
                runTimeExtents());
  checkNative("problem(%0: f32[N,S+1], %2: i64[1] {1}, %3: i64[1] {1000000}, %4: i64[1] {1}, %5: "
              "i64[1] {1}, %6: f32[S]) %1: f32[N,S] = slice@13(%0, %2, %3, %4, %5); %7: f32[N,S] = "
              "mul@14(%1, %6) return(%7)",
              runTimeExtents());
}

TEST(Affine, SplitsOfRunTimeExtents) {
  for (const char *text :
       {"problem(%0: f32[N,6,S], %3: i64[2] {2,4}) %1: f32[N,2,S], %2: f32[N,4,S] = "
        "split@18(%0, %3) {axis=1} return(%1, %2)",
        "problem(%0: f32[N,S,6], %3: i64[2] {1,5}) %1: f32[N,S,1], %2: f32[N,S,5] = "
        "split@18(%0, %3) {axis=-1}; %4: f32[N,S,5] = sigmoid@13(%2) return(%1, %4)",
        "problem(%0: f32[N,2*S]) %1: f32[N,S], %2: f32[N,S] = "
        "split@18(%0, _) {axis=1, num_outputs=2} return(%1, %2)",
        // The last part may be smaller.
        "problem(%0: f32[N,S+1,5]) %1: f32[N,floordiv(S+2,2),5], %2: "
        "f32[N,S+1-floordiv(S+2,2),5] = split@18(%0, _) {axis=1, num_outputs=2} return(%1, %2)",
        "problem(%0: f32[N,48,S,5], %3: i64[2] {16,32}) %1: f32[N,16,S,5], %2: f32[N,32,S,5] = "
        "split@18(%0, %3) {axis=1} return(%1, %2)"})
    checkNative(text, runTimeExtents());
}

TEST(Affine, Concats) {
  checkNative("problem(%0: f32[2,3,5], %1: f32[2,4,5], %2: f32[2,1,5]) %3: f32[2,8,5] = "
              "concat@13(%0, %1, %2) {axis=1} "
              "return(%3)");
  checkNative("problem(%0: f32[2,3,5], %1: f32[2,3,1]) %3: f32[2,3,6] = concat@13(%0, %1) "
              "{axis=-1} return(%3)");
  auto result = checkNative("problem(%0: f32[2,16,5,5], %1: f32[2,32,5,5]) %2: f32[2,48,5,5] = "
                            "concat@13(%0, %1) {axis=1}; "
                            "%3: f32[2,48,5,5] = relu@14(%2) return(%3)");
  EXPECT_TRUE(
      std::any_of(result.candidates.begin(), result.candidates.end(), [](const std::string &label) {
        return label.find("aBcd16b") != std::string::npos;
      }));
  CheckOptions options;
  options.bindings = {{{"A", 1}, {"B", 3}}, {{"A", 16}, {"B", 20}}};
  checkNative("problem(%0: f32[2,A,7], %1: f32[2,B,7]) %2: f32[2,A+B,7] = concat@13(%0, %1) "
              "{axis=1} return(%2)",
              options);
  checkNative(
      "problem(%0: f32[1,1,8], %1: f32[2,9,8], %2: f32[10,8], %5: i64[3] {2,1,8}) %3: f32[2,1,8] = "
      "expand@13(%0, %5); "
      "%4: f32[2,10,8] = concat@13(%3, %1) {axis=1}; %6: f32[2,10,8] = add@14(%4, %2) return(%6)");
}

TEST(Affine, Reshapes) {
  checkNative("problem(%0: f32[2,10,32], %2: i64[4] {2,10,4,8}) %1: f32[2,10,4,8] = reshape@25(%0, "
              "%2) {allowzero=0}; %3: "
              "f32[2,4,10,8] = transpose@25(%1) {perm=[0,2,1,3]} return(%3)");
  checkNative("problem(%0: f32[2,4,10,8], %2: i64[3] {2,10,32}) %1: f32[2,10,4,8] = "
              "transpose@25(%0) {perm=[0,2,1,3]}; %3: "
              "f32[2,10,32] = reshape@25(%1, %2) {allowzero=0} return(%3)");
  checkNative(
      "problem(%0: f32[2,32,3,5], %2: i64[3] {2,32,15}) %1: f32[2,32,15] = reshape@25(%0, %2) "
      "{allowzero=0}; %3: "
      "f32[2,15,32] = transpose@25(%1) {perm=[0,2,1]}; %4: f32[2,15,32] = tanh@13(%3) return(%4)");
  checkNative("problem(%0: f32[3,5], %2: i64[2] {2,3}) %1: f32[6,15] = tile@13(%0, %2) return(%1)");
  checkNative(
      "problem(%0: f32[3,1], %2: i64[2] {3,20}) %1: f32[3,20] = expand@13(%0, %2) return(%1)");
  for (const char *mode : {"DCR", "CRD"}) {
    checkNative(fmt::format(
        "problem(%0: f32[2,12,3,5]) %1: f32[2,3,6,10] = depth_to_space@28(%0) {{blocksize=2, "
        "mode=\"{}\"}} return(%1)",
        mode));
  }
  checkNative("problem(%0: f32[2,3,6,10]) %1: f32[2,12,3,5] = space_to_depth@28(%0) {blocksize=2, "
              "mode=\"DCR\"} return(%1)");
}

TEST(Affine, ElementWiseOpsAround) {
  checkNative("problem(%0: f32[2,18,4,5], %1: const f32[18]) %2: f32[2,4,5,18] = transpose@25(%0) "
              "{perm=[0,2,3,1]}; %3: "
              "f32[2,4,5,18] = mul@14(%2, %1); %4: f32[2,4,5,18] = exp@13(%3) return(%4)");
  checkNative("problem(%0: f32[20,30], %1: f32[30,20]) %2: f32[30,20] = transpose@25(%0) "
              "{perm=[1,0]}; %3: f32[30,20] = "
              "add@14(%2, %1) return(%3)");
}

TEST(Affine, ExtentsThatNoOperandShowsAlone) {
  CheckOptions options;
  options.bindings = {{{"N", 1}, {"H", 11}, {"W", 30}}, {{"N", 3}, {"H", 24}, {"W", 13}}};
  // Of H nothing but a function of it is there; of W only its difference to a number.
  for (const char *text :
       {"problem(%0: f32[N,4,floordiv(H+1,2)-5,W-2]) %1: f32[N,floordiv(H+1,2)-5,W-2,4] = "
        "transpose@25(%0) {perm=[0,2,3,1]} return(%1) where H in 11..100, N in 1..8, W in 3..100",
        "problem(%0: f32[N,20,floordiv(H+1,2)-5,W-2]) %1: f32[N,20,floordiv(H+1,2)-5,W-2] = "
        "dvt_reorder@1(%0) {dst_layout=\"\", src_layout=\"aBcd16b\"} return(%1) "
        "where H in 11..100, N in 1..8, W in 3..100",
        "problem(%0: f32[N,3,max(1,floordiv(H,4))*floordiv(W+1,2),5]) "
        "%1: f32[N,max(1,floordiv(H,4))*floordiv(W+1,2),5,3] = transpose@25(%0) {perm=[0,2,3,1]} "
        "return(%1) where H in 1..100, N in 1..8, W in 1..100"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(checkNative(text, options).candidates.empty());
  }
}

} // namespace
} // namespace dovetail::test
