// SPDX-License-Identifier: Apache-2.0
//
// Reads the environment once, at the start of a command.
#include "driver/Environment.h"

#include <cstdlib>
#include <filesystem>

namespace dovetail {
namespace {

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

void appendFolders(std::vector<std::string> &folders, const std::string &list) {
  for (size_t from = 0; from <= list.size();) {
    size_t colon = std::min(list.find(':', from), list.size());
    // An empty entry would mean the current folder, from which nothing is ever loaded.
    if (colon > from)
      folders.push_back(list.substr(from, colon - from));
    from = colon + 1;
  }
}

} // namespace

Environment Environment::detect() {
  Environment environment;
  appendFolders(environment.pluginFolders, variable("DOVETAIL_PLUGINS"));
  environment.pluginFolders.push_back(defaultPluginFolder());
  environment.vendorPath = variable("DOVETAIL_VENDOR_PATH");
  if (!environment.vendorPath.empty())
    environment.vendorPath += ':';
  environment.vendorPath += DOVETAIL_VENDOR_DIRS;
  appendFolders(environment.deviceFolders, variable("DOVETAIL_DEVICES"));
  environment.deviceFolders.push_back(defaultPluginFolder() + "/devices");
  environment.deviceDrivers = variable("DOVETAIL_DRIVERS");
  environment.cacheFolder = variable("DOVETAIL_CACHE");
  if (environment.cacheFolder.empty()) {
    std::string base = variable("XDG_CACHE_HOME");
    if (base.empty() && !variable("HOME").empty())
      base = variable("HOME") + "/.cache";
    if (!base.empty())
      environment.cacheFolder = base + "/dovetail";
  }
  // …/lib/dovetail -> …/bin/dovetail-worker
  std::filesystem::path plugins = defaultPluginFolder();
  environment.worker = (plugins.parent_path().parent_path() / "bin" / "dovetail-worker").string();
  return environment;
}

PluginSet loadPlugins(const Environment &environment, const Log &log,
                      const std::vector<std::string> &only, bool runsOnly) {
  PluginSet::Options options;
  options.runsOnly = runsOnly;
  options.folders = environment.pluginFolders;
  options.vendorPath = environment.vendorPath;
  options.deviceDrivers = environment.deviceDrivers;
  options.only = only;
  PluginSet plugins = PluginSet::load(options);
  for (const PluginSet::Failure &failure : plugins.failures())
    log(failure.expected ? LogLevel::Info : LogLevel::Warning, "the plug-in {} is not used: {}",
        failure.file, failure.reason);
  return plugins;
}

} // namespace dovetail
