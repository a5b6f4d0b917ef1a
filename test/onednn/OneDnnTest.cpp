// SPDX-License-Identifier: Apache-2.0
//
// Every oneDNN candidate of many problems against plain loops, what is refused and with which
// words, and a missing library. Shapes are those of layers in real models, made smaller where only
// the form matters.
#include <set>

#include <gtest/gtest.h>

#include "CandidateCheck.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::Test;

namespace {

class OneDnn : public Test {
protected:
  static void SetUpTestSuite() {
    plugins = new PluginSet(loadPlugin("onednn", DOVETAIL_VENDOR_DIRS));
  }
  void SetUp() override {
    provider = plugins->find("onednn");
    ASSERT_TRUE(provider) << (plugins->failures().empty() ? "" : plugins->failures()[0].reason);
    if (std::string missing = provider->info().libraries[0].missing; !missing.empty())
      GTEST_SKIP() << missing;
  }
  /// Checks the candidates and wants at least one.
  std::vector<CheckedCandidate> check(const std::string &text, double tolerance = 1e-5,
                                      uint32_t threads = 2) {
    std::vector<CheckedCandidate> found = checkCandidates(*provider, text, tolerance, threads);
    EXPECT_FALSE(found.empty()) << text << "\n" << refusalOf(*provider, text);
    return found;
  }
  static PluginSet *plugins;
  const Provider *provider = nullptr;
};
PluginSet *OneDnn::plugins = nullptr;

std::string conv(const std::string &source, const std::string &weights, const std::string &result,
                 const std::string &attributes, const std::string &tail = "") {
  std::string text = "problem(%0: f32" + source + ", %1: const f32" + weights + ") %2: f32" +
                     result + " = conv@11(%0, %1) {" + attributes + "}";
  return text + (tail.empty() ? " return(%2)" : tail);
}

const char *const k3x3 =
    "dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]";

} // namespace

TEST_F(OneDnn, ConvolutionHasManyImplementationsAndLayouts) {
  auto found = check(conv("[1,64,14,14]", "[64,64,3,3]", "[1,64,14,14]", k3x3));
  std::set<std::string> layouts, algorithms;
  for (const CheckedCandidate &candidate : found) {
    layouts.insert(candidate.inputLayouts[0]);
    algorithms.insert(candidate.algorithm);
    EXPECT_EQ(candidate.inputLayouts[1], "") << "constant weights are packed by the provider";
  }
  EXPECT_TRUE(layouts.count("")) << "row-major";
  EXPECT_TRUE(layouts.count("acdb")) << "channels last";
  EXPECT_GE(layouts.size(), 2u);
  EXPECT_GE(algorithms.size(), 2u);
}

TEST_F(OneDnn, ConvolutionForms) {
  // First layer of an image network.
  check(conv("[1,3,32,32]", "[64,3,7,7]", "[1,64,16,16]",
             "dilations=[1,1], group=1, kernel_shape=[7,7], pads=[3,3,3,3], strides=[2,2]"));
  // Depthwise, and groups of several channels.
  check(conv("[2,32,9,9]", "[32,1,3,3]", "[2,32,5,5]",
             "dilations=[1,1], group=32, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]"));
  check(conv("[1,32,9,9]", "[48,8,3,3]", "[1,48,9,9]",
             "dilations=[1,1], group=4, kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]"));
  // Unequal pads, dilation, odd channel counts.
  check(conv("[1,5,12,11]", "[7,5,3,2]", "[1,7,12,10]",
             "dilations=[2,3], group=1, kernel_shape=[3,2], pads=[1,0,3,2], strides=[1,1]"));
  check(conv("[1,5,13,11]", "[7,5,3,3]", "[1,7,6,6]",
             "dilations=[1,1], group=1, kernel_shape=[3,3], pads=[0,1,1,1], strides=[2,2]"));
  // One and three dimensions.
  check(conv("[1,16,40]", "[24,16,5]", "[1,24,20]",
             "dilations=[1], group=1, kernel_shape=[5], pads=[2,2], strides=[2]"));
  check(conv(
      "[1,4,6,7,8]", "[8,4,3,3,3]", "[1,8,6,7,8]",
      "dilations=[1,1,1], group=1, kernel_shape=[3,3,3], pads=[1,1,1,1,1,1], strides=[1,1,1]"));
  // Point-wise, and a batch.
  check(conv("[4,96,7,7]", "[40,96,1,1]", "[4,40,7,7]",
             "dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]"));
  // Weights computed at run time.
  check("problem(%0: f32[1,8,6,6], %1: f32[8,8,3,3]) %2: f32[1,8,6,6] = conv@11(%0, %1) {" +
        std::string(k3x3) + "} return(%2)");
}

