// SPDX-License-Identifier: Apache-2.0
//
// Works from the places at which a value is read: operands of the quantisation ops have fixed
// meanings.
#include "plan/Quanta.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "plan/TrialTensor.h"

namespace dovetail::plan {
namespace {

bool isOneOf(const std::string &name, std::initializer_list<const char *> names) {
  return std::any_of(names.begin(), names.end(), [&](const char *n) { return name == n; });
}

bool isQuantized(const ProblemOp &op) {
  return isOneOf(op.name, {"dequantize_linear", "quantize_linear", "q_linear_conv",
                           "q_linear_mat_mul", "conv_integer", "mat_mul_integer"});
}

bool isScale(const ProblemOp &op, size_t operand) {
  if (isOneOf(op.name, {"dequantize_linear", "quantize_linear"}))
    return operand == 1;
  return isOneOf(op.name, {"q_linear_conv", "q_linear_mat_mul"}) &&
         (operand == 1 || operand == 4 || operand == 6);
}

template <typename T> unsigned largest(const void *truth, const void *found, int64_t elements) {
  const T *a = static_cast<const T *>(truth), *b = static_cast<const T *>(found);
  int most = 0;
  for (int64_t i = 0; i < elements; ++i)
    most = std::max(most, std::abs(int{a[i]} - int{b[i]}));
  return static_cast<unsigned>(most);
}

/// Whether what `op` gives is the right side of a matrix product or the weights of a convolution,
/// perhaps by way of a transpose.
bool feedsSecondOperand(const Problem &problem, const ProblemOp &op) {
  for (const ProblemOp &user : problem.ops) {
    const auto place = std::find(user.inputs.begin(), user.inputs.end(), op.outputs[0]);
    if (place == user.inputs.end())
      continue;
    if (user.name == "transpose" && feedsSecondOperand(problem, user))
      return true;
    if (isOneOf(user.name, {"conv", "conv_transpose", "mat_mul", "gemm"}))
      return place - user.inputs.begin() == 1;
  }
  return false;
}

/// Terms of the sums of a problem.
int64_t termsOf(const Problem &problem) {
  for (const ProblemOp &op : problem.ops) {
    const bool linear = op.name.starts_with("q_linear");
    if (!linear && !isOneOf(op.name, {"conv", "conv_transpose", "mat_mul", "gemm"}))
      continue;
    const std::vector<Extent> &a = problem.values[op.inputs[0]].extents,
                              &b = problem.values[op.inputs[linear ? 3 : 1]].extents;
    auto number = [](const Extent &extent) { return extent.isStatic() ? extent.value() : 64; };
    if (op.name.find("conv") == std::string::npos)
      return a.empty() ? 1 : std::max<int64_t>(number(a.back()), 1);
    int64_t terms = 1;
    for (size_t d = 1; d < b.size(); ++d)
      terms *= number(b[d]);
    return std::max<int64_t>(terms, 1);
  }
  return 1;
}

} // namespace

unsigned allowedQuanta(const Problem &problem, uint32_t value) {
  return std::any_of(problem.ops.begin(), problem.ops.end(), [&](const ProblemOp &op) {
    return isOneOf(op.name, {"quantize_linear", "q_linear_conv", "q_linear_mat_mul",
                             "dynamic_quantize_linear"}) &&
           std::find(op.outputs.begin(), op.outputs.end(), value) != op.outputs.end();
  });
}

std::optional<unsigned> quantaBetween(dvt_type type, const void *truth, const void *found,
                                      int64_t elements) {
  switch (type) {
  case DVT_U8:
    return largest<uint8_t>(truth, found, elements);
  case DVT_I8:
    return largest<int8_t>(truth, found, elements);
  case DVT_U16:
    return largest<uint16_t>(truth, found, elements);
  case DVT_I16:
    return largest<int16_t>(truth, found, elements);
  default:
    return std::nullopt;
  }
}

std::optional<std::vector<uint8_t>> quantizedNoise(const Problem &problem, uint32_t value,
                                                   const std::vector<int64_t> &extents,
                                                   uint64_t seed) {
  if (!std::any_of(problem.ops.begin(), problem.ops.end(), isQuantized))
    return std::nullopt;
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  const dvt_type type = problem.values[value].type;
  if (type == DVT_I8 || type == DVT_U8) {
    std::vector<uint8_t> floats = noise(DVT_F32, count, seed), bytes(static_cast<size_t>(count));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(floats[4 * i] ^ floats[4 * i + 1]);
    return bytes;
  }
  for (const ProblemOp &op : problem.ops)
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (op.inputs[k] != value)
        continue;
      const bool scale = type == DVT_F32 && isScale(op, k),
                 sum = type == DVT_I32 && isQuantized(op) && (k == 0 || k == 8);
      if (!scale && !sum)
        continue;
      std::vector<uint8_t> bytes = noise(DVT_F32, count, seed);
      // Of a sum of n products with bytes the spread is about 73^2 * sqrt(n): the second operand's
      // scale is such that one byte stays of it.
      const bool weights =
          op.name.starts_with("q_linear") ? k == 4 : feedsSecondOperand(problem, op);
      const double unit = weights     ? 1 / (73 * std::sqrt(double(termsOf(problem))))
                          : count > 1 ? 0.01
                                      : 0.02;
      for (int64_t i = 0; i < count; ++i) {
        float drawn;
        std::memcpy(&drawn, &bytes[static_cast<size_t>(4 * i)], 4);
        if (scale) {
          drawn = static_cast<float>(unit * (0.75 + 0.25 * drawn));
          std::memcpy(&bytes[static_cast<size_t>(4 * i)], &drawn, 4);
        } else {
          const int32_t whole = static_cast<int32_t>(100 * drawn);
          std::memcpy(&bytes[static_cast<size_t>(4 * i)], &whole, 4);
        }
      }
      return bytes;
    }
  return std::nullopt;
}

} // namespace dovetail::plan
