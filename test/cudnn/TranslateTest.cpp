// SPDX-License-Identifier: Apache-2.0
//
// Problems become graphs that mean the same: each graph is interpreted over memory in the layouts
// it states and compared with the problem's truth. Needs neither cuDNN nor a device.
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "GraphTruth.h"
#include "PlainTruth.h"
#include "providers/cudnn/Translate.h"
#include "support/Layout.h"

using namespace dovetail;
using namespace dovetail::test;

namespace {

std::vector<int64_t> extentsOf(const ProblemValue &value) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents)
    extents.push_back(extent.value());
  return extents;
}

int64_t elementsOf(const std::vector<int64_t> &extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

/// Elements at the places that `value` has in memory: its strides, or `layout`.
size_t offsetOf(const ProblemValue &value, const Layout &layout, int64_t element) {
  const std::vector<int64_t> extents = extentsOf(value);
  std::vector<int64_t> index(extents.size());
  for (size_t i = extents.size(); i-- > 0; element /= extents[i])
    index[i] = element % extents[i];
  if (value.strides.empty())
    return static_cast<size_t>(layout.offset(extents, index));
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i)
    offset += index[i] * value.strides[i];
  return static_cast<size_t>(offset);
}

/// As in the truth, which has no strides.
Problem withoutStrides(Problem problem) {
  for (ProblemValue &value : problem.values)
    value.strides.clear();
  return problem;
}

/// Checks every graph of the problem and gives the layouts of their results.
std::vector<std::string> check(const std::string &text) {
  SCOPED_TRACE(text);
  Expected<Problem> problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message;
    return {};
  }
  ProblemView view(*problem);
  const providers::ProblemReader reader(*view.get());
  std::string reason;
  const std::vector<cudnn::Graph> graphs = cudnn::translate(reader, reason);
  EXPECT_FALSE(graphs.empty()) << reason;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0.25f, 2);
  std::vector<PlainTensor> inputs;
  for (uint32_t value : problem->inputs) {
    inputs.push_back({extentsOf(problem->values[value]), {}});
    for (int64_t i = 0; i < elementsOf(inputs.back().dims); ++i)
      inputs.back().data.push_back(double(uniform(random)) * (random() % 3 ? 1 : -1));
    if (text.find("batch_norm") != std::string::npos || text.find("positive") != std::string::npos)
      for (double &x : inputs.back().data)
        x = std::abs(x);
  }
  const std::vector<PlainTensor> truth = plainTruth(withoutStrides(*problem), inputs);
  std::vector<std::string> layouts;
  for (const cudnn::Graph &graph : graphs) {
    Memory memory;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint32_t number = problem->inputs[i];
      const ProblemValue &value = problem->values[number];
      const Layout layout = *Layout::parse(graph.inputLayouts[i]);
      for (size_t k = 0; k < inputs[i].data.size(); ++k) {
        const size_t offset = offsetOf(value, layout, int64_t(k));
        if (memory[number].size() <= offset)
          memory[number].resize(offset + 1, std::nan(""));
        memory[number][offset] = inputs[i].data[k];
      }
    }
    for (size_t i = 0; i < problem->outputs.size(); ++i)
      memory[problem->outputs[i]].assign(truth[i].data.size(), std::nan(""));
    runGraph(graph, memory);
    for (size_t i = 0; i < problem->outputs.size(); ++i) {
      const ProblemValue &value = problem->values[problem->outputs[i]];
      const Layout layout = *Layout::parse(graph.outputLayouts[i]);
      for (size_t k = 0; k < truth[i].data.size(); ++k)
        EXPECT_NEAR(memory[problem->outputs[i]][offsetOf(value, layout, int64_t(k))],
                    truth[i].data[k], 1e-6 * (1 + std::abs(truth[i].data[k])))
            << "element " << k << " in " << graph.outputLayouts[i];
    }
    layouts.push_back(graph.outputLayouts[0]);
  }
  return layouts;
}

