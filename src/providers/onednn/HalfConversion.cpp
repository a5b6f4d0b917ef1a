// SPDX-License-Identifier: Apache-2.0
//
// Conversions by eight elements at a time; bf16 by shifts that the C++ compiler turns into vectors.
#include "providers/onednn/HalfConversion.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#define DOVETAIL_F16C __attribute__((target("avx,f16c")))
#endif

namespace dovetail::onednn {
namespace {

constexpr int64_t kGrain = 16384; ///< elements that are worth a thread

template <typename Body> void inParts(int64_t count, uint32_t threads, Body body) {
  const auto parts = static_cast<int>(std::clamp<int64_t>(count / kGrain, 1, threads));
  if (parts == 1)
    return body(0, count);
  const int64_t step = ((count + parts - 1) / parts + 63) / 64 * 64;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part)
    if (part * step < count)
      body(part * step, std::min(count, (part + 1) * step));
}

void widenBfloats(const uint16_t *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    std::memcpy(to + i, &bits, sizeof bits);
  }
}

void narrowToBfloats(const float *from, uint16_t *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, from + i, sizeof bits);
    const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    to[i] = static_cast<uint16_t>(from[i] != from[i] ? quiet : nearest);
  }
}

#if defined(__x86_64__)
DOVETAIL_F16C void widenHalves(const uint16_t *from, float *to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
  for (; i < count; ++i)
    _mm_store_ss(to + i, _mm_cvtph_ps(_mm_cvtsi32_si128(from[i])));
}

DOVETAIL_F16C void narrowToHalves(const float *from, uint16_t *to, int64_t count) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), kNearest));
  for (; i < count; ++i)
    to[i] = static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_load_ss(from + i), kNearest)));
}
#else
void widenHalves(const uint16_t *, float *, int64_t) {}
void narrowToHalves(const float *, uint16_t *, int64_t) {}
#endif

} // namespace

bool convertsHalves(const dvt_target &target) {
#if defined(__x86_64__)
  std::string_view features = target.features ? target.features : "";
  while (!features.empty()) {
    const size_t comma = features.find(',');
    if (features.substr(0, comma) == "f16c")
      return __builtin_cpu_supports("f16c") != 0;
    features = comma == features.npos ? "" : features.substr(comma + 1);
  }
#else
  static_cast<void>(target);
#endif
  return false;
}

void widenElements(dvt_type type, const void *from, float *to, int64_t count, uint32_t threads) {
  const auto *halves = static_cast<const uint16_t *>(from);
  inParts(count, threads, [&](int64_t begin, int64_t end) {
    (type == DVT_F16 ? widenHalves : widenBfloats)(halves + begin, to + begin, end - begin);
  });
}

void narrowElements(dvt_type type, const float *from, void *to, int64_t count, uint32_t threads) {
  auto *halves = static_cast<uint16_t *>(to);
  inParts(count, threads, [&](int64_t begin, int64_t end) {
    (type == DVT_F16 ? narrowToHalves : narrowToBfloats)(from + begin, halves + begin, end - begin);
  });
}

} // namespace dovetail::onednn
