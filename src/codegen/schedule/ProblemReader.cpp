// SPDX-License-Identifier: Apache-2.0
//
// Convenience over the plain structs of provider.h; see the header.
#include "codegen/schedule/ProblemReader.h"

#include <algorithm>
#include <cstring>

#include "support/Literal.h"

namespace dovetail::codegen {

ProblemReader::ProblemReader(const dvt_problem &problem)
    : source(problem), inputPositions(problem.value_count, -1),
      outputPositions(problem.value_count, -1), producers(problem.value_count, -1),
      uses(problem.value_count, 0) {
  for (uint32_t i = 0; i < problem.input_count; ++i)
    inputPositions[problem.inputs[i]] = i;
  for (uint32_t i = 0; i < problem.output_count; ++i)
    outputPositions[problem.outputs[i]] = i;
  for (uint32_t i = 0; i < problem.op_count; ++i) {
    const dvt_op &op = problem.ops[i];
    for (uint32_t j = 0; j < op.input_count; ++j)
      if (op.inputs[j] != DVT_NO_VALUE)
        ++uses[op.inputs[j]];
    for (uint32_t j = 0; j < op.output_count; ++j)
      if (op.outputs[j] != DVT_NO_VALUE)
        producers[op.outputs[j]] = i;
  }
}

std::optional<uint32_t> ProblemReader::input(const dvt_op &op, uint32_t position) {
  if (position >= op.input_count || op.inputs[position] == DVT_NO_VALUE)
    return std::nullopt;
  return op.inputs[position];
}

std::optional<uint32_t> ProblemReader::output(const dvt_op &op, uint32_t position) {
  if (position >= op.output_count || op.outputs[position] == DVT_NO_VALUE)
    return std::nullopt;
  return op.outputs[position];
}

const dvt_attribute *ProblemReader::attribute(const dvt_op &op, std::string_view name) {
  for (uint32_t i = 0; i < op.attribute_count; ++i)
    if (name == op.attributes[i].name)
      return &op.attributes[i];
  return nullptr;
}

int64_t ProblemReader::integer(const dvt_op &op, std::string_view name, int64_t otherwise) {
  const dvt_attribute *found = attribute(op, name);
  return found && found->kind == DVT_ATTRIBUTE_INT ? found->i : otherwise;
}

double ProblemReader::real(const dvt_op &op, std::string_view name, double otherwise) {
  const dvt_attribute *found = attribute(op, name);
  if (!found)
    return otherwise;
  return found->kind == DVT_ATTRIBUTE_FLOAT ? found->f
         : found->kind == DVT_ATTRIBUTE_INT ? double(found->i)
                                            : otherwise;
}

std::string_view ProblemReader::text(const dvt_op &op, std::string_view name,
                                     std::string_view otherwise) {
  const dvt_attribute *found = attribute(op, name);
  return found && found->kind == DVT_ATTRIBUTE_STRING && found->s ? std::string_view(found->s)
                                                                  : otherwise;
}

std::optional<std::vector<int64_t>> ProblemReader::integers(const dvt_op &op,
                                                            std::string_view name) {
  const dvt_attribute *found = attribute(op, name);
  if (!found || found->kind != DVT_ATTRIBUTE_INTS)
    return std::nullopt;
  return std::vector<int64_t>(found->ints, found->ints + found->count);
}

template <typename T> static double numberOf(T element) { return double(element); }
static double numberOfHalf(uint16_t bits) { return halfToFloat(bits); }
static double numberOfBfloat(uint16_t bits) { return bfloatToFloat(bits); }
template <typename T, double (*number)(T) = numberOf<T>>
static std::optional<double> uniformOf(const dvt_value &value) {
  if (value.literal_bytes < sizeof(T) || value.literal_bytes % sizeof(T))
    return std::nullopt;
  const char *bytes = static_cast<const char *>(value.literal);
  for (uint64_t i = sizeof(T); i < value.literal_bytes; i += sizeof(T))
    if (std::memcmp(bytes, bytes + i, sizeof(T)))
      return std::nullopt;
  T first;
  std::memcpy(&first, bytes, sizeof(T));
  return number(first);
}

std::optional<double> ProblemReader::uniformLiteral(uint32_t index) const {
  const dvt_value &value = source.values[index];
  if (!isLiteral(index) || !value.literal)
    return std::nullopt;
  switch (value.type) {
  case DVT_F32:
    return uniformOf<float>(value);
  case DVT_F16:
    return uniformOf<uint16_t, numberOfHalf>(value);
  case DVT_BF16:
    return uniformOf<uint16_t, numberOfBfloat>(value);
  case DVT_I64:
    return uniformOf<int64_t>(value);
  case DVT_I32:
    return uniformOf<int32_t>(value);
  case DVT_BOOL:
  case DVT_U8:
    return uniformOf<uint8_t>(value);
  case DVT_I8:
    return uniformOf<int8_t>(value);
  case DVT_U16:
    return uniformOf<uint16_t>(value);
  case DVT_I16:
    return uniformOf<int16_t>(value);
  case DVT_U32:
    return uniformOf<uint32_t>(value);
  case DVT_U4:
  case DVT_I4: {
    int64_t count = value.flags & DVT_VALUE_UNIFORM ? 1 : elements(value);
    const auto *bytes = static_cast<const uint8_t *>(value.literal);
    auto nibble = [&](int64_t i) { return bytes[i / 2] >> (i % 2 * 4) & 15; };
    for (int64_t i = 1; i < count; ++i)
      if (nibble(i) != nibble(0))
        return std::nullopt;
    if (count < 1)
      return std::nullopt;
    return value.type == DVT_I4 && nibble(0) > 7 ? nibble(0) - 16 : nibble(0);
  }
  default:
    return std::nullopt;
  }
}

template <typename T>
static std::vector<int64_t> widen(const void *literal, int64_t stored, int64_t wanted) {
  std::vector<T> narrow(stored);
  std::memcpy(narrow.data(), literal, stored * sizeof(T));
  std::vector<int64_t> wide(narrow.begin(), narrow.end());
  if (stored == 1)
    wide.resize(wanted, wide[0]);
  return wide;
}

std::optional<std::vector<int64_t>> ProblemReader::integerLiteral(uint32_t index) const {
  const dvt_value &value = source.values[index];
  if (!isLiteral(index) || (value.type != DVT_I64 && value.type != DVT_I32) || !isStatic(value))
    return std::nullopt;
  int64_t wanted = elements(value);
  int64_t stored = value.literal_bytes / elementBytes(value.type);
  if (wanted > (1 << 20) || (stored != wanted && stored != 1) || (stored && !value.literal))
    return std::nullopt;
  if (wanted == 0)
    return std::vector<int64_t>();
  return value.type == DVT_I64 ? widen<int64_t>(value.literal, stored, wanted)
                               : widen<int32_t>(value.literal, stored, wanted);
}

bool ProblemReader::isStatic(const dvt_value &value) {
  return std::all_of(value.extents, value.extents + value.rank, isStaticExtent);
}

bool ProblemReader::isStatic() const {
  return std::all_of(source.values, source.values + source.value_count,
                     [](const dvt_value &value) { return isStatic(value); });
}

int64_t ProblemReader::elements(const dvt_value &value) {
  int64_t count = 1;
  for (uint32_t i = 0; i < value.rank; ++i)
    count *= value.extents[i].value;
  return count;
}

double ProblemReader::typicalElements(const dvt_value &value, int64_t typical) {
  double count = 1;
  for (uint32_t i = 0; i < value.rank; ++i) {
    const dvt_extent &extent = value.extents[i];
    count *=
        double(isStaticExtent(extent) ? extent.value : std::clamp(typical, extent.min, extent.max));
  }
  return count;
}

std::optional<ProblemReader::Place> ProblemReader::placeOf(const dvt_extent &extent) const {
  auto scan = [&](const uint32_t *values, uint32_t count, uint32_t base) -> std::optional<Place> {
    for (uint32_t i = 0; i < count; ++i) {
      const dvt_value &value = source.values[values[i]];
      for (uint32_t j = 0; j < value.rank; ++j)
        if (sameExtent(value.extents[j], extent))
          return Place{base + i, j};
    }
    return std::nullopt;
  };
  if (auto place = scan(source.inputs, source.input_count, 0))
    return place;
  return scan(source.outputs, source.output_count, source.input_count);
}

bool sameExtent(const dvt_extent &a, const dvt_extent &b) {
  if (isStaticExtent(a) || isStaticExtent(b))
    return a.value == b.value;
  return a.symbol && b.symbol && !std::strcmp(a.symbol, b.symbol);
}

std::string extentText(const dvt_extent &extent) {
  return isStaticExtent(extent) ? std::to_string(extent.value)
         : extent.symbol        ? extent.symbol
                                : "?";
}

std::string valueText(const dvt_value &value) {
  std::string text = std::string(elementTypeName(value.type)) + "[";
  for (uint32_t i = 0; i < value.rank; ++i)
    text += (i ? "," : "") + extentText(value.extents[i]);
  return text + "]";
}

const char *elementTypeName(dvt_type type) {
  switch (type) {
  case DVT_F32:
    return "f32";
  case DVT_U8:
    return "u8";
  case DVT_I8:
    return "i8";
  case DVT_U16:
    return "u16";
  case DVT_I16:
    return "i16";
  case DVT_I32:
    return "i32";
  case DVT_I64:
    return "i64";
  case DVT_STRING:
    return "string";
  case DVT_BOOL:
    return "bool";
  case DVT_F16:
    return "f16";
  case DVT_F64:
    return "f64";
  case DVT_U32:
    return "u32";
  case DVT_U64:
    return "u64";
  case DVT_BF16:
    return "bf16";
  case DVT_U4:
    return "u4";
  case DVT_I4:
    return "i4";
  default:
    return "undefined";
  }
}

float FloatReader::operator[](int64_t index) const {
  switch (type) {
  case DVT_F16:
    return halfToFloat(static_cast<const uint16_t *>(elements)[index]);
  case DVT_BF16:
    return bfloatToFloat(static_cast<const uint16_t *>(elements)[index]);
  default:
    return static_cast<const float *>(elements)[index];
  }
}

unsigned elementBytes(dvt_type type) {
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
  case DVT_I64:
  case DVT_U64:
  case DVT_F64:
    return 8;
  default:
    return 0;
  }
}

} // namespace dovetail::codegen