std::string refusal(const std::string &text) {
  Expected<Problem> problem = Problem::parse(text);
  if (!problem)
    return "not parsed: " + problem.error().message;
  ProblemView view(*problem);
  std::string reason;
  EXPECT_TRUE(cudnn::translate(providers::ProblemReader(*view.get()), reason).empty());
  return reason;
}

using Layouts = std::vector<std::string>;
const Layouts kBoth{"acdb", ""}, kRowMajor{""};

std::string attributes(const std::string &kernel, const std::string &pads,
                       const std::string &strides, const std::string &dilations, int group) {
  return "{dilations=[" + dilations + "], group=" + std::to_string(group) + ", kernel_shape=[" +
         kernel + "], pads=[" + pads + "], strides=[" + strides + "]}";
}

} // namespace

TEST(CudnnTranslate, Convolutions) {
  const std::string plain = attributes("3,3", "1,1,1,1", "1,1", "1,1", 1);
  EXPECT_EQ(check("problem(%0: f32[2,5,7,6], %1: const f32[4,5,3,3]) %2: f32[2,4,7,6] = "
                  "conv@11(%0, %1) " +
                  plain + " return(%2)"),
            kBoth);
  EXPECT_EQ(check("problem(%0: f32[1,5,7,6], %1: const f32[4,5,3,3], %2: const f32[4]) %3: "
                  "f32[1,4,7,6] = conv@11(%0, %1, %2) " +
                  plain + "; %4: f32[1,4,7,6] = relu@14(%3) return(%4)"),
            kBoth);
  // Unequal pads, strides, dilations and groups.
  check("problem(%0: f32[1,6,11,9], %1: const f32[4,3,3,2]) %2: f32[1,4,5,9] = conv@11(%0, %1) " +
        attributes("3,2", "1,2,2,1", "2,1", "2,3", 2) + " return(%2)");
  // Rows that no window reaches.
  check("problem(%0: f32[1,2,8,8], %1: const f32[3,2,1,1]) %2: f32[1,3,3,3] = conv@11(%0, %1) " +
        attributes("1,1", "0,0,0,0", "3,3", "1,1", 1) + " return(%2)");
}

TEST(CudnnTranslate, OneAndThreeSpatialDimensions) {
  EXPECT_EQ(check("problem(%0: f32[2,4,9], %1: const f32[6,4,3], %2: const f32[6]) %3: f32[2,6,4] "
                  "= conv@11(%0, %1, %2) {dilations=[1], group=1, kernel_shape=[3], pads=[1,0], "
                  "strides=[2]}; %4: f32[2,6,4] = tanh@13(%3) return(%4)"),
            (Layouts{"acb", ""}));
  EXPECT_EQ(check("problem(%0: f32[1,2,3,4,5], %1: const f32[3,2,2,3,1]) %2: f32[1,3,2,4,5] = "
                  "conv@11(%0, %1) {dilations=[1,1,1], group=1, kernel_shape=[2,3,1], "
                  "pads=[0,1,0,0,1,0], strides=[1,1,1]} return(%2)"),
            (Layouts{"acdeb", ""}));
}

