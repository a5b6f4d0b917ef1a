// SPDX-License-Identifier: Apache-2.0
//
// Reads a dvt_problem: attributes by name, static extents, literals as numbers, who produces and
// who uses a value. Shared by providers, header-only, and made of nothing but the door and the
// standard library. Array elements are stepped by their own struct_size, so that a newer host with
// longer structs is read correctly.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dovetail/provider.h"

namespace dovetail::providers {

/// Fills `error`, which may be null, and returns `code`.
inline dvt_code fail(dvt_error *error, dvt_code code, const std::string &message) {
  if (error)
    std::snprintf(error->message, sizeof error->message, "%s", message.c_str());
  return code;
}

/// Element `index` of an array of structs that state their own size.
template <typename T> const T &elementAt(const T *array, size_t index) {
  return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(array) +
                                      index * array->struct_size);
}

inline float halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = (bits >> 10) & 31,
           fraction = bits & 1023;
  uint32_t result;
  if (exponent == 31) {
    result = sign | 0x7f800000u | fraction << 13;
  } else if (exponent) {
    result = sign | (exponent + 112) << 23 | fraction << 13;
  } else {
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  float value;
  std::memcpy(&value, &result, sizeof value);
  return value;
}

/// Bytes of one element; 0 where elements are not whole bytes or have no size.
inline uint64_t elementBytes(dvt_type type) {
  switch (type) {
  case DVT_U8:
  case DVT_I8:
  case DVT_BOOL:
    return 1;
  case DVT_U16:
  case DVT_I16:
  case DVT_F16:
  case DVT_BF16:
    return 2;
  case DVT_F32:
  case DVT_I32:
  case DVT_U32:
    return 4;
  case DVT_F64:
  case DVT_I64:
  case DVT_U64:
    return 8;
  default:
    return 0;
  }
}

