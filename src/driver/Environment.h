// SPDX-License-Identifier: Apache-2.0
//
// What the surroundings of a run decide: where plug-ins, vendor libraries and the cache are, and
// which plug-ins can be loaded. The only place that reads environment variables: DOVETAIL_PLUGINS,
// DOVETAIL_VENDOR_PATH and DOVETAIL_DEVICES (folders separated by ':', searched before the built-in
// ones), DOVETAIL_DRIVERS (drivers of devices in place of the system's, "cuda=PATH:rocm=PATH"),
// DOVETAIL_CACHE, XDG_CACHE_HOME and HOME.
#pragma once

#include <string>
#include <vector>

#include "support/Log.h"
#include "support/Plugin.h"

namespace dovetail {

struct Environment {
  std::vector<std::string> pluginFolders;
  std::string vendorPath;
  std::vector<std::string> deviceFolders; ///< of device descriptions
  std::string deviceDrivers;              ///< as dvt_host.device_drivers
  std::string cacheFolder;                ///< empty: none can be had
  std::string worker;                     ///< executable that measures
  static Environment detect();
};

/// `only` empty: all. Who compiles loads all: the reference folds constants whatever may be chosen
/// from. `runsOnly`: for a plan that is made, see dvt_host. What cannot be loaded is logged.
PluginSet loadPlugins(const Environment &environment, const Log &log,
                      const std::vector<std::string> &only = {}, bool runsOnly = false);

} // namespace dovetail
