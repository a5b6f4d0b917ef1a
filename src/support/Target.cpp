// SPDX-License-Identifier: Apache-2.0
//
// What this machine is: instruction sets that processor and operating system both offer, under the
// names Linux gives them, cache sizes and the cores this process may use.
#include "support/Plugin.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <fmt/format.h>

#include "support/File.h"
#include "support/Hash.h"

namespace dovetail {

namespace {

uint32_t usableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(CPU_COUNT(&set), 1);
  return 1;
}

#if defined(__x86_64__)

enum class State { None, Avx, Avx512, Amx }; // what the operating system must save

struct Feature {
  const char *name;
  unsigned leaf, subleaf;
  char registerName;
  unsigned bit;
  State state;
};

constexpr Feature kFeatures[] = {{"sse4_1", 1, 0, 'c', 19, State::None},
                                 {"sse4_2", 1, 0, 'c', 20, State::None},
                                 {"popcnt", 1, 0, 'c', 23, State::None},
                                 {"avx", 1, 0, 'c', 28, State::Avx},
                                 {"fma", 1, 0, 'c', 12, State::Avx},
                                 {"f16c", 1, 0, 'c', 29, State::Avx},
                                 {"bmi1", 7, 0, 'b', 3, State::None},
                                 {"bmi2", 7, 0, 'b', 8, State::None},
                                 {"avx2", 7, 0, 'b', 5, State::Avx},
                                 {"gfni", 7, 0, 'c', 8, State::None},
                                 {"vaes", 7, 0, 'c', 9, State::Avx},
                                 {"vpclmulqdq", 7, 0, 'c', 10, State::Avx},
                                 {"avx512f", 7, 0, 'b', 16, State::Avx512},
                                 {"avx512dq", 7, 0, 'b', 17, State::Avx512},
                                 {"avx512ifma", 7, 0, 'b', 21, State::Avx512},
                                 {"avx512cd", 7, 0, 'b', 28, State::Avx512},
                                 {"avx512bw", 7, 0, 'b', 30, State::Avx512},
                                 {"avx512vl", 7, 0, 'b', 31, State::Avx512},
                                 {"avx512vbmi", 7, 0, 'c', 1, State::Avx512},
                                 {"avx512_vbmi2", 7, 0, 'c', 6, State::Avx512},
                                 {"avx512_vnni", 7, 0, 'c', 11, State::Avx512},
                                 {"avx512_bitalg", 7, 0, 'c', 12, State::Avx512},
                                 {"avx512_vpopcntdq", 7, 0, 'c', 14, State::Avx512},
                                 {"avx512_fp16", 7, 0, 'd', 23, State::Avx512},
                                 {"amx_bf16", 7, 0, 'd', 22, State::Amx},
                                 {"amx_tile", 7, 0, 'd', 24, State::Amx},
                                 {"amx_int8", 7, 0, 'd', 25, State::Amx},
                                 {"avx_vnni", 7, 1, 'a', 4, State::Avx},
                                 {"avx512_bf16", 7, 1, 'a', 5, State::Avx512},
                                 {"amx_fp16", 7, 1, 'a', 21, State::Amx},
                                 {"avx_ifma", 7, 1, 'a', 23, State::Avx},
                                 {"avx_vnni_int8", 7, 1, 'd', 4, State::Avx},
                                 {"avx_ne_convert", 7, 1, 'd', 5, State::Avx}};

uint64_t savedState() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) // OSXSAVE
    return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