TEST(CudnnTranslate, WhatFollowsAConvolution) {
  const std::string start = "problem(%0: f32[1,3,5,5], %1: const f32[4,3,1,1], %2: const f32[4], "
                            "%3: f32[1,4,5,5]) %4: f32[1,4,5,5] = conv@11(%0, %1, %2) " +
                            attributes("1,1", "0,0,0,0", "1,1", "1,1", 1) + "; ";
  EXPECT_EQ(check(start + "%5: f32[1,4,5,5] = add@14(%4, %3); %6: f32[1,4,5,5] = relu@14(%5) "
                          "return(%6)"),
            kBoth);
  check(start + "%5: f32[1,4,5,5] = sigmoid@13(%4); %6: f32[1,4,5,5] = mul@14(%4, %5); %7: "
                "f32[1,4,5,5] = sub@14(%3, %6) return(%7)");
  check(start + "%5: f32[1,4,5,5] = hard_swish@14(%4); %6: f32[1,4,5,5] = add@14(%5, %3) "
                "return(%6)");
  // An activation in front.
  check("problem(%0: f16[1,3,5,5], %1: const f16[4,3,1,1]) %2: f16[1,3,5,5] = relu@14(%0); %3: "
        "f16[1,4,5,5] = conv@11(%2, %1) " +
        attributes("1,1", "0,0,0,0", "1,1", "1,1", 1) + " return(%3)");
  // An intermediate value that is a result, too.
  check(start + "%5: f32[1,4,5,5] = add@14(%4, %3); %6: f32[1,4,5,5] = relu@14(%5) return(%6, %5)");
}

TEST(CudnnTranslate, Products) {
  EXPECT_EQ(check("problem(%0: f32[5,7], %1: const f32[7,6]) %2: f32[5,6] = mat_mul@13(%0, %1) "
                  "return(%2)"),
            kRowMajor);
  check("problem(%0: f32[2,3,5,7], %1: f32[7,6], %2: f32[6], %3: f32[2,3,5,6]) %4: f32[2,3,5,6] = "
        "mat_mul@13(%0, %1); %5: f32[2,3,5,6] = add@14(%4, %2); %6: f32[2,3,5,6] = gelu@20(%5) "
        "{approximate=\"tanh\"}; %7: f32[2,3,5,6] = add@14(%6, %3) return(%7)");
  check("problem(%0: f32[2,3,5,7], %1: f32[2,3,7,6], %2: f32[] {0.125}) %3: f32[2,3,5,6] = "
        "mat_mul@13(%0, %1); %4: f32[2,3,5,6] = mul@14(%3, %2) return(%4)");
  // An addend that repeats along some of the leading dimensions only.
  check("problem(%0: f32[2,5,7], %1: f32[7,6], %2: f32[5,6]) %3: f32[2,5,6] = mat_mul@13(%0, %1); "
        "%4: f32[2,5,6] = add@14(%3, %2) return(%4)");
  check("problem(%0: f32[5,7], %1: f32[3,7,6]) %2: f32[3,5,6] = mat_mul@13(%0, %1) return(%2)");
}

TEST(CudnnTranslate, TransposesAroundProducts) {
  check("problem(%0: f32[1,6,2,4], %1: f32[1,5,2,4]) %2: f32[1,2,6,4] = transpose@13(%0) "
        "{perm=[0,2,1,3]}; %3: f32[1,2,4,5] = transpose@13(%1) {perm=[0,2,3,1]}; %4: f32[1,2,6,5] "
        "= mat_mul@13(%2, %3) return(%4)");
  check("problem(%0: f32[1,2,6,5], %1: f32[1,2,5,4]) %2: f32[1,2,6,4] = mat_mul@13(%0, %1); %3: "
        "f32[1,6,2,4] = transpose@13(%2) {perm=[0,2,1,3]}; %4: f32[1,6,8] = reshape@14(%3, _) "
        "return(%4)");
  check("problem(%0: f32[6,5] strides[9,1], %1: f32[5,4]) %2: f32[6,4] = mat_mul@13(%0, %1) "
        "return(%2)");
}

TEST(CudnnTranslate, Gemm) {
  for (const char *flags :
       {"transA=0, transB=0", "transA=1, transB=0", "transA=0, transB=1", "transA=1, transB=1"})
    for (const char *scalars :
         {"alpha=1.0, beta=1.0", "alpha=0.5, beta=2.0", "alpha=2.0, beta=0.0"})
      for (const char *addend : {"[6]", "[5,1]", "[5,6]"})
        check(std::string("problem(%0: f32") + (flags[7] == '1' ? "[7,5]" : "[5,7]") +
              ", %1: const f32" + (flags[17] == '1' ? "[6,7]" : "[7,6]") + ", %2: const f32" +
              addend + ") %3: f32[5,6] = gemm@13(%0, %1, %2) {" + scalars + ", " + flags +
              "} return(%3)");
  check("problem(%0: f32[5,7], %1: const f32[7,6]) %2: f32[5,6] = gemm@13(%0, %1) {alpha=3.0, "
        "beta=1.0, transA=0, transB=0} return(%2)");
}

