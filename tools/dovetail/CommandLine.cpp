// SPDX-License-Identifier: Apache-2.0
//
// Options to settings, errors to exit codes.
#include "CommandLine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>

#include <fmt/ranges.h>

#include "Progress.h"
#include "device/DeviceDescription.h"
#include "driver/UserKernels.h"

namespace dovetail::cli {

namespace {

constexpr int64_t kLargestDimension = int64_t(1) << 40;

/// The whole text as a number; nothing where it is none.
template <typename Number> std::optional<Number> parseNumber(const std::string &text) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

} // namespace

std::function<std::string(const std::string &)> wholeNumber(uint64_t least, uint64_t most) {
  return [least, most](const std::string &text) -> std::string {
    auto value = parseNumber<uint64_t>(text);
    if (value && *value >= least && *value <= most)
      return {};
    return fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
  };
}

std::function<std::string(const std::string &)> seconds() {
  return [](const std::string &text) -> std::string {
    auto value = parseNumber<double>(text);
    if (value && std::isfinite(*value) && *value >= 0)
      return {};
    return fmt::format("'{}' is not a number of seconds of at least 0", text);
  };
}

std::function<std::string(const std::string &)> oneOf(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string &text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end())
      return {};
    return fmt::format("'{}' is none of {}", text, fmt::join(words, ", "));
  };
}

Status checkArguments(const CLI::App &app, const std::vector<std::string> &arguments) {
  const CLI::App *command = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument == "--")
      break;
    bool isOption = argument.size() > 1 && argument[0] == '-';
    if (!command && !isOption) {
      std::vector<std::string> names;
      for (const CLI::App *known : app.get_subcommands([](const CLI::App *) { return true; })) {
        names.push_back(known->get_name());
        if (known->get_name() == argument)
          command = known;
      }
      if (!command)
        return badInput("there is no command '{}'; the commands are {}", argument,
                        fmt::join(names, ", "));
      continue;
    }
    if (!command || !isOption)
      continue;
    size_t equals = argument.find('=');
    const CLI::Option *option = command->get_option_no_throw(argument.substr(0, equals));
    if (!option || option->get_items_expected_min() == 0)
      continue;
    bool isMissing = equals == std::string::npos
                         ? i + 1 == arguments.size() || arguments[i + 1].starts_with("--")
                         : equals + 1 == argument.size();
    if (isMissing)
      return badInput("{} needs a value: {}", argument.substr(0, equals),
                      option->get_description());
    i += equals == std::string::npos;
  }
  return Status::success();
}

void CommonOptions::addTo(CLI::App &app) {
  app.add_option("--threads", threads,
                 "threads to run with (default: all cores this process may use)")
      ->check(wholeNumber(1, 1024));
  app.add_option("--only", only, "use these providers only, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--plugins", plugins, "folders with further provider plug-ins")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--json", json, "print one JSON object");
  app.add_flag("-v,--verbose", verbose, "say more on standard error");
}

void CommonOptions::addTargetTo(CLI::App &app) {
  app.add_option("--target", target,
                 "what to compile for: cpu (default), or a device such as cuda:sm_90 or "
                 "rocm:gfx942, which need not be here; 'doctor' lists them");
  app.add_option("--device", device,
                 "FILE: the description of the device, in place of the one that comes with "
                 "Dovetail");
  app.add_option(
         "--kernel", kernels,
         "FILE.json: a kernel of your own for the device, in CUDA or HIP C++, that competes "
         "with the others (may be repeated; docs/users-kernels.md)")
      ->allow_extra_args(false);
}

std::function<void(const std::string &)> CommonOptions::note(const char *option) {
  return [this, option](const std::string &) { planningGiven.insert(option); };
}

void CommonOptions::addCacheTo(CLI::App &app) {
  app.add_option("--cache", cache, "folder of the plan cache")->each(note("--cache"));
}

