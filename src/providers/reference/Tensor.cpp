// SPDX-License-Identifier: Apache-2.0
//
// Widening and rounding of elements. f16 and bf16 are rounded from double in one step, because
// going through float would round twice.
#include "Tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace dovetail::reference {

dvt_code Status::report(dvt_error *error) const {
  if (error) {
    size_t length = std::min(message.size(), sizeof error->message - 1);
    std::memcpy(error->message, message.data(), length);
    error->message[length] = 0;
  }
  return code;
}

bool isKnownType(dvt_type type) { return elementBytes(type) != 0; }

const char *nameOf(dvt_type type) {
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
  case DVT_UNDEFINED:
    break;
  }
  return "unknown";
}

size_t elementBytes(dvt_type type) {
  switch (type) {
  case DVT_U8:
  case DVT_I8:
  case DVT_BOOL:
  case DVT_U4:
  case DVT_I4:
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
  case DVT_STRING:
  case DVT_UNDEFINED:
    break;
  }
  return 0;
}

bool isFourBit(dvt_type type) { return type == DVT_U4 || type == DVT_I4; }

NumberKind kindOf(dvt_type type) {
  switch (type) {
  case DVT_F32:
  case DVT_F64:
  case DVT_F16:
  case DVT_BF16:
    return NumberKind::Real;
  case DVT_I8:
  case DVT_I16:
  case DVT_I32:
  case DVT_I64:
  case DVT_I4:
    return NumberKind::Signed;
  default:
    return NumberKind::Unsigned;
  }
}

static unsigned integerBits(dvt_type type) {
  return isFourBit(type) ? 4 : type == DVT_BOOL ? 1 : 8 * static_cast<unsigned>(elementBytes(type));
}

int64_t lowestInteger(dvt_type type) {
  return kindOf(type) == NumberKind::Signed ? -(int64_t(1) << (integerBits(type) - 2)) * 2 : 0;
}

uint64_t highestInteger(dvt_type type) {
  unsigned bits = integerBits(type);
  return ~uint64_t(0) >> (64 - bits + (kindOf(type) == NumberKind::Signed ? 1 : 0));
}

std::optional<int64_t> elementCount(const Extents &extents) {
  // Checked without the zeros as well, so that strides of empty tensors fit, too.
  int64_t product = 1;
  bool empty = false;
  for (int64_t extent : extents) {
    if (extent < 0)
      return std::nullopt;
    if (extent == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, extent, &product) || product > int64_t(1) << 56)
      return std::nullopt;
  }
  return empty ? 0 : product;
}

Extents rowMajorStrides(const Extents &extents) {
  Extents strides(extents.size());
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= extents[i];
  }
  return strides;
}

std::string textOf(const Extents &extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i)
    text += (i ? "," : "") + std::to_string(extents[i]);
  return text + "]";
}

int64_t Tensor::count() const {
  int64_t product = 1;
  for (int64_t extent : extents)
    product *= extent;
  return product;
}

Tensor Tensor::allocate(dvt_type type, Extents extents) {
  Tensor tensor;
  tensor.type = type;
  tensor.extents = std::move(extents);
  tensor.owned = std::make_unique_for_overwrite<uint8_t[]>(tensor.bytes() + 1);
  tensor.data = tensor.owned.get();
  return tensor;
}

/// Rounds to a format of `fraction` stored bits and `bias`, ties to even. The magnitude is scaled
/// so that one unit in the last place becomes 1, which nearbyint then rounds.
static uint16_t roundToBits(double value, int fraction, int bias) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  int exponentOnes = 2 * bias + 1;
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | exponentOnes << fraction | 1 << (fraction - 1));
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  if (std::isinf(magnitude))
    return static_cast<uint16_t>(sign | exponentOnes << fraction);
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  if (exponent > bias)
    return static_cast<uint16_t>(sign | exponentOnes << fraction);
  auto units = static_cast<int64_t>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  // A subnormal has no implicit one; a carry out of the fraction moves into the exponent by itself.
  int64_t bits = units + (static_cast<int64_t>(exponent + bias - 1) << fraction);
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, int64_t(exponentOnes) << fraction));
}

