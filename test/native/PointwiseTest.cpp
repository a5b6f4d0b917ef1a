// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops: each op on ordinary and special numbers, broadcasting of every kind, tails,
// run-time extents, chains with several results and the layouts of images.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

struct UnaryOp {
  const char *text;
  double low = -3, high = 3;
};

TEST(Pointwise, UnaryOnF32) {
  const UnaryOp ops[] = {{"abs@13"},
                         {"neg@13"},
                         {"sign@13"},
                         {"sqrt@13", 0, 9},
                         {"reciprocal@13", 0.1, 3},
                         {"exp@13", -20, 20},
                         {"log@13", 1e-3, 50},
                         {"sin@22", -200, 200},
                         {"cos@22", -200, 200},
                         {"tan@22", -1.4, 1.4},
                         {"asin@22", -1, 1},
                         {"acos@22", -1, 1},
                         {"atan@22", -20, 20},
                         {"sinh@22"},
                         {"cosh@22"},
                         {"asinh@22", -100, 100},
                         {"acosh@22", 1, 100},
                         {"atanh@22", -0.99, 0.99},
                         {"tanh@13", -10, 10},
                         {"erf@13", -4, 4},
                         {"sigmoid@13", -20, 20},
                         {"floor@13"},
                         {"ceil@13"},
                         {"round@22"},
                         {"relu@14"},
                         {"softplus@22", -20, 20},
                         {"softsign@22"},
                         {"mish@22"},
                         {"hard_swish@22", -5, 5},
                         {"not", 0, 0}};
  for (const UnaryOp &op : ops) {
    if (op.low == op.high)
      continue;
    CheckOptions options;
    options.low = op.low;
    options.high = op.high;
    checkNative(fmt::format("problem(%0: f32[1037]) %1: f32[1037] = {}(%0) return(%1)", op.text),
                options);
  }
}

TEST(Pointwise, UnaryOnSpecialNumbers) {
  for (const char *op :
       {"abs@13",     "neg@13",   "sqrt@13",  "reciprocal@13", "exp@13",  "log@13",
        "sin@22",     "cos@22",   "asin@22",  "acos@22",       "atan@22", "sinh@22",
        "cosh@22",    "asinh@22", "acosh@22", "atanh@22",      "tanh@13", "erf@13",
        "sigmoid@13", "floor@13", "ceil@13",  "round@22",      "relu@14"}) {
    CheckOptions options;
    options.specials = true;
    checkNative(fmt::format("problem(%0: f32[700]) %1: f32[700] = {}(%0) return(%1)", op), options);
  }
}

TEST(Pointwise, UnaryWithAttributes) {
  for (const char *op :
       {"leaky_relu@16(%0) {alpha=0.1}", "elu@22(%0) {alpha=1.5}",
        "selu@22(%0) {alpha=1.6732632, gamma=1.050701}", "celu@28(%0) {alpha=0.7}",
        "thresholded_relu@22(%0) {alpha=0.6}", "hard_sigmoid@22(%0) {alpha=0.2, beta=0.5}",
        "gelu@20(%0) {approximate=\"none\"}", "gelu@20(%0) {approximate=\"tanh\"}",
        "swish@24(%0) {alpha=1.2}", "shrink@9(%0) {bias=0.3, lambd=0.5}"})
    checkNative(fmt::format("problem(%0: f32[333]) %1: f32[333] = {} return(%1)", op));
  CheckOptions specials;
  specials.specials = true;
  checkNative("problem(%0: f32[333]) %1: bool[333] = is_nan@20(%0) return(%1)", specials);
  checkNative("problem(%0: f32[333]) %1: bool[333] = is_inf@20(%0) {detect_negative=0, "
              "detect_positive=1} return(%1)",
              specials);
}

