// SPDX-License-Identifier: Apache-2.0
//
// What all commands share: options, messages, exit codes. Results go to standard output, everything
// else to standard error. Exit codes: 0 done, 2 bad input, 3 cannot run here, 4 a bug of ours.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "driver/Environment.h"
#include "plan/Planner.h"
#include "support/Expected.h"
#include "support/Log.h"

namespace dovetail::cli {

struct CommonOptions {
  unsigned threads = 0; ///< 0: all cores this process may use
  std::vector<std::string> only, plugins;
  std::string prefer = "cost", select = "measure", cache, memory;
  std::string target, device;          ///< to compile for: its name, the file that describes it
  std::vector<std::string> kernels;    ///< manifests of users' own
  std::set<std::string> planningGiven; ///< those of --select, --budget, --cache, --state,
                                       ///< --memory and --runs-per-load given
  bool noCache = false;
  std::vector<std::string> force, dims, typical, states;
  double budget = 120;
  uint64_t runsPerLoad = uint64_t(PreparationPrice::kUsualRuns);
  bool deterministic = false, json = false, verbose = false;

  void addTo(CLI::App &app);
  void addTargetTo(CLI::App &app);
  void addCacheTo(CLI::App &app);
  /// What decides which problems a model poses.
  void addSizesTo(CLI::App &app);
  void addPlanningTo(CLI::App &app);

private:
  std::function<void(const std::string &)> note(const char *option);
};

/// Checks of options' values, with messages that say what would do.
std::function<std::string(const std::string &)> wholeNumber(uint64_t least, uint64_t most);
std::function<std::string(const std::string &)> seconds();
std::function<std::string(const std::string &)> oneOf(std::vector<std::string> words);

/// What the parser would misread: an unknown command, an option without its value. BadInput says
/// what there is instead.
Status checkArguments(const CLI::App &app, const std::vector<std::string> &arguments);

/// Everything a command needs to plan or measure, made from the options and the environment.
struct Settings {
  Environment environment;
  Target target;                ///< this processor
  std::optional<Target> device; ///< that --target names
  /// What kernels of single problems are for.
  const Target &kernelTarget() const { return device ? *device : target; }
  plan::PlannerOptions planner;
  std::string cacheFolder;
  plan::Prefer prefer = plan::Prefer::Cost;
  SymbolValues dims;
  Log log;
};

Expected<Settings> makeSettings(const CommonOptions &options);
/// As the driver's function of that name (driver/Environment.h).
PluginSet loadPlugins(const Settings &session, const std::vector<std::string> &only,
                      bool runsOnly = false);

/// Prints the message and returns the exit code for it.
int fail(const Error &error);

/// "12.3 us", "4.56 ms", "1.2 s"
std::string duration(double micros);

/// Parses, and runs what the callbacks of `app` do; returns the exit code.
int runCommandLine(CLI::App &app, int argc, char **argv, const int &exitCode);

/// Adds the subcommands; each sets `exitCode` when run.
void addProblem(CLI::App &app, int &exitCode);
void addCheck(CLI::App &app, int &exitCode);
void addDoctor(CLI::App &app, int &exitCode);
void addModelCommands(CLI::App &app, int &exitCode);
void addTuning(CLI::App &app, int &exitCode);
void addTuneRun(CLI::App &app, int &exitCode);

} // namespace dovetail::cli