TEST_F(OneDnn, ConvolutionWithEpilogues) {
  const std::string head =
      "problem(%0: f32[1,24,10,10], %1: const f32[32,24,3,3], %2: const f32[32], "
      "%3: f32[1,32,10,10]) %4: f32[1,32,10,10] = conv@11(%0, %1, %2) {" +
      std::string(k3x3) + "}; ";
  check(head +
        "%5: f32[1,32,10,10] = add@14(%4, %3); %6: f32[1,32,10,10] = relu@14(%5) return(%6)");
  check(head + "%5: f32[1,32,10,10] = sub@14(%3, %4) return(%5)");
  const std::string shape = "f32[1,32,10,10]",
                    two = "problem(%0: f32[1,24,10,10], %1: const f32[32,24,3,3], "
                          "%2: const f32[32]";
  auto unary = [&](const std::string &op) {
    check(two + ") %3: " + shape + " = conv@11(%0, %1, %2) {" + k3x3 + "}; %4: " + shape + " = " +
          op + " return(%4)");
  };
  unary("relu@14(%3)");
  unary("leaky_relu@16(%3) {alpha=0.1}");
  unary("hard_swish@22(%3)");
  unary("hard_sigmoid@22(%3) {alpha=0.2, beta=0.5}");
  unary("sigmoid@13(%3)");
  unary("tanh@13(%3)");
  unary("elu@22(%3) {alpha=1.5}");
  unary("selu@22(%3) {alpha=1.67, gamma=1.05}");
  unary("gelu@20(%3) {approximate=\"none\"}");
  unary("gelu@20(%3) {approximate=\"tanh\"}");
  unary("swish@24(%3) {alpha=1.0}");
  unary("mish@22(%3)");
  unary("softplus@22(%3)");
  const std::string computed = two + ") %3: " + shape + " = conv@11(%0, %1, %2) {" + k3x3 + "}; ";
  check(computed + "%4: " + shape + " = sigmoid@13(%3); %5: " + shape +
        " = mul@14(%3, %4) return(%5)");
  check(computed + "%4: " + shape + " = hard_sigmoid@6(%3) {alpha=0.16666667, beta=0.5}; %5: " +
        shape + " = mul@14(%4, %3) return(%5)");
  // Scalars are numbers of the problem; operands per channel are constants or not.
  check(two + ", %3: f32[] {0.5}, %4: f32[] {-1}, %5: f32[] {2}) %6: " + shape +
        " = conv@11(%0, %1, %2) {" + k3x3 + "}; %7: " + shape + " = mul@14(%6, %3); %8: " + shape +
        " = clip@13(%7, %4, %5) return(%8)");
  check(two + ", %3: f32[] {3}, %4: f32[] {0}, %5: f32[] {6}) %6: " + shape +
        " = conv@11(%0, %1, %2) {" + k3x3 + "}; %7: " + shape + " = add@14(%6, %3); %8: " + shape +
        " = clip@13(%7, %4, %5); %9: " + shape + " = div@14(%8, %5) return(%9)");
  check(two + ", %3: f32[] {2}) %4: " + shape + " = conv@11(%0, %1, %2) {" + k3x3 +
        "}; %5: " + shape + " = sub@14(%3, %4) return(%5)");
  check(two + ", %3: const f32[32,1,1], %4: f32[1,32,1,1]) %5: " + shape +
        " = conv@11(%0, %1, %2) {" + k3x3 + "}; %6: " + shape + " = mul@14(%5, %3); %7: " + shape +
        " = add@14(%6, %4) return(%7)");
  check(two + ", %3: const f32[32,1,1]) %4: " + shape + " = conv@11(%0, %1, %2) {" + k3x3 +
        "}; %5: " + shape + " = p_relu@16(%4, %3) return(%5)");
  check("problem(%0: f32[1,24,10,10], %1: const f32[32,24,3,3], %2: const f32[1,32,1,1]) %3: " +
        shape + " = conv@11(%0, %1) {" + k3x3 + "}; %4: " + shape +
        " = add@14(%3, %2); %5: " + shape + " = max@13(%4, %2) return(%5)");
}

