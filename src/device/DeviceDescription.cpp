// SPDX-License-Identifier: Apache-2.0
//
// Descriptions between JSON and the struct. One table names the fields, so that reading and writing
// cannot drift apart.
#include "device/DeviceDescription.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <variant>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "support/File.h"

namespace dovetail::device {
namespace {

using nlohmann::json;

using Member = std::variant<std::string DeviceDescription::*, uint32_t DeviceDescription::*,
                            uint64_t DeviceDescription::*, double DeviceDescription::*>;

struct Field {
  const char *name;
  Member member;
  double least, most; ///< of numbers
};

const Field kFields[] = {
    {"name", &DeviceDescription::name, 0, 0},
    {"api", &DeviceDescription::api, 0, 0},
    {"architecture", &DeviceDescription::architecture, 0, 0},
    {"source", &DeviceDescription::source, 0, 0},
    {"compute_units", &DeviceDescription::computeUnits, 1, 1 << 16},
    {"warp_size", &DeviceDescription::warpSize, 1, 128},
    {"clock_megahertz", &DeviceDescription::clockMegahertz, 1, 1e5},
    {"memory_gigabytes_per_second", &DeviceDescription::memoryGigabytesPerSecond, 1e-3, 1e6},
    {"memory_bytes", &DeviceDescription::memoryBytes, 1 << 20, 1e15},
    {"l2_bytes", &DeviceDescription::l2Bytes, 0, 1e12},
    {"shared_bytes_per_block", &DeviceDescription::sharedBytesPerBlock, 1024, 1 << 30},
    {"shared_bytes_per_unit", &DeviceDescription::sharedBytesPerUnit, 1024, 1 << 30},
    {"registers_per_unit", &DeviceDescription::registersPerUnit, 1024, 1 << 30},
    {"registers_per_thread", &DeviceDescription::registersPerThread, 16, 1 << 16},
    {"threads_per_block", &DeviceDescription::threadsPerBlock, 1, 1 << 16},
    {"threads_per_unit", &DeviceDescription::threadsPerUnit, 1, 1 << 20},
    {"blocks_per_unit", &DeviceDescription::blocksPerUnit, 1, 1 << 16},
    {"link_gigabytes_per_second", &DeviceDescription::linkGigabytesPerSecond, 1e-3, 1e5},
    {"transfer_micros", &DeviceDescription::transferMicros, 0, 1e6},
    {"launch_micros", &DeviceDescription::launchMicros, 0, 1e6},
};
constexpr const char *kPeaks = "peak_teraops", *kLibraryProperties = "library_properties";

/// One plain word: it becomes a part of target texts.
bool isWord(const std::string &text) {
  return !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Status readField(const json &from, const Field &field, DeviceDescription &to,
                 const std::string &origin) {
  auto found = from.find(field.name);
  if (found == from.end())
    return badInput("{}: the device description lacks '{}'", origin, field.name);
  if (auto text = std::get_if<std::string DeviceDescription::*>(&field.member)) {
    if (!found->is_string())
      return badInput("{}: '{}' is {}; it is a text", origin, field.name, found->dump());
    to.**text = found->get<std::string>();
    return Status::success();
  }
  double number = found->is_number() ? found->get<double>() : -1;
  if (!found->is_number() || !(number >= field.least && number <= field.most))
    return badInput("{}: '{}' is {}; it is a number from {} to {}", origin, field.name,
                    found->dump(), field.least, field.most);
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(to.*member)>;
        if constexpr (!std::is_same_v<Value, std::string>)
          to.*member = static_cast<Value>(number);
      },
      field.member);
  return Status::success();
}

Status readPeaks(const json &from, DeviceDescription &to, const std::string &origin) {
  auto peaks = from.find(kPeaks);
  if (peaks == from.end() || !peaks->is_object() || !peaks->contains("f32"))
    return badInput("{}: '{}' must be an object with at least 'f32'", origin, kPeaks);
  for (const auto &[kind, number] : peaks->items()) {
    double value = number.is_number() ? number.get<double>() : 0;
    if (!(value > 0 && value < 1e9))
      return badInput("{}: '{}' of '{}' is {}; it is a positive number of 10^12 operations per "
                      "second",
                      origin, kPeaks, kind, number.dump());
    to.peakTeraops[kind] = value;
  }
  return Status::success();
}

} // namespace