void CommonOptions::addSizesTo(CLI::App &app) {
  app.add_option("--dim", dims, "NAME=N: value of a symbolic dimension (may be repeated)")
      ->allow_extra_args(false);
  app.add_option("--typical", typical,
                 "NAME=N: usual value of a dimension that stays open; kernels are timed at it (may "
                 "be repeated; default: chosen, 'explain' shows them)")
      ->allow_extra_args(false)
      ->each(note("--typical"));
  app.add_option("--state", states,
                 "IN=OUT: this output becomes that input in the next run (may be repeated); auto: "
                 "past_* and present_*. A cache that is appended to grows in place")
      ->allow_extra_args(false)
      ->each(note("--state"));
}

void CommonOptions::addPlanningTo(CLI::App &app) {
  addTargetTo(app);
  app.add_option("--prefer", prefer,
                 "cost: the cheapest plan; library or native: that side wherever it can")
      ->check(oneOf({"cost", "library", "native"}));
  app.add_option("--select", select,
                 "measure: time the candidates; estimate: trust estimates; replay: only what the "
                 "cache holds")
      ->check(oneOf({"measure", "estimate", "replay"}))
      ->each(note("--select"));
  app.add_option("--force", force,
                 "NODE=PROVIDER:ALGORITHM: take this kernel for that node (may be repeated)")
      ->allow_extra_args(false);
  app.add_option("--budget", budget, "seconds that measuring may take")
      ->check(seconds())
      ->each(note("--budget"));
  addCacheTo(app);
  app.add_flag("--no-cache", noCache, "neither read nor write the plan cache");
  addSizesTo(app);
  app.add_option("--memory", memory,
                 fmt::format("SIZE, such as 200MiB: private memory that the plan may take "
                             "(default: {} times weights, f16 and bf16 ones as large as f32, and "
                             "intermediate results, less {}KiB for the runtime, but at least "
                             "{}KiB); none: any",
                             plan::MemoryBound::kShare, plan::MemoryBound::kOwnBytes >> 10,
                             plan::MemoryBound::kLeastShare >> 10))
      ->each(note("--memory"));
  app.add_option(
         "--runs-per-load", runsPerLoad,
         "N: inferences that a program makes for each time it loads the model; kernels that "
         "load slowly are charged accordingly (default: 200)")
      ->check(wholeNumber(1, 1000000000))
      ->each(note("--runs-per-load"));
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

/// NODE=PROVIDER:ALGORITHM: either end may have '=' inside, as settings of a library's engine do,
/// which are numbers. A provider begins with a letter.
Expected<std::pair<std::string, std::string>> splitForce(const std::string &text) {
  for (size_t equals = text.rfind('='); equals != std::string::npos && equals > 0;
       equals = text.rfind('=', equals - 1)) {
    const size_t colon = text.find(':', equals);
    if (colon != std::string::npos && colon + 1 < text.size() &&
        std::isalpha(static_cast<unsigned char>(text[equals + 1])))
      return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
  }
  return badInput(
      "--force '{}': expected NODE=PROVIDER:ALGORITHM; 'explain' lists the algorithms on offer",
      text);
}

/// NAME=N texts of an option into values by name.
Status readSizes(const std::vector<std::string> &texts, const char *option, SymbolValues &values) {
  for (const std::string &text : texts) {
    auto pair = splitPair(text, option, "NAME=N");
    if (!pair)
      return pair.takeError();
    auto value = parseNumber<int64_t>(pair->second);
    if (!value || *value < 0 || *value > kLargestDimension)
      return badInput("{} '{}': '{}' is not a whole number from 0 to {}", option, text,
                      pair->second, kLargestDimension);
    auto [known, isNew] = values.emplace(pair->first, *value);
    if (!isNew && known->second != *value)
      return badInput("{} gives '{}' the two values {} and {}", option, pair->first, known->second,
                      *value);
  }
  return Status::success();
}

void logToStandardError(void *, int level, const char *message) {
  constexpr const char *kNames[] = {"debug", "note", "warning", "error"};
  Progress::erase();
  std::fprintf(stderr, "dovetail: %s: %s\n", kNames[level < 0 || level > 3 ? 3 : level], message);
}

} // namespace