TEST_F(OneDnn, ResidualInPlaceIsASum) {
  auto found =
      check("problem(%0: f32[1,24,10,10], %1: const f32[32,24,3,3], %2: f32[1,32,10,10]) %3: "
            "f32[1,32,10,10] "
            "= conv@11(%0, %1) {" +
            std::string(k3x3) + "}; %4: f32[1,32,10,10] alias(2) = add@14(%3, %2) return(%4)");
  for (const CheckedCandidate &candidate : found)
    EXPECT_EQ(candidate.inputLayouts.back(), candidate.outputLayouts[0]);
}

TEST_F(OneDnn, TransposedConvolution) {
  auto deconv = [&](const std::string &source, const std::string &weights,
                    const std::string &result, const std::string &attributes) {
    check("problem(%0: f32" + source + ", %1: const f32" + weights + ", %2: const f32[" +
          result.substr(result.find(',') + 1, result.find(',', 3) - result.find(',') - 1) +
          "]) %3: f32" + result + " = conv_transpose@11(%0, %1, %2) {" + attributes + "}; %4: f32" +
          result + " = relu@14(%3) return(%4)");
  };
  deconv("[1,24,8,8]", "[24,16,2,2]", "[1,16,16,16]",
         "dilations=[1,1], group=1, kernel_shape=[2,2], pads=[0,0,0,0], strides=[2,2]");
  deconv("[1,8,7,5]", "[8,3,4,3]", "[1,6,14,6]",
         "dilations=[1,1], group=2, kernel_shape=[4,3], pads=[1,1,1,0], strides=[2,1]");
  deconv("[1,8,5,5]", "[8,4,3,3]", "[1,4,10,10]",
         "dilations=[1,1], group=1, kernel_shape=[3,3], output_padding=[1,1], pads=[1,1,1,1], "
         "strides=[2,2]");
}

TEST_F(OneDnn, MatrixProducts) {
  // Constant right operand with bias and activation, as in encoders.
  auto found = check(
      "problem(%0: f32[1,128,96], %1: const f32[96,64], %2: const f32[64]) %3: f32[1,128,64] = "
      "mat_mul@13(%0, %1); %4: f32[1,128,64] = add@14(%3, %2); %5: f32[1,128,64] = gelu@20(%4) "
      "{approximate=\"none\"} return(%5)");
  std::set<std::string> families;
  for (const CheckedCandidate &candidate : found)
    families.insert(candidate.algorithm.substr(0, candidate.algorithm.find(':')));
  EXPECT_TRUE(families.count("matmul-packed"));
  EXPECT_TRUE(families.count("inner_product-packed"));
  EXPECT_TRUE(families.count("matmul"));
  // Residual, and a bias written first.
  check("problem(%0: f32[2,50,48], %1: const f32[48,40], %2: const f32[40], %3: f32[2,50,40]) %4: "
        "f32[2,50,40] = "
        "mat_mul@13(%0, %1); %5: f32[2,50,40] = add@14(%2, %4); %6: f32[2,50,40] = add@14(%5, %3) "
        "return(%6)");
  // Scores: transposed operand, scaled, masked.
  check("problem(%0: f32[1,4,32,16], %1: f32[1,4,32,16], %2: f32[] {0.25}, %3: f32[1,1,1,32]) %4: "
        "f32[1,4,16,32] = "
        "transpose@13(%1) {perm=[0,1,3,2]}; %5: f32[1,4,32,32] = mat_mul@13(%0, %4); %6: "
        "f32[1,4,32,32] = "
        "mul@14(%5, %2); %7: f32[1,4,32,32] = add@14(%6, %3) return(%7)");
  // Heads brought together by strides on all three sides.
  check("problem(%0: f32[1,32,4,16], %1: f32[1,32,4,16]) %2: f32[1,4,32,16] = transpose@13(%0) "
        "{perm=[0,2,1,3]}; "
        "%3: f32[1,4,16,32] = transpose@13(%1) {perm=[0,2,3,1]}; %4: f32[1,4,32,32] = "
        "mat_mul@13(%2, %3) return(%4)");
  check("problem(%0: f32[1,4,32,32], %1: f32[1,4,32,16]) %2: f32[1,4,32,16] = mat_mul@13(%0, %1); "
        "%3: f32[1,32,4,16] "
        "= transpose@13(%2) {perm=[0,2,1,3]} return(%3)");
  // Broadcast batches, vectors, both operands constant-free.
  check(
      "problem(%0: f32[3,1,5,7], %1: f32[4,7,6]) %2: f32[3,4,5,6] = mat_mul@13(%0, %1) return(%2)");
  check("problem(%0: f32[7], %1: f32[2,7,6]) %2: f32[2,6] = mat_mul@13(%0, %1) return(%2)");
  check("problem(%0: f32[2,5,7], %1: const f32[7]) %2: f32[2,5] = mat_mul@13(%0, %1) return(%2)");
  check("problem(%0: f32[7], %1: f32[7]) %2: f32[] = mat_mul@13(%0, %1) return(%2)");
  check("problem(%0: f32[1,512], %1: const f32[512,1000]) %2: f32[1,1000] = mat_mul@13(%0, %1) "
        "return(%2)");
}