std::set<std::string> hostFeatures() {
  std::set<std::string> names;
  uint64_t saved = savedState();
  auto usable = [&](State state) {
    uint64_t needed = state == State::None     ? 0
                      : state == State::Avx    ? 0x6
                      : state == State::Avx512 ? 0xe6
                                               : 0x60006;
    return (saved & needed) == needed;
  };
  for (const Feature &feature : kFeatures) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (feature.subleaf > 0) {
      if (!__get_cpuid_count(feature.leaf, 0, &a, &b, &c, &d) || a < feature.subleaf)
        continue;
    }
    if (!__get_cpuid_count(feature.leaf, feature.subleaf, &a, &b, &c, &d))
      continue;
    unsigned bits = feature.registerName == 'a'   ? a
                    : feature.registerName == 'b' ? b
                    : feature.registerName == 'c' ? c
                                                  : d;
    if ((bits >> feature.bit & 1) && usable(feature.state))
      names.insert(feature.name);
  }
  return names;
}

constexpr const char *kArchitecture = "x86-64";

#elif defined(__aarch64__)

std::set<std::string> hostFeatures() {
  struct Feature {
    const char *name;
    int capability;
    unsigned bit;
  };
  constexpr Feature features[] = {{"asimd", AT_HWCAP, 1},    {"atomics", AT_HWCAP, 8},
                                  {"fphp", AT_HWCAP, 9},     {"asimdhp", AT_HWCAP, 10},
                                  {"asimddp", AT_HWCAP, 20}, {"sve", AT_HWCAP, 22},
                                  {"sve2", AT_HWCAP2, 1},    {"i8mm", AT_HWCAP2, 13},
                                  {"bf16", AT_HWCAP2, 14},   {"sme", AT_HWCAP2, 23}};
  std::set<std::string> names;
  for (const Feature &feature : features)
    if (::getauxval(feature.capability) >> feature.bit & 1)
      names.insert(feature.name);
  return names;
}

constexpr const char *kArchitecture = "aarch64";

#else

std::set<std::string> hostFeatures() { return {}; }
constexpr const char *kArchitecture = "unknown";

#endif

std::string readLine(const std::string &path) {
  auto content = readFile(path, 4096);
  return content ? content->substr(0, content->find('\n')) : std::string();
}

/// "48K", "2M" or plain bytes; 0 for anything else.
uint64_t parseSize(const std::string &text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return 0;
  char unit = end < text.data() + text.size() ? *end : 0;
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

void readCaches(Target &target) {
  for (int index = 0; index < 8; ++index) {
    std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::string kind = readLine(folder + "type");
    if (kind != "Data" && kind != "Unified")
      continue;
    std::string level = readLine(folder + "level");
    uint64_t bytes = parseSize(readLine(folder + "size"));
    if (level == "1")
      target.l1Bytes = bytes;
    else if (level == "2")
      target.l2Bytes = bytes;
    else if (level == "3")
      target.l3Bytes = bytes;
  }
}

} // namespace

Target Target::host(uint32_t threads) {
  // Asked once: virtual machines make cpuid slow.
  static const Target machine = [] {
    Target target;
    target.architecture = kArchitecture;
    for (const std::string &name : hostFeatures())
      target.features += (target.features.empty() ? "" : ",") + name;
    readCaches(target);
    return target;
  }();
  Target target = machine;
  target.threads = threads ? threads : usableCores();
  return target;
}

std::string Target::text() const {
  if (isDevice())
    return fmt::format("{} description={}", name(), hashHex(description).substr(0, 16));
  return fmt::format("{} {} threads={} l1={} l2={} l3={} features={}", device, architecture,
                     threads, l1Bytes, l2Bytes, l3Bytes, features);
}

bool Target::hasFeature(std::string_view name) const {
  std::string_view rest = features;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    if (rest.substr(0, comma) == name)
      return true;
    if (comma == std::string_view::npos)
      return false;
    rest.remove_prefix(comma + 1);
  }
  return false;
}

dvt_target Target::view() const {
  dvt_target out{};
  out.struct_size = sizeof(out);
  out.threads = threads;
  out.device = device.c_str();
  out.architecture = architecture.c_str();
  out.features = features.c_str();
  out.l1_bytes = l1Bytes;
  out.l2_bytes = l2Bytes;
  out.l3_bytes = l3Bytes;
  out.description = description.empty() ? nullptr : description.c_str();
  return out;
}

} // namespace dovetail