TEST(CudnnTranslate, Pools) {
  for (const std::string name : {"max_pool", "average_pool"})
    EXPECT_EQ(check("problem(%0: f32[1,3,8,7]) %1: f32[1,3,4,4] = " + name +
                    "@12(%0) {ceil_mode=0, count_include_pad=0, dilations=[1,1], "
                    "kernel_shape=[3,2], pads=[1,1,1,1], storage_order=0, strides=[2,2]} "
                    "return(%1)"),
              kBoth);
  check("problem(%0: f32[1,3,8,7]) %1: f32[1,3,4,4] = average_pool@12(%0) {ceil_mode=0, "
        "count_include_pad=1, kernel_shape=[3,2], pads=[1,1,1,1], strides=[2,2]} return(%1)");
  check("problem(%0: f32[2,3,8,7]) %1: f32[2,3,1,1] = global_average_pool@1(%0) return(%1)");
  check("problem(%0: f32[2,3,8]) %1: f32[2,3,1] = global_max_pool@1(%0) return(%1)");
}

TEST(CudnnTranslate, NormsAndReductions) {
  EXPECT_EQ(check("problem(%0: f32[2,3,8], %1: const f32[8], %2: const f32[8]) %3: f32[2,3,8] = "
                  "layer_normalization@17(%0, %1, %2) {axis=-1, epsilon=1e-05f, stash_type=1} "
                  "return(%3)"),
            kRowMajor);
  check("problem(%0: f32[2,3,8], %1: const f32[3,8], %2: const f32[3,8]) %3: f32[2,3,8] = "
        "layer_normalization@17(%0, %1, %2) {axis=1, epsilon=0.01f, stash_type=1} return(%3)");
  EXPECT_EQ(check("problem(%0: f32[2,3,4,5], %1: const f32[3], %2: const f32[3], %3: const f32[3], "
                  "%4: const f32[3]) %5: f32[2,3,4,5] = batch_normalization@15(%0, %1, %2, %3, %4) "
                  "{epsilon=1e-05f, momentum=0.9f, training_mode=0} return(%5)"),
            kBoth);
  // As many elements as a row has, along the columns and along the rows.
  check("problem(%0: f32[4,4], %1: f32[4], %2: const f32[4], %3: const f32[4]) %4: f32[4,4] = "
        "mul@14(%0, %1); %5: f32[4,4] = layer_normalization@17(%4, %2, %3) {axis=-1, "
        "epsilon=1e-05f, stash_type=1} return(%5)");
  EXPECT_THAT(
      refusal("problem(%0: f32[4,4], %1: f32[4,1], %2: const f32[4], %3: const f32[4]) %4: "
              "f32[4,4] = mul@14(%0, %1); %5: f32[4,4] = layer_normalization@17(%4, %2, %3) "
              "{axis=-1, epsilon=1e-05f, stash_type=1} return(%5)"),
      testing::Not(testing::IsEmpty()));
  check("problem(%0: f32[4,5,6]) %1: f32[4,5,6] = softmax@13(%0) {axis=1} return(%1)");
  check("problem(%0: f32[4,5,6], %1: i64[1] {-1}) %2: f32[4,5,1] = reduce_mean@18(%0, %1) "
        "{keepdims=1, noop_with_empty_axes=0} return(%2)");
  check("problem(%0: f32[4,5,6], %1: i64[2] {0,2}) %2: f32[5] = reduce_max@18(%0, %1) {keepdims=0, "
        "noop_with_empty_axes=0} return(%2)");
}