TEST_F(OneDnn, Gemm) {
  for (const char *scalars : {"alpha=1.0, beta=1.0", "alpha=0.5, beta=2.0", "alpha=2.0, beta=0.0"})
    for (const char *addend : {"[24]", "[1,24]", "[5,1]", "[5,24]", "[1]"})
      check("problem(%0: f32[16,5], %1: const f32[24,16], %2: const f32" + std::string(addend) +
            ") %3: f32[5,24] = gemm@13(%0, %1, %2) {" + scalars +
            ", transA=1, transB=1} return(%3)");
  check("problem(%0: f32[1,2048], %1: const f32[100,2048], %2: const f32[100]) %3: f32[1,100] = "
        "gemm@13(%0, %1, %2) "
        "{alpha=1.0, beta=1.0, transA=0, transB=1}; %4: f32[1,100] = relu@14(%3) return(%4)");
}

TEST_F(OneDnn, Attention) {
  check("problem(%0: f32[2,4,20,16], %1: f32[2,4,24,16], %2: f32[2,4,24,8]) %3: f32[2,4,20,8] = "
        "attention@24(%0, %1, "
        "%2) {is_causal=0, softcap=0.0} return(%3)");
  check("problem(%0: f32[1,20,64], %1: f32[1,24,64], %2: f32[1,24,64], %3: f32[1,1,1,24]) %4: "
        "f32[1,20,64] = "
        "attention@24(%0, %1, %2, %3) {kv_num_heads=4, q_num_heads=4, scale=0.3} return(%4)");
  check("problem(%0: f32[1,6,20,16], %1: f32[1,2,24,16], %2: f32[1,2,24,16], %3: f32[20,24]) %4: "
        "f32[1,6,20,16] = "
        "attention@24(%0, %1, %2, %3) return(%4)");
}

TEST_F(OneDnn, Pools) {
  auto pool = [&](const std::string &op, const std::string &result, const std::string &attributes) {
    return check("problem(%0: f32[1,20,13,13]) %1: f32" + result + " = " + op + "(%0) {" +
                 attributes + "} return(%1)");
  };
  EXPECT_GE(
      pool("max_pool@12", "[1,20,7,7]", "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]").size(),
      3u);
  pool("max_pool@12", "[1,20,7,7]",
       "ceil_mode=1, kernel_shape=[2,2], pads=[0,0,0,0], strides=[2,2]");
  pool("max_pool@12", "[1,20,9,9]",
       "dilations=[2,2], kernel_shape=[3,3], pads=[0,0,0,0], strides=[1,1]");
  pool("average_pool@11", "[1,20,7,7]",
       "count_include_pad=0, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]");
  pool("average_pool@11", "[1,20,7,7]",
       "count_include_pad=1, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]");
  pool("average_pool@11", "[1,20,7,7]",
       "ceil_mode=1, count_include_pad=0, kernel_shape=[2,2], pads=[0,0,0,0], strides=[2,2]");
  check("problem(%0: f32[2,20,7,7]) %1: f32[2,20,1,1] = global_average_pool@1(%0) return(%1)");
  check("problem(%0: f32[2,20,7,7]) %1: f32[2,20,1,1] = global_max_pool@1(%0); %2: f32[2,20,1,1] = "
        "relu@14(%1) "
        "return(%2)");
  check("problem(%0: f32[2,6,30]) %1: f32[2,6,10] = max_pool@12(%0) {kernel_shape=[3], pads=[0,0], "
        "strides=[3]} "
        "return(%1)");
}