Expected<DeviceDescription> DeviceDescription::parse(std::string_view text,
                                                     const std::string &origin) {
  json from = json::parse(text, nullptr, false);
  if (!from.is_object())
    return badInput("{}: is not a JSON object that describes a device", origin);
  DeviceDescription to;
  for (const Field &field : kFields)
    if (Status status = readField(from, field, to, origin); !status)
      return status.takeError();
  if (Status status = readPeaks(from, to, origin); !status)
    return status.takeError();
  if (auto properties = from.find(kLibraryProperties); properties != from.end()) {
    if (!properties->is_object())
      return badInput("{}: '{}' is {}; it is an object", origin, kLibraryProperties,
                      properties->dump());
    to.libraryProperties = properties->dump();
  }
  for (const auto &[name, value] : from.items())
    if (name != kPeaks && name != kLibraryProperties &&
        std::none_of(std::begin(kFields), std::end(kFields),
                     [&key = name](const Field &field) { return key == field.name; }))
      return badInput("{}: '{}' is no field of a device description", origin, name);
  if (to.api != "cuda" && to.api != "rocm")
    return badInput("{}: 'api' is '{}'; cuda and rocm are known", origin, to.api);
  if (!isWord(to.architecture))
    return badInput("{}: 'architecture' is '{}'; it is a word such as sm_90", origin,
                    to.architecture);
  return to;
}

Expected<DeviceDescription> DeviceDescription::read(const std::string &path) {
  constexpr uint64_t kMostBytes = 1 << 20;
  auto text = readFile(path, kMostBytes);
  if (!text)
    return text.takeError();
  return parse(*text, path);
}

Expected<DeviceDescription> DeviceDescription::of(const Target &target) {
  return parse(target.description, "the target " + target.name());
}

Expected<DeviceDescription> DeviceDescription::of(const dvt_target &target) {
  return parse(target.description ? target.description : "",
               fmt::format("the target {}:{}", target.device ? target.device : "",
                           target.architecture ? target.architecture : ""));
}

std::string DeviceDescription::text() const {
  json to;
  for (const Field &field : kFields)
    std::visit([&](auto member) { to[field.name] = this->*member; }, field.member);
  to[kPeaks] = peakTeraops;
  if (!libraryProperties.empty())
    to[kLibraryProperties] = json::parse(libraryProperties, nullptr, false);
  return to.dump(-1, ' ', false, json::error_handler_t::replace);
}

Target DeviceDescription::target() const {
  Target target;
  target.device = api;
  target.architecture = architecture;
  target.l2Bytes = l2Bytes;
  target.description = text();
  return target;
}

double DeviceDescription::peak(std::string_view kind) const {
  auto found = peakTeraops.find(std::string(kind));
  return found == peakTeraops.end() ? 0 : found->second;
}

Expected<std::vector<DeviceDescription>> readDescriptions(const std::vector<std::string> &folders) {
  namespace fs = std::filesystem;
  std::vector<DeviceDescription> all;
  for (const std::string &folder : folders) {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (it->path().extension() == ".json")
        files.push_back(it->path().string());
    std::sort(files.begin(), files.end());
    for (const std::string &file : files) {
      auto description = DeviceDescription::read(file);
      if (!description)
        return description.takeError();
      bool isKnown = std::any_of(all.begin(), all.end(), [&](const DeviceDescription &known) {
        return known.api == description->api && known.architecture == description->architecture;
      });
      if (!isKnown)
        all.push_back(std::move(*description));
    }
  }
  return all;
}

Expected<DeviceDescription> findDescription(std::string_view target,
                                            const std::vector<std::string> &folders) {
  auto all = readDescriptions(folders);
  if (!all)
    return all.takeError();
  std::vector<std::string> names{"cpu"};
  for (DeviceDescription &description : *all) {
    names.push_back(description.api + ":" + description.architecture);
    if (names.back() == target)
      return std::move(description);
  }
  return badInput("--target={}: there is no description of such a device; known are {}; --device "
                  "names a file that describes another one",
                  target, fmt::join(names, ", "));
}

} // namespace dovetail::device
