// SPDX-License-Identifier: Apache-2.0
//
// dovetail doctor: target, providers, library versions and where they were found, what is missing
// and how to get it.
#include <cstdio>

#include "CommandLine.h"
#include "device/DeviceDescription.h"

namespace dovetail::cli {
namespace {

int runDoctor(const CommonOptions &options) {
  auto session = makeSettings(options);
  if (!session)
    return fail(session.error());
  session->log = {}; // what is not loaded is part of the report
  PluginSet plugins = loadPlugins(*session, options.only);
  nlohmann::json report{{"target", session->target.text()},
                        {"cache", session->cacheFolder},
                        {"worker", session->environment.worker},
                        {"plugin_folders", session->environment.pluginFolders},
                        {"providers", nlohmann::json::array()},
                        {"failures", nlohmann::json::array()}};
  auto devices = device::readDescriptions(session->environment.deviceFolders);
  if (!devices)
    return fail(devices.error());
  report["device_targets"] = nlohmann::json::array();
  for (const device::DeviceDescription &known : *devices)
    report["device_targets"].push_back(
        {{"target", known.target().name()}, {"name", known.name}, {"source", known.source}});
  auto text = [](const char *value) { return std::string(value ? value : ""); };
  for (const auto &provider : plugins.providers()) {
    const dvt_provider_info &info = provider->info();
    nlohmann::json libraries = nlohmann::json::array();
    for (uint32_t i = 0; i < info.library_count; ++i)
      libraries.push_back({{"name", text(info.libraries[i].name)},
                           {"version", text(info.libraries[i].version)},
                           {"path", text(info.libraries[i].path)},
                           {"missing", text(info.libraries[i].missing)}});
    report["providers"].push_back(
        {{"name", provider->name()},
         {"version", provider->version()},
         {"can_compile", !provider->functions().compile || info.can_compile != 0},
         {"libraries", libraries}});
  }
  for (const auto &failure : plugins.failures())
    report["failures"].push_back({{"file", failure.file}, {"reason", failure.reason}});
  if (options.json) {
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  std::printf("target     %s\ncache      %s\nworker     %s\n", session->target.text().c_str(),
              session->cacheFolder.empty() ? "none" : session->cacheFolder.c_str(),
              session->environment.worker.c_str());
  for (const auto &folder : session->environment.pluginFolders)
    std::printf("plug-ins   %s\n", folder.c_str());
  for (const auto &known : report["device_targets"])
    std::printf("device     %-13s %s\n", known["target"].get<std::string>().c_str(),
                known["name"].get<std::string>().c_str());
  for (const auto &provider : report["providers"]) {
    std::printf("provider   %-10s %s%s\n", provider["name"].get<std::string>().c_str(),
                provider["version"].get<std::string>().c_str(),
                provider["can_compile"].get<bool>() ? ""
                                                    : "  (runs kernels, cannot compile new ones)");
    for (const auto &library : provider["libraries"]) {
      std::string missing = library["missing"];
      std::printf("             %-10s %s\n", library["name"].get<std::string>().c_str(),
                  missing.empty() ? (library["version"].get<std::string>() + "  " +
                                     library["path"].get<std::string>())
                                        .c_str()
                                  : ("missing: " + missing).c_str());
    }
  }
  for (const auto &failure : report["failures"])
    std::printf("not loaded %s: %s\n", failure["file"].get<std::string>().c_str(),
                failure["reason"].get<std::string>().c_str());
  return 0;
}

} // namespace

void addDoctor(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App *command =
      app.add_subcommand("doctor", "what is here, what is missing and how to get it");
  options->addTo(*command);
  command->callback([options, &exitCode] { exitCode = runDoctor(*options); });
}

} // namespace dovetail::cli
