// SPDX-License-Identifier: Apache-2.0
//
// Options to settings, errors to exit codes.
#include "CommandLine.h"

#include <charconv>
#include <cstdio>

#include <unistd.h>

namespace dovetail::cli {

void CommonOptions::addTo(CLI::App &app) {
  app.add_option("--threads", threads,
                 "threads to run with (default: all cores this process may use)")
      ->check(CLI::Range(1u, 1024u));
  app.add_option("--only", only, "use these providers only, separated by commas")->delimiter(',');
  app.add_option("--plugins", plugins, "folders with further provider plug-ins")->delimiter(',');
  app.add_flag("--json", json, "print one JSON object");
  app.add_flag("-v,--verbose", verbose, "say more on standard error");
}

void CommonOptions::addPlanningTo(CLI::App &app) {
  app.add_option("--prefer", prefer,
                 "cost: the cheapest plan; library or native: that side wherever it can")
      ->check(CLI::IsMember({"cost", "library", "native"}));
  app.add_option("--select", select,
                 "measure: time the candidates; estimate: trust estimates; replay: only what the "
                 "cache holds")
      ->check(CLI::IsMember({"measure", "estimate", "replay"}));
  app.add_option("--force", force,
                 "NODE=PROVIDER:ALGORITHM: take this kernel for that node (may be repeated)");
  app.add_option("--budget", budget, "seconds that measuring may take")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--cache", cache, "folder of the plan cache")->each([this](const std::string &) {
    cacheGiven = true;
  });
  app.add_flag("--no-cache", noCache, "neither read nor write the plan cache");
  app.add_option("--dim", dims, "NAME=N: value of a symbolic dimension (may be repeated)");
  app.add_flag("--deterministic", deterministic, "only kernels that give the same bits everywhere");
}

namespace {

Expected<std::pair<std::string, std::string>> splitPair(const std::string &text, const char *option,
                                                        const char *form) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return badInput("{} '{}': expected {}", option, text, form);
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

void logToStandardError(void *, int level, const char *message) {
  constexpr const char *kNames[] = {"debug", "note", "warning", "error"};
  std::fprintf(stderr, "dovetail: %s: %s\n", kNames[level < 0 || level > 3 ? 3 : level], message);
}

} // namespace

Expected<Settings> makeSettings(const CommonOptions &options) {
  Settings session;
  session.environment = Environment::detect();
  session.environment.pluginFolders.insert(session.environment.pluginFolders.begin(),
                                           options.plugins.begin(), options.plugins.end());
  session.log.callback = logToStandardError;
  session.log.lowest = options.verbose ? LogLevel::Debug : LogLevel::Warning;
  session.target = Target::host(options.threads);
  session.cacheFolder = options.noCache      ? ""
                        : options.cacheGiven ? options.cache
                                             : session.environment.cacheFolder;
  session.prefer = options.prefer == "library"  ? plan::Prefer::Library
                   : options.prefer == "native" ? plan::Prefer::Native
                                                : plan::Prefer::Cost;
  plan::PlannerOptions &planner = session.planner;
  planner.select = options.select == "measure"    ? plan::Select::Measure
                   : options.select == "estimate" ? plan::Select::Estimate
                                                  : plan::Select::Replay;
  planner.only = options.only;
  planner.budgetSeconds = options.budget;
  planner.deterministic = options.deterministic;
  planner.log = session.log;
  planner.worker.executable = session.environment.worker;
  planner.worker.plugins = session.environment.pluginFolders;
  planner.worker.vendorPath = session.environment.vendorPath;
  planner.worker.only = options.only;
  for (const std::string &text : options.force) {
    auto pair = splitPair(text, "--force", "NODE=PROVIDER:ALGORITHM");
    if (!pair)
      return pair.takeError();
    if (pair->second.find(':') == std::string::npos)
      return badInput(
          "--force '{}': expected NODE=PROVIDER:ALGORITHM; 'explain' lists the algorithms on offer",
          text);
    planner.force.push_back({pair->first, pair->second});
  }
  for (const std::string &text : options.dims) {
    auto pair = splitPair(text, "--dim", "NAME=N");
    if (!pair)
      return pair.takeError();
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(pair->second.data(), pair->second.data() + pair->second.size(), value);
    if (error != std::errc() || *end != '\0' || value < 0)
      return badInput("--dim '{}': '{}' is not a whole number of at least 0", text, pair->second);
    session.dims[pair->first] = value;
  }
  return session;
}

PluginSet loadPlugins(const Settings &session, const std::vector<std::string> &only) {
  PluginSet::Options options;
  options.folders = session.environment.pluginFolders;
  options.vendorPath = session.environment.vendorPath;
  options.only = only;
  return PluginSet::load(options);
}

int fail(const Error &error) {
  std::fprintf(stderr, "dovetail: error: %s\n", error.message.c_str());
  switch (error.kind) {
  case ErrorKind::BadInput:
    return 2;
  case ErrorKind::Unavailable:
  case ErrorKind::Cancelled:
    return 3;
  case ErrorKind::Internal:
    break;
  }
  std::fprintf(stderr, "dovetail: this is a bug of Dovetail's, not of your model's\n");
  return 4;
}

std::string duration(double micros) {
  if (micros < 0)
    return "-";
  if (micros < 1000)
    return fmt::format("{:.{}f} us", micros, micros < 10 ? 2 : micros < 100 ? 1 : 0);
  if (micros < 1e6)
    return fmt::format("{:.{}f} ms", micros / 1e3, micros < 1e4 ? 2 : micros < 1e5 ? 1 : 0);
  return fmt::format("{:.1f} s", micros / 1e6);
}

Progress::Progress() : terminal(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown)
    std::fprintf(stderr, "\r\033[K");
}

void Progress::show(size_t done, size_t total, const std::string &what) {
  if (!terminal)
    return;
  shown = true;
  std::fprintf(stderr, "\r\033[Kmeasuring %zu of %zu: %s", done, total, what.substr(0, 60).c_str());
  std::fflush(stderr);
}

} // namespace dovetail::cli