double halfToDouble(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 31  ? (fraction ? std::numeric_limits<double>::quiet_NaN()
                                                 : std::numeric_limits<double>::infinity())
                     : exponent == 0 ? std::ldexp(fraction, -24)
                                     : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t doubleToHalf(double value) { return roundToBits(value, 10, 15); }
double brainToDouble(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
uint16_t doubleToBrain(double value) { return roundToBits(value, 7, 127); }

template <typename W> static W fromReal(double value) {
  if constexpr (std::is_same_v<W, double>) {
    return value;
  } else {
    if (std::isnan(value))
      return 0;
    // The limits of W rounded to double; W's highest itself may round up to one that does not fit.
    double high = std::ldexp(1.0, std::is_signed_v<W> ? 63 : 64);
    if (value >= high)
      return std::numeric_limits<W>::max();
    if (value <= static_cast<double>(std::numeric_limits<W>::min()))
      return std::numeric_limits<W>::min();
    return static_cast<W>(value);
  }
}

template <typename W, typename T, typename Convert>
static void widen(const Tensor &tensor, std::vector<W> &values, Convert convert) {
  const T *from = reinterpret_cast<const T *>(tensor.data);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = convert(from[i]);
}

template <typename W> std::vector<W> numbers(const Tensor &tensor) {
  std::vector<W> values(static_cast<size_t>(tensor.count()));
  auto plain = [](auto element) { return static_cast<W>(element); };
  switch (tensor.type) {
  case DVT_F32:
    widen<W, float>(tensor, values, [](float x) { return fromReal<W>(x); });
    break;
  case DVT_F64:
    widen<W, double>(tensor, values, [](double x) { return fromReal<W>(x); });
    break;
  case DVT_F16:
    widen<W, uint16_t>(tensor, values, [](uint16_t x) { return fromReal<W>(halfToDouble(x)); });
    break;
  case DVT_BF16:
    widen<W, uint16_t>(tensor, values, [](uint16_t x) { return fromReal<W>(brainToDouble(x)); });
    break;
  case DVT_BOOL:
    widen<W, uint8_t>(tensor, values, [](uint8_t x) { return W(x != 0); });
    break;
  case DVT_U8:
  case DVT_U4:
    widen<W, uint8_t>(tensor, values, plain);
    break;
  case DVT_I8:
  case DVT_I4:
    widen<W, int8_t>(tensor, values, plain);
    break;
  case DVT_U16:
    widen<W, uint16_t>(tensor, values, plain);
    break;
  case DVT_I16:
    widen<W, int16_t>(tensor, values, plain);
    break;
  case DVT_U32:
    widen<W, uint32_t>(tensor, values, plain);
    break;
  case DVT_I32:
    widen<W, int32_t>(tensor, values, plain);
    break;
  case DVT_U64:
    widen<W, uint64_t>(tensor, values, plain);
    break;
  case DVT_I64:
    widen<W, int64_t>(tensor, values, plain);
    break;
  case DVT_STRING:
  case DVT_UNDEFINED:
    break;
  }
  return values;
}

/// One integer of type T; `bits` below 8 wrap, too.
template <typename T, typename W> static T narrow(W value, dvt_type type) {
  if constexpr (std::is_same_v<W, double>) {
    if (std::isnan(value))
      return 0;
    if (value <= static_cast<double>(lowestInteger(type)))
      return static_cast<T>(lowestInteger(type));
    if (value >= static_cast<double>(highestInteger(type)))
      return static_cast<T>(highestInteger(type));
    return static_cast<T>(value);
  } else {
    if (type == DVT_I4)
      return static_cast<T>(static_cast<int8_t>(static_cast<uint8_t>(value) << 4) >> 4);
    if (type == DVT_U4)
      return static_cast<T>(value & 15);
    return static_cast<T>(value);
  }
}

template <typename T, typename W, typename Convert>
static void write(Tensor &tensor, const W *values, Convert convert) {
  T *to = reinterpret_cast<T *>(tensor.data);
  for (int64_t i = 0, count = tensor.count(); i < count; ++i)
    to[i] = convert(values[i]);
}

template <typename T, typename W> static void writeIntegers(Tensor &tensor, const W *values) {
  write<T>(tensor, values, [type = tensor.type](W x) { return narrow<T>(x, type); });
}

template <typename W> void storeNumbers(Tensor &tensor, const W *values) {
  switch (tensor.type) {
  case DVT_F32:
    return write<float>(tensor, values, [](W x) { return static_cast<float>(x); });
  case DVT_F64:
    return write<double>(tensor, values, [](W x) { return static_cast<double>(x); });
  case DVT_F16:
    return write<uint16_t>(tensor, values,
                           [](W x) { return doubleToHalf(static_cast<double>(x)); });
  case DVT_BF16:
    return write<uint16_t>(tensor, values,
                           [](W x) { return doubleToBrain(static_cast<double>(x)); });
  case DVT_BOOL:
    return write<uint8_t>(tensor, values, [](W x) { return static_cast<uint8_t>(x != 0); });
  case DVT_U8:
  case DVT_U4:
    return writeIntegers<uint8_t>(tensor, values);
  case DVT_I8:
  case DVT_I4:
    return writeIntegers<int8_t>(tensor, values);
  case DVT_U16:
    return writeIntegers<uint16_t>(tensor, values);
  case DVT_I16:
    return writeIntegers<int16_t>(tensor, values);
  case DVT_U32:
    return writeIntegers<uint32_t>(tensor, values);
  case DVT_I32:
    return writeIntegers<int32_t>(tensor, values);
  case DVT_U64:
    return writeIntegers<uint64_t>(tensor, values);
  case DVT_I64:
    return writeIntegers<int64_t>(tensor, values);
  case DVT_STRING:
  case DVT_UNDEFINED:
    break;
  }
}

template std::vector<double> numbers<double>(const Tensor &);
template std::vector<int64_t> numbers<int64_t>(const Tensor &);
template std::vector<uint64_t> numbers<uint64_t>(const Tensor &);
template void storeNumbers<double>(Tensor &, const double *);
template void storeNumbers<int64_t>(Tensor &, const int64_t *);
template void storeNumbers<uint64_t>(Tensor &, const uint64_t *);

} // namespace dovetail::reference
