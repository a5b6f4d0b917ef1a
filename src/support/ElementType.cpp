// SPDX-License-Identifier: Apache-2.0
//
// Names and sizes of element types, the one table behind all that asks for them.
#include "support/Problem.h"

namespace dovetail {

namespace {

struct TypeInfo {
  dvt_type type;
  const char *name;
  unsigned bits;
};

constexpr TypeInfo kTypes[] = {
    {DVT_F32, "f32", 32},  {DVT_U8, "u8", 8},      {DVT_I8, "i8", 8},    {DVT_U16, "u16", 16},
    {DVT_I16, "i16", 16},  {DVT_I32, "i32", 32},   {DVT_I64, "i64", 64}, {DVT_STRING, "string", 0},
    {DVT_BOOL, "bool", 8}, {DVT_F16, "f16", 16},   {DVT_F64, "f64", 64}, {DVT_U32, "u32", 32},
    {DVT_U64, "u64", 64},  {DVT_BF16, "bf16", 16}, {DVT_U4, "u4", 4},    {DVT_I4, "i4", 4}};

} // namespace

const char *typeName(dvt_type type) {
  for (const TypeInfo &info : kTypes)
    if (info.type == type)
      return info.name;
  return nullptr;
}

dvt_type parseTypeName(std::string_view name) {
  for (const TypeInfo &info : kTypes)
    if (info.name == name)
      return info.type;
  return DVT_UNDEFINED;
}

unsigned typeBits(dvt_type type) {
  for (const TypeInfo &info : kTypes)
    if (info.type == type)
      return info.bits;
  return 0;
}

uint64_t bytesOf(dvt_type type, int64_t elements) {
  if (elements <= 0)
    return 0;
  unsigned bits = typeBits(type);
  return bits >= 8 ? uint64_t(elements) * (bits / 8) : (uint64_t(elements) * bits + 7) / 8;
}

} // namespace dovetail
