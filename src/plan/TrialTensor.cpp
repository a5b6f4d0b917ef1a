// SPDX-License-Identifier: Apache-2.0
//
// Buffers with guard zones, seeded noise and the comparison behind every check of a candidate.
#include "plan/TrialTensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include <sys/mman.h>

namespace dovetail::plan {
namespace {

constexpr uint8_t kGuardPattern = 0xA5;

double halfToDouble(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  double mantissa = bits & 1023;
  double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

double bfloatToDouble(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

double readFloat(dvt_type type, const void *data, int64_t index) {
  switch (type) {
  case DVT_F32:
    return static_cast<const float *>(data)[index];
  case DVT_F64:
    return static_cast<const double *>(data)[index];
  case DVT_F16:
    return halfToDouble(static_cast<const uint16_t *>(data)[index]);
  default:
    return bfloatToDouble(static_cast<const uint16_t *>(data)[index]);
  }
}

uint64_t splitMix(uint64_t &state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

} // namespace

int64_t stridedSpan(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides) {
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0)
      return 0;
    last += (extents[d] - 1) * strides[d];
  }
  return last + 1;
}

namespace {

/// body(place in dense memory, place in strided memory), in bytes, for each element.
template <typename Body>
void walk(dvt_type type, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides,
          Body body) {
  std::vector<int64_t> index(extents.size(), 0);
  int64_t bytes = typeBits(type) / 8, count = 1, offset = 0;
  for (int64_t extent : extents)
    count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    body(i * bytes, offset * bytes);
    for (size_t d = extents.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < extents[d])
        break;
      offset -= extents[d] * strides[d];
      index[d] = 0;
    }
  }
}

} // namespace

void scatter(dvt_type type, const std::vector<int64_t> &extents,
             const std::vector<int64_t> &strides, const void *dense, void *strided) {
  walk(type, extents, strides, [&](int64_t from, int64_t to) {
    std::memcpy(static_cast<char *>(strided) + to, static_cast<const char *>(dense) + from,
                typeBits(type) / 8);
  });
}

void gather(dvt_type type, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides,
            const void *strided, void *dense) {
  walk(type, extents, strides, [&](int64_t to, int64_t from) {
    std::memcpy(static_cast<char *>(dense) + to, static_cast<const char *>(strided) + from,
                typeBits(type) / 8);
  });
}

GuardedBuffer::GuardedBuffer(uint64_t size)
    : bytes(size), memory(nullptr, std::free), start(nullptr) {
  uint64_t rounded = (bytes + 63) / 64 * 64;
  void *block = std::aligned_alloc(4096, (rounded + 2 * kGuardBytes + 4095) / 4096 * 4096);
  if (!block)
    throw std::bad_alloc();
  memory.reset(static_cast<uint8_t *>(block));
  start = memory.get() + kGuardBytes;
  std::memset(memory.get(), kGuardPattern, kGuardBytes);
  std::memset(start + bytes, kGuardPattern, rounded - bytes + kGuardBytes);
}

void PackedBlocks::Unmap::operator()(void *memory) const { ::munmap(memory, bytes); }

void *PackedBlocks::take(uint64_t bytes) {
  constexpr uint64_t kHugePage = 2 << 20, kLarge = 256 << 10;
  if (bytes > UINT64_MAX / 2)
    return nullptr;
  const bool isLarge = bytes >= kLarge;
  const uint64_t unit = isLarge ? kHugePage : 4096;
  const uint64_t rounded = (std::max<uint64_t>(bytes, 1) + unit - 1) / unit * unit;
  const uint64_t mapped = isLarge ? rounded + kHugePage : rounded;
  void *memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  blocks.emplace_back(memory, Unmap{mapped});
  if (!isLarge)
    return memory;
  const uint64_t past = reinterpret_cast<uintptr_t>(memory) % kHugePage;
  auto *aligned = static_cast<uint8_t *>(memory) + (kHugePage - past) % kHugePage;
  ::madvise(aligned, rounded, MADV_HUGEPAGE);
  return aligned;
}