TEST_F(OneDnn, Normalisations) {
  check("problem(%0: f32[2,10,48], %1: const f32[48], %2: const f32[48]) %3: f32[2,10,48] = "
        "layer_normalization@17(%0, %1, %2) {axis=-1, epsilon=1e-06} return(%3)");
  check("problem(%0: f32[2,10,48], %1: const f32[10,48]) %2: f32[2,10,48] = "
        "layer_normalization@17(%0, %1) "
        "{axis=1} return(%2)");
  check("problem(%0: f32[2,20,5,5], %1: const f32[20], %2: const f32[20], %3: const f32[20], %4: "
        "const f32[20]) "
        "%5: f32[2,20,5,5] = batch_normalization@15(%0, %1, %2, %3, %4) {epsilon=0.001}; %6: "
        "f32[2,20,5,5] = "
        "relu@14(%5) return(%6)");
  check("problem(%0: f32[1,20,5,5], %1: const f32[20], %2: const f32[20]) %3: f32[1,20,5,5] = "
        "instance_normalization@6(%0, %1, %2) {epsilon=1e-05} return(%3)");
  check("problem(%0: f32[2,12,7,33]) %1: f32[2,12,7,33] = softmax@13(%0) {axis=-1} return(%1)");
  check("problem(%0: f32[2,12,7,33]) %1: f32[2,12,7,33] = softmax@13(%0) {axis=1} return(%1)");
  check("problem(%0: f32[2,12,7,3]) %1: f32[2,12,7,3] = softmax@11(%0) {axis=2} return(%1)");
  check("problem(%0: f32[40,33]) %1: f32[40,33] = log_softmax@13(%0) {axis=1} return(%1)");
}

TEST_F(OneDnn, TransposesBecomeLayouts) {
  auto found = check(
      "problem(%0: f32[2,24,5,6], %1: const f32[24], %2: const f32[24]) %3: f32[2,5,6,24] = "
      "transpose@13(%0) {perm=[0,2,3,1]}; %4: f32[2,5,6,24] = layer_normalization@17(%3, %1, %2) "
      "{axis=-1, epsilon=1e-06} return(%4)");
  for (const CheckedCandidate &candidate : found) {
    EXPECT_EQ(candidate.inputLayouts[0], "acdb") << "rows are dense in channels-last images";
    EXPECT_EQ(candidate.outputLayouts[0], "");
  }
  std::set<std::string> inputs;
  for (const CheckedCandidate &candidate :
       check("problem(%0: f32[1,9,9,16], %1: const f32[32,16,3,3]) %2: f32[1,16,9,9] = "
             "transpose@13(%0) "
             "{perm=[0,3,1,2]}; %3: f32[1,32,9,9] = conv@11(%2, %1) {" +
             std::string(k3x3) + "} return(%3)"))
    inputs.insert(candidate.inputLayouts[0]);
  EXPECT_TRUE(inputs.count("")) << "a row-major image with channels last needs no copy";
}

TEST_F(OneDnn, Reductions) {
  for (const char *op :
       {"reduce_mean@18", "reduce_max@18", "reduce_min@18", "reduce_l2@18", "reduce_l1@18"})
    check("problem(%0: f32[2,20,5,5], %1: i64[2] {2,3}) %2: f32[2,20,1,1] = " + std::string(op) +
          "(%0, %1) {keepdims=1} return(%2)");
  check("problem(%0: f32[2,20,30], %1: i64[1] {-1}) %2: f32[2,20] = reduce_mean@18(%0, %1) "
        "{keepdims=0} return(%2)");
  check("problem(%0: f32[2,20,30]) %1: f32[2,30] = reduce_sum@11(%0) {axes=[1], keepdims=0}; "
        "%2: f32[2,30] = abs@13(%1) return(%2)");
  check("problem(%0: f32[2,20,30]) %1: f32[] = reduce_mean@13(%0) {keepdims=0} return(%1)");
}

