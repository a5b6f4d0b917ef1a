// SPDX-License-Identifier: Apache-2.0
#include "providers/cudnn/Device.h"

#include <nlohmann/json.hpp>

namespace dovetail::cudnn {
namespace {

constexpr double kStepOfRank = 0.01;

} // namespace

std::optional<Device> Device::read(const char *description, std::string &reason) {
  std::optional<providers::DevicePeaks> peaks = providers::DevicePeaks::read(description, reason);
  if (!peaks)
    return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(description, nullptr, false);
  const auto properties = json.find("library_properties");
  if (properties == json.end() || !properties->is_object()) {
    reason = "the description of the device has no library_properties, without which cuDNN cannot "
             "plan for it";
    return std::nullopt;
  }
  return Device{properties->dump(), std::move(*peaks)};
}

double Device::estimateMicros(const providers::RoughWork &work, const Engine &engine,
                              size_t rank) const {
  std::string unit = engine.numerics.substr(0, engine.numerics.find('-'));
  if (engine.usesMatrixUnits)
    unit += "_matrix";
  const double busy = peaks.busyMicros(work, unit);
  return busy < 0 ? -1 : peaks.launchMicros + busy * (1 + kStepOfRank * static_cast<double>(rank));
}

} // namespace dovetail::cudnn
