// SPDX-License-Identifier: Apache-2.0
//
// Op names both ways.
#include <gtest/gtest.h>

#include "support/OpName.h"

using namespace dovetail;

TEST(OpName, BothWays) {
  const char *names[][2] = {{"Conv", "conv"},
                            {"MatMul", "mat_mul"},
                            {"HardSwish", "hard_swish"},
                            {"PRelu", "p_relu"},
                            {"IsNaN", "is_nan"},
                            {"IsInf", "is_inf"},
                            {"GatherND", "gather_nd"},
                            {"LRN", "lrn"},
                            {"LSTM", "lstm"},
                            {"TopK", "top_k"},
                            {"ReduceL2", "reduce_l2"},
                            {"ReduceLogSumExp", "reduce_log_sum_exp"},
                            {"QLinearConv", "q_linear_conv"},
                            {"RMSNormalization", "rms_normalization"},
                            {"Col2Im", "col2_im"},
                            {"STFT", "stft"},
                            {"TfIdfVectorizer", "tf_idf_vectorizer"}};
  for (auto &[onnx, snake] : names) {
    EXPECT_EQ(snakeCase(onnx), snake);
    EXPECT_EQ(onnxName(snake), onnx);
  }
}