TEST_F(OneDnn, Pointwise) {
  for (const char *op :
       {"relu@14", "sigmoid@13", "tanh@13", "exp@13", "log@13", "sqrt@13", "abs@13", "neg@13",
        "reciprocal@13", "round@22", "hard_swish@22", "gelu@20"})
    check("problem(%0: f32[1,20,5,6]) %1: f32[1,20,5,6] = " + std::string(op) + "(%0) return(%1)");
  check(
      "problem(%0: f32[1,20,5,6], %1: f32[] {1.5}) %2: f32[1,20,5,6] = pow@15(%0, %1) return(%2)");
  check(
      "problem(%0: f32[1,20,5,6], %1: f32[] {1.5}) %2: f32[1,20,5,6] = div@14(%1, %0) return(%2)");
  check("problem(%0: f32[10], %1: f32[10], %2: f32[10]) %3: f32[10] = add@14(%0, %1); %4: f32[10] "
        "= mul@14(%2, %3); "
        "%5: f32[10] = tanh@13(%4) return(%5)");
  // Broadcasting on either side.
  check("problem(%0: f32[1,20,5,6], %1: f32[1,20,1,1]) %2: f32[1,20,5,6] = mul@14(%0, %1) "
        "return(%2)");
  check("problem(%0: f32[1,20,1,1], %1: f32[1,20,5,6]) %2: f32[1,20,5,6] = mul@14(%0, %1) "
        "return(%2)");
  check("problem(%0: f32[2,20,5,6], %1: const f32[20,1,1]) %2: f32[2,20,5,6] = add@14(%1, %0) "
        "return(%2)");
  check(
      "problem(%0: f32[2,10,32], %1: const f32[32]) %2: f32[2,10,32] = div@14(%0, %1) return(%2)");
  check("problem(%0: f32[2,10,32], %1: f32[1,10,32]) %2: f32[2,10,32] = sub@14(%0, %1) return(%2)");
}

TEST_F(OneDnn, Movement) {
  check("problem(%0: f32[1,20,5,6], %1: f32[1,12,5,6], %2: f32[1,16,5,6]) %3: f32[1,48,5,6] = "
        "concat@13(%0, %1, %2) "
        "{axis=1} return(%3)");
  check("problem(%0: f32[2,3,4], %1: f32[2,3,5]) %2: f32[2,3,9] = concat@13(%0, %1) {axis=-1} "
        "return(%2)");
  check("problem(%0: f32[1,12,9,8]) %1: f32[1,9,8,12] = transpose@13(%0) {perm=[0,2,3,1]} "
        "return(%1)");
  for (const char *layouts :
       {"dst_layout=\"acdb\", src_layout=\"\"", "dst_layout=\"aBcd16b\", src_layout=\"\"",
        "dst_layout=\"\", src_layout=\"aBcd16b\"", "dst_layout=\"acdb\", src_layout=\"aBcd8b\"",
        "dst_layout=\"aBcd16b\", src_layout=\"acdb\""})
    EXPECT_EQ(check("problem(%0: f32[2,20,5,6]) %1: f32[2,20,5,6] = dvt_reorder@1(%0) {" +
                    std::string(layouts) + "} return(%1)")
                  .size(),
              1u);
}

TEST_F(OneDnn, Resize) {
  auto resize = [](const std::string &result, const std::string &scales,
                   const std::string &attributes) {
    return "problem(%0: f32[1,6,5,7], %1: f32[4] {" + scales + "}) %2: f32" + result +
           " = resize@13(%0, _, %1) {" + attributes + "} return(%2)";
  };
  check(resize(
      "[1,6,10,14]", "1,1,2,2",
      "coordinate_transformation_mode=\"asymmetric\", mode=\"nearest\", nearest_mode=\"floor\""));
  check(resize("[1,6,15,21]", "1,1,3,3",
               "coordinate_transformation_mode=\"half_pixel\", mode=\"nearest\", "
               "nearest_mode=\"round_prefer_floor\""));
  check(resize("[1,6,10,14]", "1,1,2,2",
               "coordinate_transformation_mode=\"half_pixel\", mode=\"linear\""));
  EXPECT_NE(refusalOf(*provider,
                      resize("[1,6,10,14]", "1,1,2,2",
                             "coordinate_transformation_mode=\"align_corners\", mode=\"linear\""))
                .find("align_corners"),
            std::string::npos);
  EXPECT_NE(refusalOf(*provider, resize("[1,6,10,14]", "1,1,2,2", "mode=\"cubic\"")), "");
}

TEST_F(OneDnn, ResizeChecksScalesThatAreNoLiterals) {
  Problem problem = *Problem::parse(
      "problem(%0: f32[1,6,5,7], %1: const f32[4]) %2: f32[1,6,10,14] = resize@13(%0, _, %1) "
      "{coordinate_transformation_mode=\"asymmetric\", mode=\"nearest\", nearest_mode=\"floor\"} "
      "return(%2)");
  Target target = Target::host(2);
  Proposal proposal = provider->propose(target, problem);
  ASSERT_FALSE(proposal.candidates.empty());
  ProblemView problemView(problem);
  dvt_target targetView = target.view();
  auto prepare = [&](const std::vector<float> &scales, std::string &message) {
    std::vector<const char *> storage;
    dvt_candidate view = proposal.candidates[0].view(storage);
    const void *constants[] = {nullptr, scales.data()};
    dvt_prepare_args args = {};
    args.struct_size = sizeof args;
    args.constants = constants;
    args.threads = 2;
    dvt_kernel *kernel = nullptr;
    dvt_error error = {};
    dvt_code code = provider->functions().prepare(provider->handle(), &targetView, problemView,
                                                  &view, &args, &kernel, &error);
    message = error.message;
    if (kernel)
      provider->functions().destroy_kernel(kernel);
    return code;
  };
  std::string message;
  EXPECT_EQ(prepare({1, 1, 2, 2}, message), DVT_OK) << message;
  EXPECT_EQ(prepare({1, 1, 2.1f, 2}, message), DVT_FAILED);
  EXPECT_NE(message.find("2.1"), std::string::npos) << message;
}

