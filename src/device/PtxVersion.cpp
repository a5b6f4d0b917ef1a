// SPDX-License-Identifier: Apache-2.0
#include "device/PtxVersion.h"

#include <charconv>

#include <fmt/format.h>

namespace dovetail::device {

uint32_t driverForPtx(std::string_view ptx) {
  constexpr std::string_view kDirective = ".version ";
  size_t place = ptx.find(kDirective);
  if (place == ptx.npos)
    return 0;
  const char *end = ptx.data() + ptx.size();
  uint32_t major = 0, minor = 0;
  auto first = std::from_chars(ptx.data() + place + kDirective.size(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.' ||
      std::from_chars(first.ptr + 1, end, minor).ec != std::errc() || major < 7)
    return 0;
  // 7.0 came with CUDA 11.0, and so on; 8.6 with 12.7, as 12.6 had nothing new.
  if (major == 8 && minor >= 6)
    ++minor;
  return (major + 4) * 1000 + minor * 10;
}

std::string cudaVersionText(uint32_t number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

} // namespace dovetail::device
