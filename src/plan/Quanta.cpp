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

int64_t countOf(const Problem &problem, uint32_t value) {
  int64_t count = 1;
  for (const Extent &extent : problem.values[value].extents)
    count *= extent.isStatic() ? extent.value() : 64;
  return count;
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
      // Of a sum of n products with bytes the spread is about 73^2 * sqrt(n): a weight's scale is
      // such that one byte stays of it.
      const double terms =
          count > 1 && k > 0 ? double(countOf(problem, op.inputs[k - 1])) / double(count) : 1;
      const double unit = count > 1 ? 1 / (73 * std::sqrt(std::max(terms, 1.0))) : 0.02;
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
