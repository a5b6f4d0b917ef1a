// SPDX-License-Identifier: Apache-2.0
//
// What the door's functions of all providers for devices begin with. Header-only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "providers/ProblemReader.h"

namespace dovetail::providers {

/// The drivers that the host names in place of the system's, as dvt_host has them; may be empty.
inline std::string hostDrivers(const dvt_host *host) {
  constexpr size_t needed = offsetof(dvt_host, device_drivers) + sizeof(dvt_host::device_drivers);
  return host && host->struct_size >= needed && host->device_drivers ? host->device_drivers : "";
}

/// Of these drivers the file for devices of this kind ("cuda", "rocm"); empty where there is none.
inline std::string driverFile(std::string_view drivers, const std::string &kind) {
  const std::string mark = kind + "=";
  while (!drivers.empty()) {
    const std::string_view entry = drivers.substr(0, drivers.find(':'));
    drivers.remove_prefix(std::min(entry.size() + 1, drivers.size()));
    if (entry.starts_with(mark))
      return std::string(entry.substr(mark.size()));
  }
  return {};
}

/// Whether a problem is one for devices of this kind ("rocm" in targets, `maker` in messages, which
/// begin with `prefix`), and whether both structs can be read.
inline dvt_code checkDeviceCall(const dvt_target *target, const dvt_problem *problem,
                                const std::string &kind, const std::string &maker,
                                const std::string &prefix, dvt_error *error) {
  constexpr size_t needed = offsetof(dvt_target, description) + sizeof(target->description);
  const std::string device = target && target->device ? target->device : "cpu";
  if (device != kind)
    return fail(error, DVT_UNSUPPORTED, prefix + "serves devices of " + maker + ", not " + device);
  if (target->struct_size < needed)
    return fail(error, DVT_BAD_INPUT, prefix + "the target is too short");
  if (std::optional<std::string> wrong = ProblemReader::check(problem))
    return fail(error, DVT_BAD_INPUT, prefix + *wrong);
  return DVT_OK;
}

/// As a candidate has them; they live as long as `texts`.
inline std::vector<const char *> pointersTo(const std::vector<std::string> &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(text.c_str());
  return pointers;
}

/// Whether a candidate's layouts are these; without any they are row-major.
inline bool areLayouts(const char *const *given, const std::vector<std::string> &layouts) {
  for (size_t i = 0; i < layouts.size(); ++i)
    if (layouts[i] != (given && given[i] ? given[i] : ""))
      return false;
  return true;
}

} // namespace dovetail::providers
