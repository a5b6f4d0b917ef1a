// SPDX-License-Identifier: Apache-2.0
#include "providers/cudnn/Device.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace dovetail::cudnn {
namespace {

using Json = nlohmann::json;

/// Parts of the peaks that kernels of this library reach, from experience on devices of these
/// kinds.
constexpr double kMatrixPart = 0.6, kVectorPart = 0.7, kMemoryPart = 0.8;
constexpr double kStepOfRank = 0.01;

double numberOf(const Json &from, const char *name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_number() ? found->get<double>() : 0;
}

} // namespace

std::optional<Device> Device::read(const char *description, std::string &reason) {
  if (!description || !*description) {
    reason = "the target has no description of the device";
    return std::nullopt;
  }
  const Json json = Json::parse(description, nullptr, false);
  if (!json.is_object()) {
    reason = "the description of the device is no JSON object";
    return std::nullopt;
  }
  const auto properties = json.find("library_properties");
  if (properties == json.end() || !properties->is_object()) {
    reason = "the description of the device has no library_properties, without which cuDNN cannot "
             "plan for it";
    return std::nullopt;
  }
  Device device;
  device.properties = properties->dump();
  device.memoryGigabytesPerSecond = numberOf(json, "memory_gigabytes_per_second");
  device.launchMicros = numberOf(json, "launch_micros");
  if (const auto peaks = json.find("peak_teraops"); peaks != json.end() && peaks->is_object())
    for (const auto &[name, value] : peaks->items())
      if (value.is_number())
        device.peakTeraops[name] = value.get<double>();
  return device;
}

double Device::estimateMicros(const providers::RoughWork &work, const Engine &engine,
                              size_t rank) const {
  std::string unit = engine.numerics.substr(0, engine.numerics.find('-'));
  if (engine.usesMatrixUnits)
    unit += "_matrix";
  const auto peak = peakTeraops.find(unit);
  if (peak == peakTeraops.end() || peak->second <= 0 || memoryGigabytesPerSecond <= 0)
    return -1;
  // Tera per second is mega per microsecond, giga is kilo.
  const double arithmetic =
                   work.operations /
                   (peak->second * 1e6 * (engine.usesMatrixUnits ? kMatrixPart : kVectorPart)),
               traffic = work.bytes / (memoryGigabytesPerSecond * 1e3 * kMemoryPart);
  return launchMicros +
         std::max(arithmetic, traffic) * (1 + kStepOfRank * static_cast<double>(rank));
}

} // namespace dovetail::cudnn