/// Element `index` of a dense array of a type of whole bytes, as a double.
inline double elementAsDouble(const void *data, dvt_type type, size_t index) {
  auto load = [&](auto sample) {
    std::memcpy(&sample, static_cast<const char *>(data) + index * sizeof sample, sizeof sample);
    return sample;
  };
  switch (type) {
  case DVT_F32:
    return load(float{});
  case DVT_F64:
    return load(double{});
  case DVT_U8:
  case DVT_BOOL:
    return load(uint8_t{});
  case DVT_I8:
    return load(int8_t{});
  case DVT_U16:
    return load(uint16_t{});
  case DVT_I16:
    return load(int16_t{});
  case DVT_I32:
    return load(int32_t{});
  case DVT_U32:
    return load(uint32_t{});
  case DVT_I64:
    return static_cast<double>(load(int64_t{}));
  case DVT_U64:
    return static_cast<double>(load(uint64_t{}));
  case DVT_F16:
    return halfToFloat(load(uint16_t{}));
  case DVT_BF16: {
    uint32_t bits = static_cast<uint32_t>(load(uint16_t{})) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  default:
    return 0;
  }
}

using Dims = std::vector<int64_t>;

inline int64_t product(const Dims &dims) {
  int64_t result = 1;
  for (int64_t dim : dims)
    result *= dim;
  return result;
}

/// Product of the dims from `first` up to, not including, `last`.
inline int64_t product(const Dims &dims, size_t first, size_t last) {
  int64_t result = 1;
  for (size_t i = first; i < last && i < dims.size(); ++i)
    result *= dims[i];
  return result;
}

/// Row-major strides in elements.
inline Dims denseStrides(const Dims &dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * (dims[i] > 0 ? dims[i] : 1);
  return strides;
}

/// One op and its attributes.
class OpReader {
public:
  explicit OpReader(const dvt_op &op) : op(&op) {}
  std::string_view name() const { return op->name; }
  uint32_t version() const { return op->version; }
  uint32_t inputCount() const { return op->input_count; }
  uint32_t outputCount() const { return op->output_count; }
  /// Value index; DVT_NO_VALUE where the operand is absent.
  uint32_t input(uint32_t index) const {
    return index < op->input_count ? op->inputs[index] : DVT_NO_VALUE;
  }
  uint32_t output(uint32_t index) const {
    return index < op->output_count ? op->outputs[index] : DVT_NO_VALUE;
  }
  bool hasInput(uint32_t index) const { return input(index) != DVT_NO_VALUE; }

  const dvt_attribute *find(std::string_view attribute) const {
    for (uint32_t i = 0; i < op->attribute_count; ++i) {
      const dvt_attribute &candidate = elementAt(op->attributes, i);
      if (attribute == candidate.name)
        return &candidate;
    }
    return nullptr;
  }
  int64_t integer(std::string_view attribute, int64_t otherwise) const {
    const dvt_attribute *found = find(attribute);
    return found && found->kind == DVT_ATTRIBUTE_INT ? found->i : otherwise;
  }
  double number(std::string_view attribute, double otherwise) const {
    const dvt_attribute *found = find(attribute);
    if (!found)
      return otherwise;
    return found->kind == DVT_ATTRIBUTE_FLOAT ? found->f
           : found->kind == DVT_ATTRIBUTE_INT ? static_cast<double>(found->i)
                                              : otherwise;
  }
  std::string string(std::string_view attribute, std::string_view otherwise) const {
    const dvt_attribute *found = find(attribute);
    return std::string(found && found->kind == DVT_ATTRIBUTE_STRING && found->s ? found->s
                                                                                : otherwise);
  }
  /// The list, or `otherwise` where it is absent or empty.
  Dims integers(std::string_view attribute, Dims otherwise) const {
    const dvt_attribute *found = find(attribute);
    if (!found || found->kind != DVT_ATTRIBUTE_INTS || found->count == 0)
      return otherwise;
    return Dims(found->ints, found->ints + found->count);
  }

private:
  const dvt_op *op;
};

/// A whole problem. It must outlive the reader.
class ProblemReader {
public:
  explicit ProblemReader(const dvt_problem &problem) : problem(&problem) {
    producers.assign(problem.value_count, -1);
    useCounts.assign(problem.value_count, 0);
    inputPositions.assign(problem.value_count, -1);
    outputPositions.assign(problem.value_count, -1);
    for (uint32_t i = 0; i < problem.op_count; ++i) {
      OpReader reader = op(i);
      for (uint32_t k = 0; k < reader.outputCount(); ++k)
        if (reader.output(k) < problem.value_count)
          producers[reader.output(k)] = static_cast<int32_t>(i);
      for (uint32_t k = 0; k < reader.inputCount(); ++k)
        if (reader.input(k) < problem.value_count)
          ++useCounts[reader.input(k)];
    }
    for (uint32_t i = 0; i < problem.input_count; ++i)
      if (problem.inputs[i] < problem.value_count)
        inputPositions[problem.inputs[i]] = static_cast<int32_t>(i);
    for (uint32_t i = 0; i < problem.output_count; ++i)
      if (problem.outputs[i] < problem.value_count)
        outputPositions[problem.outputs[i]] = static_cast<int32_t>(i);
  }

  /// Indices in range, structs as long as those this was compiled with. What a caller from
  /// elsewhere must pass first.
  static std::optional<std::string> check(const dvt_problem *problem) {
    if (!problem || problem->struct_size < sizeof(dvt_problem))
      return "problem: struct_size is too small";
    auto inRange = [&](uint32_t value) { return value < problem->value_count; };
    for (uint32_t i = 0; i < problem->value_count; ++i)
      if (elementAt(problem->values, i).struct_size < sizeof(dvt_value))
        return "problem value: struct_size is too small";
    for (uint32_t i = 0; i < problem->op_count; ++i) {
      const dvt_op &op = elementAt(problem->ops, i);
      if (op.struct_size < sizeof(dvt_op) || !op.name)
        return "problem op: struct_size is too small or no name";
      for (uint32_t k = 0; k < op.input_count; ++k)
        if (op.inputs[k] != DVT_NO_VALUE && !inRange(op.inputs[k]))
          return std::string(op.name) + ": operand index out of range";
      for (uint32_t k = 0; k < op.output_count; ++k)
        if (op.outputs[k] != DVT_NO_VALUE && !inRange(op.outputs[k]))
          return std::string(op.name) + ": result index out of range";
      for (uint32_t k = 0; k < op.attribute_count; ++k)
        if (elementAt(op.attributes, k).struct_size < sizeof(dvt_attribute))
          return std::string(op.name) + ": attribute struct_size is too small";
    }
    for (uint32_t i = 0; i < problem->input_count; ++i)
      if (!inRange(problem->inputs[i]))
        return "problem input index out of range";
    for (uint32_t i = 0; i < problem->output_count; ++i)
      if (!inRange(problem->outputs[i]))
        return "problem output index out of range";
    return std::nullopt;
  }

  const dvt_problem &raw() const { return *problem; }
  uint32_t opCount() const { return problem->op_count; }
  OpReader op(uint32_t index) const { return OpReader(elementAt(problem->ops, index)); }
  const dvt_value &value(uint32_t index) const { return elementAt(problem->values, index); }
  dvt_type type(uint32_t index) const { return value(index).type; }
  uint32_t rank(uint32_t index) const { return value(index).rank; }

  /// The op that produces a value; -1 for inputs and literals.
  int32_t producer(uint32_t index) const { return producers[index]; }
  /// How many operands of ops it is.
  uint32_t uses(uint32_t index) const { return useCounts[index]; }
  /// Position among the problem's inputs or outputs; -1 when it is none.
  int32_t inputPosition(uint32_t index) const { return inputPositions[index]; }
  int32_t outputPosition(uint32_t index) const { return outputPositions[index]; }

  bool isLiteral(uint32_t index) const {
    return (value(index).flags & (DVT_VALUE_LITERAL | DVT_VALUE_UNIFORM)) != 0 &&
           inputPositions[index] < 0 && producers[index] < 0;
  }
  /// The same bytes at every run: literals and constant inputs.
  bool isConstant(uint32_t index) const {
    return producers[index] < 0 &&
           (value(index).flags & (DVT_VALUE_CONSTANT | DVT_VALUE_LITERAL | DVT_VALUE_UNIFORM)) != 0;
  }

  /// The first symbolic extent anywhere, as text.
  std::optional<std::string> symbolicExtent() const {
    for (uint32_t i = 0; i < problem->value_count; ++i)
      for (uint32_t k = 0; k < rank(i); ++k)
        if (value(i).extents[k].value < 0)
          return std::string(value(i).extents[k].symbol ? value(i).extents[k].symbol : "?");
    return std::nullopt;
  }
  /// Extents of a value; symbolic ones are -1.
  Dims extents(uint32_t index) const {
    const dvt_value &from = value(index);
    Dims result(from.rank);
    for (uint32_t i = 0; i < from.rank; ++i)
      result[i] = from.extents[i].value;
    return result;
  }
  /// Strides in elements: the stated ones, row-major otherwise.
  Dims strides(uint32_t index) const {
    const dvt_value &from = value(index);
    return from.strides ? Dims(from.strides, from.strides + from.rank)
                        : denseStrides(extents(index));
  }

  /// The number a constant holds in every element, where that is part of the problem.
  std::optional<double> uniform(uint32_t index) const {
    const dvt_value &from = value(index);
    uint64_t bytes = elementBytes(from.type);
    if (!from.literal || bytes == 0)
      return std::nullopt;
    bool single = (from.flags & DVT_VALUE_UNIFORM) ||
                  ((from.flags & DVT_VALUE_LITERAL) && from.literal_bytes == bytes);
    if (!single || from.literal_bytes < bytes)
      return std::nullopt;
    return elementAsDouble(from.literal, from.type, 0);
  }
  /// All elements of a literal as numbers, row-major.
  std::optional<std::vector<double>> literal(uint32_t index) const {
    const dvt_value &from = value(index);
    uint64_t bytes = elementBytes(from.type);
    int64_t count = product(extents(index));
    if (bytes == 0 || count < 0)
      return std::nullopt;
    std::vector<double> numbers(static_cast<size_t>(count));
    if (from.flags & DVT_VALUE_UNIFORM) {
      std::optional<double> one = uniform(index);
      if (!one)
        return std::nullopt;
      numbers.assign(numbers.size(), *one);
      return numbers;
    }
    if (!(from.flags & DVT_VALUE_LITERAL) || from.literal_bytes < bytes * numbers.size())
      return std::nullopt;
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = elementAsDouble(from.literal, from.type, i);
    return numbers;
  }

private:
  const dvt_problem *problem;
  std::vector<int32_t> producers, inputPositions, outputPositions;
  std::vector<uint32_t> useCounts;
};

} // namespace dovetail::providers
