// SPDX-License-Identifier: Apache-2.0
#include "providers/DevicePeaks.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace dovetail::providers {
namespace {

using Json = nlohmann::json;

/// Parts of the peaks that kernels of libraries reach, from experience on devices of these kinds.
constexpr double kMatrixPart = 0.6, kVectorPart = 0.7, kMemoryPart = 0.8;

double numberOf(const Json &from, const char *name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_number() ? found->get<double>() : 0;
}

} // namespace

std::optional<DevicePeaks> DevicePeaks::read(const char *description, std::string &reason) {
  if (!description || !*description) {
    reason = "the target has no description of the device";
    return std::nullopt;
  }
  const Json json = Json::parse(description, nullptr, false);
  if (!json.is_object()) {
    reason = "the description of the device is no JSON object";
    return std::nullopt;
  }
  DevicePeaks peaks;
  peaks.memoryGigabytesPerSecond = numberOf(json, "memory_gigabytes_per_second");
  peaks.launchMicros = numberOf(json, "launch_micros");
  if (const auto stated = json.find("peak_teraops"); stated != json.end() && stated->is_object())
    for (const auto &[name, value] : stated->items())
      if (value.is_number())
        peaks.teraops[name] = value.get<double>();
  return peaks;
}

double DevicePeaks::busyMicros(const RoughWork &work, const std::string &unit) const {
  const auto peak = teraops.find(unit);
  if (peak == teraops.end() || peak->second <= 0 || memoryGigabytesPerSecond <= 0)
    return -1;
  // Tera per second is mega per microsecond, giga is kilo.
  const double part = unit.ends_with("_matrix") ? kMatrixPart : kVectorPart;
  return std::max(work.operations / (peak->second * 1e6 * part),
                  work.bytes / (memoryGigabytesPerSecond * 1e3 * kMemoryPart));
}

} // namespace dovetail::providers
