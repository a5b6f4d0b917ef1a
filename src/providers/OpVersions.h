// SPDX-License-Identifier: Apache-2.0
//
// For which ONNX op sets the library providers know an op's definition. An op that changed later
// may mean something else, and the oldest ones had broadcasting rules of their own; both are
// refused. Header-only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "providers/ProblemReader.h"

namespace dovetail::providers {

struct OpVersions {
  std::string_view name;
  uint32_t oldest, newest;
};

inline constexpr OpVersions kOpVersions[] = {
    {"abs", 1, 13},
    {"add", 7, 14},
    {"attention", 23, 25},
    {"average_pool", 1, 22},
    {"batch_normalization", 9, 15},
    {"cast", 6, 28},
    {"clip", 6, 13},
    {"concat", 4, 13},
    {"conv", 1, 22},
    {"conv_integer", 10, 10},
    {"conv_transpose", 1, 22},
    {"dequantize_linear", 10, 28},
    {"div", 7, 14},
    {"dvt_reorder", 1, 1},
    {"elu", 1, 22},
    {"exp", 1, 13},
    {"flatten", 1, 25},
    {"gelu", 20, 20},
    {"gemm", 7, 13},
    {"global_average_pool", 1, 22},
    {"global_max_pool", 1, 22},
    {"gru", 7, 22},
    {"hard_sigmoid", 1, 22},
    {"hard_swish", 14, 22},
    {"identity", 1, 25},
    {"instance_normalization", 6, 22},
    {"layer_normalization", 17, 17},
    {"leaky_relu", 1, 16},
    {"log", 1, 13},
    {"log_softmax", 1, 13},
    {"lstm", 7, 22},
    {"mat_mul", 1, 13},
    {"mat_mul_integer", 10, 10},
    {"max", 8, 13},
    {"max_pool", 1, 22},
    {"min", 8, 13},
    {"mish", 18, 22},
    {"mul", 7, 14},
    {"neg", 1, 13},
    {"p_relu", 7, 16},
    {"pow", 7, 15},
    {"q_linear_conv", 10, 10},
    {"q_linear_mat_mul", 10, 21},
    {"quantize_linear", 10, 28},
    {"reciprocal", 1, 13},
    {"reduce_l1", 1, 18},
    {"reduce_l2", 1, 18},
    {"reduce_max", 1, 20},
    {"reduce_mean", 1, 18},
    {"reduce_min", 1, 20},
    {"reduce_prod", 1, 18},
    {"reduce_sum", 1, 13},
    {"reduce_sum_square", 1, 18},
    {"relu", 1, 14},
    {"reshape", 1, 25},
    {"resize", 11, 19},
    {"rnn", 7, 22},
    {"round", 11, 22},
    {"selu", 1, 22},
    {"sigmoid", 1, 13},
    {"softmax", 1, 13},
    {"softplus", 1, 22},
    {"sqrt", 1, 13},
    {"squeeze", 1, 25},
    {"sub", 7, 14},
    {"sum", 8, 13},
    {"swish", 24, 24},
    {"tanh", 1, 13},
    {"transpose", 1, 25},
    {"unsqueeze", 1, 25},
};

/// Why an op's definition is not known; nothing where all are, or where the name is no library's
/// business.
inline std::optional<std::string> unknownDefinition(const ProblemReader &problem) {
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const OpReader op = problem.op(i);
    for (const OpVersions &known : kOpVersions)
      if (known.name == op.name() && (op.version() < known.oldest || op.version() > known.newest))
        return std::string(op.name()) + " of op set " + std::to_string(op.version()) +
               " is not known; op sets " + std::to_string(known.oldest) + " to " +
               std::to_string(known.newest) + " are";
  }
  return std::nullopt;
}

} // namespace dovetail::providers