TEST(Pointwise, Binary) {
  for (const char *op : {"add@14", "sub@14", "mul@14", "div@14", "min@13", "max@13"}) {
    checkNative(fmt::format(
        "problem(%0: f32[5,67], %1: f32[5,67]) %2: f32[5,67] = {}(%0, %1) return(%2)", op));
    CheckOptions options;
    options.specials = true;
    checkNative(
        fmt::format("problem(%0: f32[500], %1: f32[500]) %2: f32[500] = {}(%0, %1) return(%2)", op),
        options);
  }
  for (const char *op :
       {"less@13", "less_or_equal@16", "greater@13", "greater_or_equal@16", "equal@19"}) {
    CheckOptions options;
    options.values = {0, 1, -1, 2, NAN, INFINITY};
    checkNative(
        fmt::format("problem(%0: f32[99], %1: f32[99]) %2: bool[99] = {}(%0, %1) return(%2)", op),
        options);
    checkNative(
        fmt::format("problem(%0: i64[99], %1: i64[99]) %2: bool[99] = {}(%0, %1) return(%2)", op));
  }
  for (const char *op : {"and@7", "or@7", "xor@7"})
    checkNative(fmt::format(
        "problem(%0: bool[77], %1: bool[77]) %2: bool[77] = {}(%0, %1) return(%2)", op));
  CheckOptions positive;
  positive.low = 0.01;
  checkNative("problem(%0: f32[513], %1: f32[513]) %2: f32[513] = pow@15(%0, %1) return(%2)",
              positive);
  CheckOptions whole;
  whole.values = {-3, -2, -1, 0, 1, 2, 3, 0.5, INFINITY, -INFINITY, NAN, -0.0};
  checkNative("problem(%0: f32[913], %1: f32[913]) %2: f32[913] = pow@15(%0, %1) return(%2)",
              whole);
  checkNative(
      "problem(%0: f32[513], %1: f32[513]) %2: f32[513] = mod@28(%0, %1) {fmod=1} return(%2)");
}

TEST(Pointwise, Integers) {
  for (const char *type : {"i64", "i32"})
    for (const char *op : {"add@14", "sub@14", "mul@14", "min@13", "max@13"})
      checkNative(fmt::format(
          "problem(%0: {0}[35], %1: {0}[35]) %2: {0}[35] = {1}(%0, %1) return(%2)", type, op));
  CheckOptions positive;
  positive.low = 1;
  positive.high = 9;
  checkNative("problem(%0: i64[35], %1: i64[35]) %2: i64[35] = div@14(%0, %1) return(%2)",
              positive);
  checkNative("problem(%0: i64[35], %1: i64[35]) %2: i64[35] = mod@28(%0, %1) {fmod=0} return(%2)",
              positive);
  CheckOptions bytes;
  bytes.low = 0;
  bytes.high = 255;
  checkNative("problem(%0: u8[300], %1: u8[300]) %2: u8[300] = add@14(%0, %1) return(%2)", bytes);
}

TEST(Pointwise, Casts) {
  CheckOptions positive;
  positive.low = 0;
  positive.high = 100;
  for (const char *from : {"f32", "i64", "i32", "u8", "bool"})
    for (auto [to, number] : {std::pair("f32", 1), {"i64", 7}, {"i32", 6}, {"u8", 2}, {"bool", 9}})
      if (std::string(from) != to)
        checkNative(fmt::format("problem(%0: {}[53]) %1: {}[53] = cast@28(%0) {{round_mode=\"up\", "
                                "saturate=1, to={}}} "
                                "return(%1)",
                                from, to, number),
                    positive);
}

TEST(Pointwise, Broadcasting) {
  const char *shapes[][3] = {{"3,17", "17", "3,17"},
                             {"3,17", "3,1", "3,17"},
                             {"3,1", "1,17", "3,17"},
                             {"2,3,5,7", "3,1,1", "2,3,5,7"},
                             {"2,3,5,7", "1,3,1,7", "2,3,5,7"},
                             {"2,1,5,1", "1,3,1,7", "2,3,5,7"},
                             {"4,33", "", "4,33"},
                             {"1", "5", "5"},
                             {"2,3,16", "2,1,1", "2,3,16"},
                             {"1,1", "1,1", "1,1"},
                             {"", "", ""},
                             {"4,64,3", "64,3", "4,64,3"},
                             {"7,9,15", "7,1,15", "7,9,15"}};
  for (auto &shape : shapes)
    checkNative(
        fmt::format("problem(%0: f32[{}], %1: f32[{}]) %2: f32[{}] = sub@14(%0, %1) return(%2)",
                    shape[0], shape[1], shape[2]));
}