bool GuardedBuffer::intact() const {
  auto untouched = [](const uint8_t *from, uint64_t count) {
    return std::all_of(from, from + count, [](uint8_t byte) { return byte == kGuardPattern; });
  };
  uint64_t rounded = (bytes + 63) / 64 * 64;
  return untouched(memory.get(), kGuardBytes) &&
         untouched(start + bytes, rounded - bytes + kGuardBytes);
}

std::vector<uint8_t> noise(dvt_type type, int64_t elements, uint64_t seed) {
  std::vector<uint8_t> bytes(bytesOf(type, elements));
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  auto unit = [&] { return static_cast<double>(splitMix(state) >> 11) * 0x1p-52 - 1; };
  for (int64_t i = 0; i < elements; ++i) {
    switch (type) {
    case DVT_F32: {
      float value = static_cast<float>(unit());
      std::memcpy(&bytes[i * 4], &value, 4);
      break;
    }
    case DVT_F64: {
      double value = unit();
      std::memcpy(&bytes[i * 8], &value, 8);
      break;
    }
    case DVT_BF16: {
      float value = static_cast<float>(unit());
      std::memcpy(&bytes[i * 2], reinterpret_cast<const char *>(&value) + 2, 2);
      break;
    }
    case DVT_F16: { // 0x0000..0x3BFF are the halves in [0, 1)
      uint64_t draw = splitMix(state);
      uint16_t value = static_cast<uint16_t>((0x2C00 + draw % 0x1000) | (draw >> 63 << 15));
      std::memcpy(&bytes[i * 2], &value, 2);
      break;
    }
    case DVT_U4:
    case DVT_I4:
      bytes[i / 2] |= static_cast<uint8_t>((splitMix(state) & 15) << (i % 2 * 4));
      break;
    default:
      bytes[i * (typeBits(type) / 8)] = splitMix(state) & 1;
    }
  }
  return bytes;
}

namespace {
template <typename T> void scaleAs(std::vector<uint8_t> &bytes, double factor) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, &bytes[i], sizeof(T));
    value = static_cast<T>(value * factor);
    std::memcpy(&bytes[i], &value, sizeof(T));
  }
}
} // namespace

void scaleNoise(dvt_type type, std::vector<uint8_t> &bytes, double factor) {
  if (type == DVT_F32)
    scaleAs<float>(bytes, factor);
  else if (type == DVT_F64)
    scaleAs<double>(bytes, factor);
}

void makeIntegersOdd(dvt_type type, std::vector<uint8_t> &bytes) {
  constexpr dvt_type kIntegers[] = {DVT_U8,  DVT_I8,  DVT_U16, DVT_I16,
                                    DVT_U32, DVT_I32, DVT_U64, DVT_I64};
  if (std::find(std::begin(kIntegers), std::end(kIntegers), type) == std::end(kIntegers))
    return;
  for (size_t first = 0; first < bytes.size(); first += typeBits(type) / 8)
    bytes[first] |= 1; // the lowest byte comes first on the processors that there are kernels for
}

double relativeDifference(dvt_type type, const void *truth, const void *found, int64_t elements) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool isFloat = type == DVT_F32 || type == DVT_F64 || type == DVT_F16 || type == DVT_BF16;
  if (!isFloat)
    return std::memcmp(truth, found, bytesOf(type, elements)) == 0 ? 0 : kInfinity;
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < elements; ++i) {
    double a = readFloat(type, truth, i), b = readFloat(type, found, i);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      if (!(std::isnan(a) && std::isnan(b)) && a != b)
        return kInfinity;
      continue;
    }
    largest = std::max(largest, std::abs(a));
    difference = std::max(difference, std::abs(a - b));
  }
  return difference == 0 ? 0 : difference / std::max(largest, 1e-30);
}

std::optional<std::vector<int64_t>> extentsUnder(const ProblemValue &value,
                                                 const SymbolValues &symbols) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents) {
    auto number = extent.evaluate(symbols);
    if (!number || *number < 0)
      return std::nullopt;
    extents.push_back(*number);
  }
  return extents;
}

} // namespace dovetail::plan