TEST(CudnnTranslate, Attention) {
  const std::string tail = "is_causal=0, left_window_size=-1, qk_matmul_output_mode=0, "
                           "right_window_size=-1, softcap=0.0";
  check("problem(%0: f16[2,3,5,4], %1: f16[2,3,6,4], %2: f16[2,3,6,7]) %3: f16[2,3,5,7] = "
        "attention@23(%0, %1, %2) {" +
        tail + "} return(%3)");
  // Heads side by side in a row, and heads shared by queries.
  check("problem(%0: f16[2,5,16], %1: f16[2,6,8], %2: f16[2,6,8]) %3: f16[2,5,16] = "
        "attention@23(%0, %1, %2) {kv_num_heads=2, q_num_heads=4, scale=0.3f, " +
        tail + "} return(%3)");
}

TEST(CudnnTranslate, ElementWiseOps) {
  for (const std::string op :
       {"abs@13(%0)", "elu@6(%0) {alpha=0.7f}", "exp@13(%0)", "gelu@20(%0) {approximate=\"none\"}",
        "hard_sigmoid@6(%0) {alpha=0.3f, beta=0.4f}", "hard_swish@14(%0)",
        "leaky_relu@16(%0) {alpha=0.1f}", "mish@18(%0)", "neg@13(%0)", "reciprocal@13(%0)",
        "relu@14(%0)", "sigmoid@13(%0)", "softplus@1(%0)", "swish@24(%0) {alpha=1.5f}",
        "tanh@13(%0)"})
    check("problem(%0: f32[3,5]) %1: f32[3,5] = " + op + " return(%1)");
  for (const std::string op : {"add@14", "sub@14", "mul@14", "div@14", "max@13", "min@13"})
    check("problem(%0: f32[2,3,5], %1: f32[3,1]) %2: f32[2,3,5] = " + op + "(%0, %1) return(%2)");
  EXPECT_EQ(check("problem(%0: f32[2,3,4,5], %1: f32[3,1,1], %2: f32[2,3,4,5]) %3: f32[2,3,4,5] = "
                  "mul@14(%0, %1); %4: f32[2,3,4,5] = add@14(%3, %2) return(%4)"),
            kBoth);
  check("problem(%0: f32[2,3,4,5], %1: f32[4,1]) %2: f32[2,3,4,5] = add@14(%0, %1) return(%2)");
  for (const std::string bounds : {"{0}, {6}", "{-0.5}, {0.75}", "{0}, {1e30}"})
    check("problem(%0: f32[3,5], %1: f32[] " + bounds.substr(0, bounds.find(',')) + ", %2: f32[] " +
          bounds.substr(bounds.find(',') + 2) + ") %3: f32[3,5] = clip@13(%0, %1, %2) return(%3)");
}

TEST(CudnnTranslate, RmsNormMeansWhatItSays) {
  const Problem problem = *Problem::parse(
      "problem(%0: f32[1,2], %1: const f32[2]) %2: f32[1,2] = rms_normalization@23(%0, %1) "
      "{axis=-1, epsilon=0.5f, stash_type=1} return(%2)");
  ProblemView view(problem);
  std::string reason;
  const auto graphs = cudnn::translate(providers::ProblemReader(*view.get()), reason);
  ASSERT_EQ(graphs.size(), 1u) << reason;
  Memory memory{{0, {3, 1}}, {1, {2, 4}}, {2, {0, 0}}};
  runGraph(graphs[0], memory);
  EXPECT_NEAR(memory[2][0], 3 * 2 / std::sqrt(5.5), 1e-9);
  EXPECT_NEAR(memory[2][1], 1 * 4 / std::sqrt(5.5), 1e-9);
}