TEST(Pointwise, Tails) {
  for (int extent : {1, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100})
    for (int rows : {1, 3})
      checkNative(fmt::format(
          "problem(%0: f32[{0},{1}], %1: f32[{1}]) %2: f32[{0},{1}] = mul@14(%0, %1) return(%2)",
          rows, extent));
}

TEST(Pointwise, RunTimeExtents) {
  CheckOptions options;
  options.bindings = {
      {{"N", 1}, {"H", 1}}, {{"N", 3}, {"H", 16}}, {{"N", 2}, {"H", 31}}, {{"N", 5}, {"H", 1000}}};
  checkNative("problem(%0: f32[N,H], %1: f32[H], %2: f32[N,1]) %3: f32[N,H] = add@14(%0, %1); %4: "
              "f32[N,H] = "
              "mul@14(%3, %2) return(%4)",
              options);
  checkNative(
      "problem(%0: f32[N,8,H], %1: const f32[8,1]) %2: f32[N,8,H] = p_relu@16(%0, %1) return(%2)",
      options);
}

/// Extents of which only the run tells whether they are equal or one of them is 1.
TEST(Pointwise, ExtentsThatMayBroadcast) {
  CheckOptions options;
  options.bindings = {{{"N", 5}, {"M", 5}, {"H", 33}, {"W", 33}},
                      {{"N", 1}, {"M", 5}, {"H", 33}, {"W", 1}},
                      {{"N", 5}, {"M", 1}, {"H", 1}, {"W", 40}},
                      {{"N", 1}, {"M", 1}, {"H", 100}, {"W", 100}},
                      {{"N", 3}, {"M", 1}, {"H", 1}, {"W", 1}}};
  for (const char *problem :
       {"problem(%0: f32[2,N,H], %1: f32[2,M,H]) %2: f32[2,max(M,N),H] = add@14(%0, %1) return(%2)",
        "problem(%0: f32[N,H], %1: f32[M,W]) %2: f32[max(M,N),max(H,W)] = mul@14(%0, %1) "
        "return(%2)",
        "problem(%0: f32[2,H], %1: f32[2,W]) %2: f32[2,max(H,W)] = sub@14(%0, %1); %3: "
        "f32[2,max(H,W)] = relu@14(%2) return(%3)",
        "problem(%0: f32[N,3,H], %1: f32[M,1,1], %2: f32[3,W]) %3: f32[N,3,max(H,W)] = "
        "add@14(%0, %2); %4: f32[max(M,N),3,max(H,W)] = mul@14(%3, %1); %5: "
        "f32[max(M,N),3,max(H,W)] = relu@14(%4) return(%3, %5)"}) {
    auto result = checkNative(problem, options);
    EXPECT_FALSE(result.candidates.empty()) << problem;
  }
  options.bindings = {{{"N", 40}, {"M", 6}}, {{"N", 1}, {"M", 6}}, {{"N", 40}, {"M", 1}}};
  for (const char *problem :
       {"problem(%0: f32[3,N], %1: f32[3,40]) %2: f32[3,40] = add@14(%0, %1) return(%2)",
        "problem(%0: f32[M,8], %1: const f32[6,8]) %2: f32[6,8] = mul@14(%0, %1) return(%2)",
        "problem(%0: f16[M,N], %1: f16[6,40]) %2: f16[6,40] = div@14(%0, %1) return(%2)"})
    EXPECT_FALSE(checkNative(problem, options).candidates.empty()) << problem;
}