namespace {

/// The device that --target and --device name together.
Expected<std::optional<Target>> findDevice(const CommonOptions &options,
                                           const Environment &environment) {
  if (options.device.empty()) {
    if (options.target.empty() || options.target == "cpu")
      return std::optional<Target>();
    auto found = device::findDescription(options.target, environment.deviceFolders);
    if (!found)
      return found.takeError();
    return std::optional(found->target());
  }
  auto described = device::DeviceDescription::read(options.device);
  if (!described)
    return described.takeError();
  Target target = described->target();
  if (!options.target.empty() && options.target != target.name())
    return badInput("--target={} and --device={} are two devices: the file describes {}",
                    options.target, options.device, target.name());
  return std::optional(std::move(target));
}

} // namespace

Expected<Settings> makeSettings(const CommonOptions &options) {
  Settings session;
  session.environment = Environment::detect();
  for (const std::string &folder : options.plugins) {
    if (!std::filesystem::is_directory(folder))
      return badInput("--plugins: there is no folder {}", folder);
    if (std::filesystem::path(folder).lexically_normal() == ".")
      return badInput(
          "--plugins: no plug-in is ever loaded from the current folder; name it by its "
          "full path");
  }
  session.environment.pluginFolders.insert(session.environment.pluginFolders.begin(),
                                           options.plugins.begin(), options.plugins.end());
  session.log.callback = logToStandardError;
  session.log.lowest = options.verbose ? LogLevel::Debug : LogLevel::Warning;
  session.target = Target::host(options.threads);
  auto device = findDevice(options, session.environment);
  if (!device)
    return device.takeError();
  session.device = std::move(*device);
  if (Status status =
          addUserKernels(options.kernels, session.device.has_value(), session.environment);
      !status)
    return status.takeError();
  session.cacheFolder = options.noCache ? ""
                        : options.planningGiven.contains("--cache")
                            ? options.cache
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
  if (options.planningGiven.contains("--memory")) {
    auto bound = plan::MemoryBound::parse(options.memory);
    if (!bound)
      return badInput("--memory: {}", bound.error().message);
    planner.memory = *bound;
  }
  planner.preparation.runs = static_cast<double>(options.runsPerLoad);
  planner.log = session.log;
  planner.worker.executable = session.environment.worker;
  planner.worker.plugins = session.environment.pluginFolders;
  planner.worker.vendorPath = session.environment.vendorPath;
  planner.worker.only = options.only;
  for (const std::string &text : options.force) {
    auto pair = splitForce(text);
    if (!pair)
      return pair.takeError();
    planner.force.push_back({pair->first, pair->second});
  }
  if (Status status = readSizes(options.dims, "--dim", session.dims); !status)
    return status.takeError();
  if (Status status = readSizes(options.typical, "--typical", planner.typical); !status)
    return status.takeError();
  return session;
}

PluginSet loadPlugins(const Settings &session, const std::vector<std::string> &only,
                      bool runsOnly) {
  return dovetail::loadPlugins(session.environment, session.log, only, runsOnly);
}

int runCommandLine(CLI::App &app, int argc, char **argv, const int &exitCode) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (Status status = checkArguments(app, arguments); !status)
    return fail(status.error());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help and --version
      return app.exit(error);
    auto used = app.get_subcommands();
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return fail(badInput("{}; '{} {}--help' tells what there is", reason, app.get_name(),
                         used.empty() ? "" : used.front()->get_name() + " "));
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "dovetail: error: out of memory\n");
    return 3;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "dovetail: error: %s\n", error.what());
    return 4;
  }
  return exitCode;
}

int fail(const Error &error) {
  Progress::erase();
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

} // namespace dovetail::cli
