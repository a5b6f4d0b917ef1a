// SPDX-License-Identifier: Apache-2.0
//
// Reads the plain structs of a problem conveniently: attributes, extents, who makes and who uses a
// value, literal scalars. It neither copies nor owns; the problem must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dovetail/provider.h"

namespace dovetail::codegen {

class ProblemReader {
public:
  explicit ProblemReader(const dvt_problem &problem);

  const dvt_problem &problem() const { return source; }
  const dvt_value &value(uint32_t index) const { return source.values[index]; }
  const dvt_op &op(uint32_t index) const { return source.ops[index]; }
  uint32_t opCount() const { return source.op_count; }
  uint32_t valueCount() const { return source.value_count; }

  /// Position among the problem's inputs or outputs, or -1.
  int inputOf(uint32_t value) const { return inputPositions[value]; }
  int outputOf(uint32_t value) const { return outputPositions[value]; }
  /// Index of the op that makes a value, or -1.
  int producerOf(uint32_t value) const { return producers[value]; }
  /// How many operands of ops are this value.
  unsigned useCount(uint32_t value) const { return uses[value]; }

  /// Operand or result `position` of an op; nothing where it is absent.
  static std::optional<uint32_t> input(const dvt_op &op, uint32_t position);
  static std::optional<uint32_t> output(const dvt_op &op, uint32_t position);

  static const dvt_attribute *attribute(const dvt_op &op, std::string_view name);
  static int64_t integer(const dvt_op &op, std::string_view name, int64_t otherwise);
  static double real(const dvt_op &op, std::string_view name, double otherwise);
  static std::string_view text(const dvt_op &op, std::string_view name, std::string_view otherwise);
  static std::optional<std::vector<int64_t>> integers(const dvt_op &op, std::string_view name);

  /// The number when all elements of a literal are known to equal it, of types with registers.
  std::optional<double> uniformLiteral(uint32_t value) const;
  /// All elements of a literal of integers (i64, i32) or nothing.
  std::optional<std::vector<int64_t>> integerLiteral(uint32_t value) const;
  bool isConstant(uint32_t value) const { return source.values[value].flags & DVT_VALUE_CONSTANT; }
  bool isLiteral(uint32_t value) const {
    return source.values[value].flags & (DVT_VALUE_LITERAL | DVT_VALUE_UNIFORM);
  }

  static bool isStatic(const dvt_value &value);
  bool isStatic() const; ///< all values
  /// Elements of a value of static extents.
  static int64_t elements(const dvt_value &value);
  /// Elements of a value, a symbolic extent counting as its upper bound, or as `typical` when that
  /// is smaller.
  static double typicalElements(const dvt_value &value, int64_t typical = 256);

  /// Tensor and dimension of an input or output that has this symbolic extent, so that emitted code
  /// can read it: tensors are numbered as in KernelArgs::data.
  struct Place {
    uint32_t tensor, dimension;
  };
  std::optional<Place> placeOf(const dvt_extent &extent) const;

private:
  const dvt_problem &source;
  std::vector<int> inputPositions, outputPositions, producers;
  std::vector<unsigned> uses;
};

/// Same number at every run.
bool sameExtent(const dvt_extent &a, const dvt_extent &b);
inline bool isStaticExtent(const dvt_extent &extent) { return extent.value >= 0; }
inline bool isOne(const dvt_extent &extent) { return extent.value == 1; }
/// "3", "N", ... for messages.
std::string extentText(const dvt_extent &extent);
/// "f32[1,64,H]" for messages.
std::string valueText(const dvt_value &value);
const char *elementTypeName(dvt_type type);
/// Bytes of an element of whole bytes; 0 for other types.
unsigned elementBytes(dvt_type type);
/// Elements of a constant of floats, as f32.
class FloatReader {
public:
  FloatReader(dvt_type type, const void *elements) : type(type), elements(elements) {}
  float operator[](int64_t index) const;

private:
  dvt_type type;
  const void *elements;
};
/// f32, and what is computed as f32: f16 and bf16.
inline bool isFloatType(dvt_type type) {
  return type == DVT_F32 || type == DVT_F16 || type == DVT_BF16;
}

} // namespace dovetail::codegen