TEST_F(OneDnn, RefusesWithReasons) {
  auto expect = [&](const std::string &text, const std::string &words) {
    std::string reason = refusalOf(*provider, text);
    EXPECT_NE(reason.find(words), std::string::npos) << reason << "\n" << text;
  };
  expect("problem(%0: f32[N,64]) %1: f32[N,64] = relu@14(%0) return(%1) where N in 1..64",
         "late-bound");
  expect("problem(%0: f32[2,64]) %1: f32[2,64] = erf@13(%0) return(%1)", "erf is not among");
  expect("problem(%0: f64[2,64]) %1: f64[2,64] = relu@14(%0) return(%1)", "f32, f16 and bf16");
  expect("problem(%0: f32[2,64], %1: const f32[64,8]) %2: f32[2,64] = relu@14(%0); %3: f32[2,8] = "
         "mat_mul@13(%2, %1) "
         "return(%3)",
         "mat_mul");
  expect("problem(%0: f32[2,64]) %1: f32[2,64] = relu@14(%0); %2: f32[2,64] = tanh@13(%1) "
         "return(%1, %2)",
         "one result");
  expect("problem(%0: f32[1,4,8,8], %1: const f32[4,4,3,3]) %2: f32[1,4,8,8] = conv@11(%0, %1) "
         "{dilations=[1,1], group=1, kernel_shape=[3,3], pads=[0,0,0,0], strides=[1,1]} return(%2)",
         "do not agree");
  expect("problem(%0: f32[0,4]) %1: f32[0,4] = relu@14(%0) return(%1)", "empty");
}

TEST_F(OneDnn, OneThreadAndManyGiveTheSameList) {
  const std::string text = conv("[1,64,14,14]", "[64,64,3,3]", "[1,64,14,14]", k3x3);
  check(text, 1e-5, 1);
  Problem problem = *Problem::parse(text);
  Proposal first = provider->propose(Target::host(2), problem),
           second = provider->propose(Target::host(2), problem);
  ASSERT_EQ(first.candidates.size(), second.candidates.size());
  for (size_t i = 0; i < first.candidates.size(); ++i)
    EXPECT_EQ(first.candidates[i].label(), second.candidates[i].label());
}

TEST_F(OneDnn, Bfloats) {
  if (!Target::host(2).hasFeature("avx512_bf16"))
    GTEST_SKIP() << "this processor has no instructions for bf16";
  const double tolerance = 0x1p-7;
  auto found = check("problem(%0: bf16[1,32,14,14], %1: const bf16[48,32,3,3], %2: const bf16[48], "
                     "%3: bf16[1,48,14,14]) %4: bf16[1,48,14,14] = conv@11(%0, %1, %2) {" +
                         std::string(k3x3) +
                         "}; %5: bf16[1,48,14,14] = add@14(%4, %3); %6: bf16[1,48,14,14] = "
                         "relu@14(%5) return(%6)",
                     tolerance);
  bool native = false, blocked = false;
  for (const CheckedCandidate &candidate : found) {
    native |= candidate.algorithm.find("bf16") != std::string::npos;
    blocked |= candidate.inputLayouts[0].find("16b") != std::string::npos;
  }
  EXPECT_TRUE(native);
  EXPECT_TRUE(blocked);
  check("problem(%0: bf16[17,31], %1: const bf16[31,13], %2: const bf16[13]) %3: bf16[17,13] = "
        "mat_mul@13(%0, %1); %4: bf16[17,13] = add@14(%3, %2) return(%4)",
        tolerance);
  check("problem(%0: bf16[1,20,9,9]) %1: bf16[1,20,4,4] = max_pool@12(%0) {ceil_mode=0, "
        "dilations=[1,1], kernel_shape=[3,3], pads=[0,0,0,0], storage_order=0, strides=[2,2]} "
        "return(%1)",
        tolerance);
  check("problem(%0: bf16[4,70]) %1: bf16[4,70] = softmax@13(%0) {axis=-1} return(%1)", tolerance);
  check("problem(%0: bf16[4,70], %1: bf16[70]) %2: bf16[4,70] = add@14(%0, %1) return(%2)",
        tolerance);
  check("problem(%0: bf16[4,70]) %1: bf16[4,70] = tanh@13(%0) return(%1)", tolerance);
}