/// Casts, and ops that jump between neighbours, see what memory would have held.
TEST(CudnnTranslate, RoundsWhereTheModelDoes) {
  auto typesOf = [](const std::string &text) {
    const Problem problem = *Problem::parse(text);
    ProblemView view(problem);
    std::string reason;
    const auto graphs = cudnn::translate(providers::ProblemReader(*view.get()), reason);
    EXPECT_FALSE(graphs.empty()) << reason;
    std::vector<cudnn::DataType> types;
    for (const cudnn::Tensor &tensor : graphs.at(0).tensors)
      if (tensor.isVirtual())
        types.push_back(tensor.type);
    return types;
  };
  using testing::ElementsAre;
  EXPECT_THAT(typesOf("problem(%0: f32[4]) %1: f16[4] = cast@13(%0) {to=10}; %2: f32[4] = "
                      "cast@13(%1) {to=1} return(%2)"),
              ElementsAre(cudnn::DataType::Half));
  EXPECT_THAT(typesOf("problem(%0: f16[4], %1: f16[4]) %2: f16[4] = mul@14(%0, %1); %3: f16[4] = "
                      "floor@13(%2) return(%3)"),
              ElementsAre(cudnn::DataType::Half));
  EXPECT_THAT(typesOf("problem(%0: f16[4], %1: f16[4]) %2: f16[4] = mul@14(%0, %1); %3: f16[4] = "
                      "relu@14(%2) return(%3)"),
              ElementsAre(cudnn::DataType::Float));
}

TEST(CudnnTranslate, SaysWhatItDoesNotTake) {
  auto says = [](const std::string &text, const char *part) {
    const std::string reason = refusal(text);
    EXPECT_NE(reason.find(part), std::string::npos) << reason << "\n" << text;
  };
  says(
      "problem(%0: f32[N,7], %1: f32[7,6]) %2: f32[N,6] = mat_mul@13(%0, %1) return(%2) where N in "
      "1..4",
      "extents known only at run time (N)");
  says("problem(%0: f64[5,7], %1: f64[7,6]) %2: f64[5,6] = mat_mul@13(%0, %1) return(%2)",
       "f32, f16 and bf16");
  says("problem(%0: f32[4]) %1: f32[4] alias(0) = relu@14(%0) return(%1)", "share");
  says("problem(%0: f32[7], %1: f32[7,6]) %2: f32[6] = mat_mul@13(%0, %1) return(%2)", "vectors");
  says("problem(%0: f32[2,3]) %1: f32[3,2] = transpose@13(%0) {perm=[1,0]} return(%1)",
       "transpose");
  says("problem(%0: f32[0,8]) %1: f32[0,8] = relu@14(%0) return(%1)", "empty");
  says("problem(%0: f32[2,20], %1: i64[1] {5}) %2: f32[2,5], %3: i64[2,5] = top_k@11(%0, %1) "
       "{axis=-1, largest=1, sorted=1} return(%2, %3)",
       "top_k");
  says("problem(%0: f32[1,3,13,13]) %1: f32[1,3,7,7] = max_pool@12(%0) {ceil_mode=1, "
       "dilations=[1,1], kernel_shape=[2,2], pads=[0,0,0,0], storage_order=0, strides=[2,2]} "
       "return(%1)",
       "outside the padding");
  says("problem(%0: f32[1,1,8,8], %1: f32[1,1,1,1] {2}) %2: f32[1,1,8,8] = conv@22(%0, %1) "
       "{dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]} return(%2)",
       "one number for all");
  says("problem(%0: f32[2,3,4,5], %1: f32[5,6]) %2: f32[2,3,4,6] = mat_mul@13(%0, %1); %3: "
       "f32[2,3,4,6] = softmax@13(%2) {axis=0} return(%3)",
       "softmax together with products");
  says("problem(%0: f32[1,2,8,16], %1: f32[1,2,12,16], %2: f32[1,2,12,16]) %3: f32[1,2,8,16] = "
       "attention@23(%0, %1, %2) {is_causal=1} return(%3)",
       "causal");
}
