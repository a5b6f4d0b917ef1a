// SPDX-License-Identifier: Apache-2.0
//
// Reads a dvt_target into a Machine: picks the instruction set level from the feature list and
// takes sane cache sizes where the target does not know them.
#include "codegen/schedule/Machine.h"

#include <algorithm>
#include <string_view>
#include <utility>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "device/DeviceDescription.h"

namespace dovetail::codegen {

const char *Isa::name() const {
  switch (level) {
  case Avx2:
    return "avx2";
  case Avx512:
    return "avx512";
  case Neon:
    return "neon";
  case Sm80:
    return "sm_80";
  case Sm90:
    return "sm_90";
  case Sm100:
    return "sm_100";
  case Gfx90a:
    return "gfx90a";
  case Gfx942:
    return "gfx942";
  }
  return "";
}

static bool hasFeature(std::string_view features, std::string_view name) {
  while (!features.empty()) {
    size_t comma = features.find(',');
    if (features.substr(0, comma) == name)
      return true;
    features = comma == features.npos ? "" : features.substr(comma + 1);
  }
  return false;
}

static constexpr std::pair<const char *, Isa::Level> kDeviceLevels[] = {
    {"cuda", Isa::Sm80},   {"cuda", Isa::Sm90},   {"cuda", Isa::Sm100},
    {"rocm", Isa::Gfx90a}, {"rocm", Isa::Gfx942},
};

static Expected<Machine> deviceMachine(const dvt_target &target) {
  std::string known;
  for (const auto &[device, level] : kDeviceLevels) {
    Machine machine;
    machine.isa = {level, 1, 255};
    if (device != std::string_view(target.device))
      continue;
    known += known.empty() ? "" : ", ";
    known += machine.isa.name();
    if (!target.architecture || target.architecture != std::string_view(machine.isa.name()))
      continue;
    auto described = device::DeviceDescription::of(target);
    if (!described)
      return described.takeError();
    constexpr double kCoreOperations = 0.128; // 10^12 in a second: 16 lanes, twice, at 2 GHz
    machine.threads = std::max(1u, unsigned(described->peak("f32") / kCoreOperations));
    machine.bytesPerMicro = described->memoryGigabytesPerSecond * 1e3;
    machine.launchMicros = described->launchMicros;
    if (described->l2Bytes)
      machine.l2Bytes = machine.l3Bytes = described->l2Bytes;
    return machine;
  }
  return unavailable("native kernels for {} are made for {}, not '{}'", target.device, known,
                     target.architecture ? target.architecture : "");
}

Expected<Machine> Machine::of(const dvt_target &target) {
  std::string_view device = target.device ? target.device : "";
  std::string_view architecture = target.architecture ? target.architecture : "";
  std::string_view features = target.features ? target.features : "";
  if (device == "cuda" || device == "rocm")
    return deviceMachine(target);
  if (device != "cpu")
    return unavailable("native kernels are made for the devices cpu, cuda and rocm, not '{}'",
                       device);
  Machine machine;
  if (architecture == "x86-64") {
    auto all = [&](std::initializer_list<const char *> names) {
      return std::all_of(names.begin(), names.end(),
                         [&](const char *name) { return hasFeature(features, name); });
    };
    if (!all({"avx2", "fma"}))
      return unavailable("native kernels need avx2 and fma; the target has '{}'", features);
    if (all({"avx512f", "avx512bw", "avx512dq", "avx512vl"}))
      machine.isa = {Isa::Avx512, 16, 32};
    machine.isa.vnni =
        hasFeature(features, machine.isa.level == Isa::Avx512 ? "avx512_vnni" : "avx_vnni");
  } else {
    return unavailable("native kernels are made for x86-64, not '{}'", architecture);
  }
  machine.threads = std::max(1u, target.threads);
  if (target.l1_bytes)
    machine.l1Bytes = target.l1_bytes;
  if (target.l2_bytes)
    machine.l2Bytes = target.l2_bytes;
  if (target.l3_bytes)
    machine.l3Bytes = target.l3_bytes;
  return machine;
}

double Machine::memoryMicros(double bytes) const {
  if (isDevice())
    return bytes / bytesPerMicro;
  double bytesPerMicro = bytes < double(l2Bytes) ? 120e3 : bytes < double(l3Bytes) ? 90e3 : 18e3;
  return bytes / bytesPerMicro;
}

#if defined(__x86_64__)
/// Compilers do not know all names of it.
static bool hostHasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & (1u << 4));
}
#endif

bool hostSupports(Isa::Level level, bool vnni) {
#if defined(__x86_64__)
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (level == Isa::Avx2)
    return avx2 && (!vnni || hostHasAvxVnni());
  return level == Isa::Avx512 && avx2 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && (!vnni || __builtin_cpu_supports("avx512vnni"));
#else
  return level == Isa::Neon && !vnni;
#endif
}

} // namespace dovetail::codegen
