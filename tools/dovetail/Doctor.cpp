// SPDX-License-Identifier: Apache-2.0
//
// dovetail doctor: target, providers, library versions and where they were found, what is missing
// and how to get it.
#include <cstdio>

#include "CommandLine.h"
#include "device/DeviceDriver.h"
#include "toolchain/Tools.h"

namespace dovetail::cli {
namespace {

using device::DeviceDriver;

/// Drivers of all kinds: version, file and devices, or why there is none.
nlohmann::json driversHere(const Environment &environment) {
  nlohmann::json drivers = nlohmann::json::array();
  for (const char *api : {"cuda", "rocm"}) {
    nlohmann::json &entry = drivers.emplace_back(nlohmann::json{{"api", api}});
    auto driver = DeviceDriver::open(api, DeviceDriver::pathFor(environment.deviceDrivers, api));
    if (!driver) {
      entry["missing"] = driver.error().message;
      continue;
    }
    entry["version"] = (*driver)->version();
    entry["path"] = (*driver)->path();
    entry["simulated"] = (*driver)->isSimulated();
    entry["devices"] = nlohmann::json::array();
    auto count = (*driver)->count();
    for (uint32_t number = 0; count && number < *count; ++number)
      if (auto architecture = (*driver)->architecture(number))
        entry["devices"].push_back(std::string(api) + ":" + *architecture);
  }
  return drivers;
}

/// Vendors' compilers and assemblers.
nlohmann::json toolsHere(const Environment &environment) {
  nlohmann::json tools = nlohmann::json::array();
  for (const toolchain::Tool &tool : toolchain::Tools(environment.vendorPath).all())
    tools.push_back({{"name", tool.name},
                     {"version", tool.version},
                     {"path", tool.path},
                     {"missing", tool.missing}});
  return tools;
}

void printTools(const nlohmann::json &tools) {
  for (const auto &tool : tools) {
    const std::string missing = tool["missing"], found = tool["version"].get<std::string>() + "  " +
                                                         tool["path"].get<std::string>();
    std::printf("tool       %-13s %s\n", tool["name"].get<std::string>().c_str(),
                missing.empty() ? found.c_str() : ("missing: " + missing).c_str());
  }
}

/// The description of device 0 of a driver, as --device takes it.
int printDescription(const CommonOptions &options, const std::string &api) {
  auto session = makeSettings(options);
  if (!session)
    return fail(session.error());
  auto driver =
      DeviceDriver::open(api, DeviceDriver::pathFor(session->environment.deviceDrivers, api));
  if (!driver)
    return fail(driver.error());
  auto architecture = (*driver)->architecture(0);
  if (!architecture)
    return fail(architecture.error());
  auto like =
      device::findDescription(api + ":" + *architecture, session->environment.deviceFolders);
  if (!like)
    return fail(like.error());
  auto description = (*driver)->describe(0, *like);
  if (!description)
    return fail(description.error());
  std::printf("%s\n", nlohmann::json::parse(description->text()).dump(2).c_str());
  return 0;
}

void printDrivers(const nlohmann::json &drivers) {
  for (const auto &driver : drivers) {
    std::string api = driver["api"];
    if (driver.contains("missing")) {
      std::printf("driver     %-13s %s\n", api.c_str(),
                  driver["missing"].get<std::string>().c_str());
      continue;
    }
    std::string devices;
    for (const auto &name : driver["devices"])
      devices += " " + name.get<std::string>();
    std::printf("driver     %-13s %s  %s%s, devices:%s\n", api.c_str(),
                driver["version"].get<std::string>().c_str(),
                driver["path"].get<std::string>().c_str(),
                driver["simulated"].get<bool>() ? " (simulated)" : "",
                devices.empty() ? " none" : devices.c_str());
  }
}

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
  report["drivers"] = driversHere(session->environment);
  report["tools"] = toolsHere(session->environment);
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
  printDrivers(report["drivers"]);
  printTools(report["tools"]);
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
  auto api = std::make_shared<std::string>();
  command
      ->add_option("--device", *api,
                   "cuda or rocm: print the description of the device here, as --device FILE of "
                   "other commands takes it")
      ->check(oneOf({"cuda", "rocm"}));
  command->callback([options, api, &exitCode] {
    exitCode = api->empty() ? runDoctor(*options) : printDescription(*options, *api);
  });
}

} // namespace dovetail::cli