TEST(Pointwise, ChainsWithSeveralResults) {
  checkNative("problem(%0: f32[6,40], %1: f32[40]) %2: f32[6,40] = add@14(%0, %1); %3: f32[6,40] = "
              "sigmoid@13(%2); %4: "
              "f32[6,40] = mul@14(%2, %3); %5: bool[6,40] = less@13(%4, %2) return(%2, %4, %5)");
  checkNative("problem(%0: f32[40], %1: f32[6,40]) %2: f32[40] = exp@13(%0); %3: f32[6,40] = "
              "mul@14(%2, %1) return(%2, "
              "%3)");
  checkNative("problem(%0: bool[6,1], %1: f32[6,40], %2: f32[] {-inf}) %3: f32[6,40] = "
              "where@16(%0, %1, %2) return(%3)");
  checkNative("problem(%0: f32[100], %1: f32[] {-0.5}, %2: f32[] {1}) %3: f32[100] = clip@13(%0, "
              "%1, %2) return(%3)");
  checkNative("problem(%0: f32[2,3,4], %1: f32[3,1] {0.5,1,-2}) %2: f32[2,3,4] = mul@14(%0, %1) "
              "return(%2)");
  checkNative("problem(%0: f32[100], %1: f32[] {2}, %2: f32[] {3}) %3: f32[100] = pow@15(%0, %1); "
              "%4: f32[100] = "
              "pow@15(%0, %2); %5: f32[100] = sum@13(%0, %3, %4) return(%5)");
}

TEST(Pointwise, ImageLayouts) {
  for (int channels : {16, 32, 3, 19}) {
    auto result = checkNative(fmt::format("problem(%0: f32[2,{0},5,7], %1: f32[2,{0},5,7]) %2: "
                                          "f32[2,{0},5,7] = add@14(%0, %1); %3: f32[2,{0},5,7] "
                                          "= sigmoid@13(%2) return(%3)",
                                          channels));
    auto has = [&](const char *layout) {
      return std::any_of(
          result.candidates.begin(), result.candidates.end(),
          [&](const std::string &label) { return label.find(layout) != std::string::npos; });
    };
    EXPECT_TRUE(has("acdb") && has("aBcd8b"));
    checkNative(fmt::format(
        "problem(%0: f32[2,{0},5,7], %1: f32[2,{0},1,1], %2: const f32[{0},1,1], %3: const "
        "f32[5,7], %4: f32[1,{0},1,1] {{0.25..}}) %5: f32[2,{0},1,1] = sigmoid@13(%1); %6: "
        "f32[2,{0},5,7] = "
        "mul@14(%0, %5); %7: f32[2,{0},5,7] = add@14(%6, %2); %8: f32[2,{0},5,7] = mul@14(%7, %3); "
        "%9: f32[2,{0},5,7] = sub@14(%8, %4) return(%9)",
        channels));
  }
  checkNative(
      "problem(%0: f32[2,20,4], %1: const f32[20,1]) %2: f32[2,20,4] = add@14(%0, %1) return(%2)");
  checkNative("problem(%0: f32[1,20,2,3,4], %1: const f32[20,2,3,4]) %2: f32[1,20,2,3,4] = "
              "add@14(%0, %1) return(%2)");
  CheckOptions options;
  options.bindings = {{{"N", 1}, {"H", 3}}, {{"N", 2}, {"H", 8}}};
  checkNative("problem(%0: f32[N,24,H,H], %1: const f32[24,1,1]) %2: f32[N,24,H,H] = mul@14(%0, "
              "%1); %3: f32[N,24,H,H] = "
              "relu@14(%2) return(%3)",
              options);
}

TEST(Pointwise, BatchNormalization) {
  CheckOptions options;
  options.low = 0.1;
  checkNative("problem(%0: f32[2,6,3,5], %1: const f32[6,1,1], %2: const f32[6,1,1]) %3: "
              "f32[2,6,3,5] = mul@14(%0, %1); "
              "%4: f32[2,6,3,5] = add@14(%3, %2) return(%4)",
              options);
}

TEST(Pointwise, Refusals) {
  EXPECT_NE(refusalOf("problem(%0: f64[8]) %1: f64[8] = exp@13(%0) return(%1)").find("f64"),
            std::string::npos);
}

TEST(Pointwise, ZeroElements) {
  checkNative("problem(%0: f32[0,5]) %1: f32[0,5] = exp@13(%0) return(%1)");
}

} // namespace
} // namespace dovetail::test