TEST_F(OneDnn, HalvesAreWidenedAroundContractions) {
  if (!Target::host(2).hasFeature("f16c"))
    GTEST_SKIP() << "this processor has no instructions for f16";
  const double tolerance = 0x1p-10;
  auto found = check("problem(%0: f16[1,32,14,14], %1: const f16[48,32,3,3], %2: const f16[48], "
                     "%3: f16[1,48,14,14]) %4: f16[1,48,14,14] = conv@11(%0, %1, %2) {" +
                         std::string(k3x3) +
                         "}; %5: f16[1,48,14,14] = add@14(%4, %3); %6: f16[1,48,14,14] = "
                         "relu@14(%5) return(%6)",
                     tolerance);
  bool wide = false, blocked = false;
  for (const CheckedCandidate &candidate : found) {
    wide |= candidate.algorithm.find(":wide") != std::string::npos;
    blocked |= candidate.inputLayouts[0].find("16b") != std::string::npos;
  }
  EXPECT_TRUE(wide);
  EXPECT_TRUE(blocked);
  // Channels that do not fill a block, and images worth more than one thread.
  check("problem(%0: f16[1,19,50,50], %1: const f16[21,19,1,1]) %2: f16[1,21,50,50] = "
        "conv@11(%0, %1) {dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], "
        "strides=[1,1]} return(%2)",
        tolerance);
  check("problem(%0: f16[17,31], %1: const f16[31,13], %2: const f16[13]) %3: f16[17,13] = "
        "mat_mul@13(%0, %1); %4: f16[17,13] = add@14(%3, %2) return(%4)",
        tolerance);
  check("problem(%0: f16[2,17,31], %1: f16[2,31,13]) %2: f16[2,17,13] = mat_mul@13(%0, %1) "
        "return(%2)",
        tolerance);
}

TEST_F(OneDnn, RefusesMixedFloats) {
  EXPECT_NE(refusalOf(*provider, "problem(%0: bf16[4,7], %1: const f16[7,5]) %2: bf16[4,5] = "
                                 "mat_mul@13(%0, %1) return(%2)")
                .find("f32, f16 or bf16"),
            std::string::npos);
}

TEST_F(OneDnn, PrepareRefusesUnknownCandidates) {
  Problem problem =
      *Problem::parse("problem(%0: f32[1,20,5,6]) %1: f32[1,20,5,6] = relu@14(%0) return(%1)");
  Candidate candidate = provider->propose(Target::host(2), problem).candidates.at(0);
  candidate.algorithm = "eltwise:no-such";
  std::vector<const char *> storage;
  dvt_candidate view = candidate.view(storage);
  ProblemView problemView(problem);
  Target target = Target::host(2);
  dvt_target targetView = target.view();
  const void *constants[] = {nullptr};
  dvt_prepare_args args = {};
  args.struct_size = sizeof args;
  args.constants = constants;
  args.threads = 2;
  dvt_kernel *kernel = nullptr;
  dvt_error error = {};
  EXPECT_EQ(provider->functions().prepare(provider->handle(), &targetView, problemView, &view,
                                          &args, &kernel, &error),
            DVT_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("eltwise:no-such"), std::string::npos);
  EXPECT_EQ(kernel, nullptr);
}

TEST(OneDnnMissing, SaysWhatIsMissingAndOffersNothing) {
  PluginSet plugins = loadPlugin("onednn", "/nonexistent");
  const Provider *provider = plugins.find("onednn");
  ASSERT_TRUE(provider);
  const dvt_library_info &library = provider->info().libraries[0];
  if (std::string(library.missing).empty())
    GTEST_SKIP() << "the system has a oneDNN of its own: " << library.path;
  EXPECT_NE(std::string(library.missing).find("pip download"), std::string::npos);
  std::string reason =
      refusalOf(*provider, "problem(%0: f32[4]) %1: f32[4] = relu@14(%0) return(%1)");
  EXPECT_NE(reason.find("was not found"), std::string::npos) << reason;
}
