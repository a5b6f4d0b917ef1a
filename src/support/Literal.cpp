// SPDX-License-Identifier: Apache-2.0
//
// Conversions between element bytes and text. Floating-point text goes through fmt and from_chars,
// both exact and independent of the locale.
#include "support/Literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "support/Problem.h"

namespace dovetail {

namespace {

template <typename T> T load(const std::vector<uint8_t> &bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T> bool append(std::vector<uint8_t> &bytes, T value) {
  const auto *raw = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
  return true;
}

template <typename T> std::optional<T> parseNumber(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// Of the one NaN that text "nan" gives; every other is written as its bits.
constexpr uint32_t kNan32 = 0x7fc00000;
constexpr uint64_t kNan64 = 0x7ff8000000000000;
constexpr uint16_t kNan16 = 0x7e00, kNanBfloat = 0x7fc0;

template <typename Bits, typename Float>
std::string floatElement(Bits bits, Float value, Bits plainNan) {
  if (std::isnan(value))
    return bits == plainNan ? "nan" : fmt::format("nan:{:x}", bits);
  return fmt::format("{}", value);
}

template <typename Bits> std::optional<Bits> nanBits(std::string_view text, Bits plainNan) {
  if (text == "nan")
    return plainNan;
  Bits bits{};
  if (!text.starts_with("nan:"))
    return std::nullopt;
  auto [end, error] = std::from_chars(text.data() + 4, text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return bits;
}

template <typename Float> std::optional<Float> parseReal(std::string_view text) {
  // from_chars also takes "infinity" and "nan(...)", in any case.
  for (char c : text)
    if (!((c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e'))
      return text == "inf"    ? std::optional(std::numeric_limits<Float>::infinity())
             : text == "-inf" ? std::optional(-std::numeric_limits<Float>::infinity())
                              : std::nullopt;
  return parseNumber<Float>(text);
}

template <typename T> bool appendInteger(std::vector<uint8_t> &bytes, std::string_view text) {
  auto value = parseNumber<T>(text);
  return value && append(bytes, *value);
}

} // namespace

float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = (half >> 10) & 31,
           fraction = half & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent == 0)
    return std::copysign(std::ldexp(float(fraction), -24), std::bit_cast<float>(sign | 0x3f800000));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = (bits >> 16) & 0x8000;
  float magnitude = std::fabs(value);
  if (std::isnan(value))
    return sign | kNan16;
  if (magnitude >= 65520.0f) // the middle between the largest number and the next
    return sign | 0x7c00;
  if (magnitude < 6.103515625e-05f) // subnormal: a multiple of 2^-24
    return sign | uint16_t(std::nearbyint(std::ldexp(magnitude, 24)));
  uint32_t rounded = std::bit_cast<uint32_t>(magnitude);
  rounded += 0xfff + ((rounded >> 13) & 1);
  return sign | uint16_t((rounded >> 13) - (112 << 10));
}

float bfloatToFloat(uint16_t bfloat) { return std::bit_cast<float>(uint32_t(bfloat) << 16); }

uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::string elementText(dvt_type type, const std::vector<uint8_t> &bytes, int64_t index) {
  switch (type) {
  case DVT_F32:
    return floatElement(load<uint32_t>(bytes, index), load<float>(bytes, index), kNan32);
  case DVT_F64:
    return floatElement(load<uint64_t>(bytes, index), load<double>(bytes, index), kNan64);
  case DVT_F16:
    return floatElement(load<uint16_t>(bytes, index), halfToFloat(load<uint16_t>(bytes, index)),
                        kNan16);
  case DVT_BF16:
    return floatElement(load<uint16_t>(bytes, index), bfloatToFloat(load<uint16_t>(bytes, index)),
                        kNanBfloat);
  case DVT_U8:
  case DVT_BOOL:
    return std::to_string(load<uint8_t>(bytes, index));
  case DVT_I8:
    return std::to_string(load<int8_t>(bytes, index));
  case DVT_U16:
    return std::to_string(load<uint16_t>(bytes, index));
  case DVT_I16:
    return std::to_string(load<int16_t>(bytes, index));
  case DVT_U32:
    return std::to_string(load<uint32_t>(bytes, index));
  case DVT_I32:
    return std::to_string(load<int32_t>(bytes, index));
  case DVT_U64:
    return std::to_string(load<uint64_t>(bytes, index));
  case DVT_I64:
    return std::to_string(load<int64_t>(bytes, index));
  case DVT_U4:
  case DVT_I4: {
    int nibble = (bytes[index / 2] >> (index % 2 * 4)) & 15;
    return std::to_string(type == DVT_I4 && nibble > 7 ? nibble - 16 : nibble);
  }
  default:
    return "?";
  }
}

bool appendElement(dvt_type type, std::string_view text, int64_t index,
                   std::vector<uint8_t> &bytes) {
  switch (type) {
  case DVT_F32: {
    if (auto bits = nanBits(text, kNan32))
      return append(bytes, *bits);
    auto value = parseReal<float>(text);
    return value && append(bytes, *value);
  }
  case DVT_F64: {
    if (auto bits = nanBits(text, kNan64))
      return append(bytes, *bits);
    auto value = parseReal<double>(text);
    return value && append(bytes, *value);
  }
  case DVT_F16:
  case DVT_BF16: {
    if (auto bits = nanBits(text, type == DVT_F16 ? kNan16 : kNanBfloat))
      return append(bytes, *bits);
    auto value = parseReal<float>(text);
    return value && append(bytes, type == DVT_F16 ? floatToHalf(*value) : floatToBfloat(*value));
  }
  case DVT_U8:
  case DVT_BOOL:
    return appendInteger<uint8_t>(bytes, text);
  case DVT_I8:
    return appendInteger<int8_t>(bytes, text);
  case DVT_U16:
    return appendInteger<uint16_t>(bytes, text);
  case DVT_I16:
    return appendInteger<int16_t>(bytes, text);
  case DVT_U32:
    return appendInteger<uint32_t>(bytes, text);
  case DVT_I32:
    return appendInteger<int32_t>(bytes, text);
  case DVT_U64:
    return appendInteger<uint64_t>(bytes, text);
  case DVT_I64:
    return appendInteger<int64_t>(bytes, text);
  case DVT_U4:
  case DVT_I4: {
    auto value = parseNumber<int>(text);
    int low = type == DVT_I4 ? -8 : 0;
    if (!value || *value < low || *value > low + 15)
      return false;
    if (index % 2 == 0)
      bytes.push_back(*value & 15);
    else
      bytes.back() |= (*value & 15) << 4;
    return true;
  }
  default:
    return false;
  }
}

std::string floatText(double value) {
  if (std::isnan(value)) {
    uint64_t bits = std::bit_cast<uint64_t>(value);
    return bits == kNan64 ? "nan" : fmt::format("nan:{:x}", bits);
  }
  std::string text = fmt::format("{}", value);
  if (std::isinf(value))
    return text;
  std::string narrow = fmt::format("{}", float(value));
  if (double(float(value)) == value && narrow != text)
    return narrow + "f"; // 0.1f reads better than 0.10000000149011612
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

std::optional<double> parseFloatText(std::string_view text) {
  if (auto bits = nanBits(text, kNan64))
    return std::bit_cast<double>(*bits);
  if (text.ends_with('f') && !text.ends_with("inf")) {
    auto value = parseReal<float>(text.substr(0, text.size() - 1));
    return value ? std::optional<double>(*value) : std::nullopt;
  }
  return parseReal<double>(text);
}

} // namespace dovetail
