// SPDX-License-Identifier: Apache-2.0
//
// dovetail tune-run FILE -o TIMES: runs candidates that were compiled on another machine, checks
// them and writes what they take. What was measured is written every few seconds, so that a run
// that is interrupted goes on where it ended.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <limits>

#include <sys/utsname.h>

#include "CommandLine.h"
#include "Progress.h"
#include "device/DeviceDriver.h"
#include "plan/TuningRun.h"
#include "support/File.h"

namespace dovetail::cli {
namespace {

using Clock = std::chrono::steady_clock;
using device::DeviceDriver;

struct TuneRunOptions {
  CommonOptions common;
  std::string file, output;
  double budget = std::numeric_limits<double>::infinity();
};

volatile std::sig_atomic_t interrupted = 0;
/// Lets the problem at hand end; a second signal does not wait for that.
void interrupt(int number) {
  interrupted = 1;
  std::signal(number, SIG_DFL);
}

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whether the kernels can run here, and what there is to say of this machine.
struct Machine {
  std::string name; ///< for people
  nlohmann::json facts;
};

Expected<Machine> machineWithDevice(const Target &target, const Settings &settings) {
  auto driver = DeviceDriver::open(
      target.device, DeviceDriver::pathFor(settings.environment.deviceDrivers, target.device));
  if (!driver)
    return driver.takeError();
  auto architecture = (*driver)->architecture(0);
  if (!architecture)
    return architecture.takeError();
  if (*architecture != target.architecture)
    return unavailable("the kernels are for {}, the device here is {}:{}; export them with "
                       "--target={}:{}",
                       target.name(), target.device, *architecture, target.device, *architecture);
  auto like = device::DeviceDescription::of(target);
  if (!like)
    return like.takeError();
  auto described = (*driver)->describe(0, *like);
  if (!described)
    return described.takeError();
  Machine machine;
  machine.name = fmt::format("{}, driver {}{}", described->name, (*driver)->version(),
                             (*driver)->isSimulated() ? ", simulated" : "");
  machine.facts = {{"driver", (*driver)->version()},
                   {"driver_path", (*driver)->path()},
                   {"simulated", (*driver)->isSimulated()},
                   {"device", nlohmann::json::parse(described->text())}};
  return machine;
}

Expected<Machine> machineWithProcessor(const Target &target) {
  Target here = Target::host(target.threads);
  if (here.text() != target.text())
    return unavailable("the kernels are for {}; this machine is {}", target.text(), here.text());
  utsname names{};
  ::uname(&names);
  return Machine{names.nodename, nlohmann::json::object()};
}

/// Providers of the file whose kernels run here; says of the others why they do not.
Expected<std::vector<std::string>> providersHere(const plan::Tuning &tuning,
                                                 const Settings &settings, Machine &machine) {
  std::vector<std::string> names;
  for (const auto &[name, version] : tuning.providers)
    names.push_back(name);
  PluginSet plugins = loadPlugins(settings, names);
  std::vector<std::string> usable;
  std::string reasons;
  auto leaveOut = [&](const std::string &reason) {
    settings.log(LogLevel::Warning, "{}; its kernels are not measured", reason);
    reasons += "; " + reason;
  };
  for (const auto &[name, version] : tuning.providers) {
    const Provider *provider = plugins.find(name);
    if (!provider) {
      leaveOut(fmt::format("the provider {} is not here", name));
      continue;
    }
    machine.facts["providers"][name] = provider->version();
    if (loadableVersion(provider->version()) == loadableVersion(version))
      usable.push_back(name);
    else
      leaveOut(fmt::format("the provider {} is here in version {}, the kernels were made by {}",
                           name, provider->version(), version));
  }
  if (usable.empty())
    return unavailable("{}: none of its kernels can run here{}", tuning.model, reasons);
  return usable;
}

/// The state to go on from: what is in the output already, if anything.
Status resume(plan::Tuning &tuning, const std::string &output, const Machine &machine) {
  tuning.source = tuning.digest;
  tuning.measuredOn = machine.name;
  if (!std::filesystem::exists(output))
    return Status::success();
  auto earlier = plan::readTuning(output);
  if (!earlier)
    return badInput("{}; give another name for the times, or remove the file",
                    earlier.error().message);
  if (earlier->source != tuning.source || earlier->measuredOn != machine.name)
    return badInput("{}: holds times of {}; give another name, or remove the file", output,
                    earlier->source != tuning.source ? "another export"
                                                     : "another machine, " + earlier->measuredOn);
  plan::takeTimes(tuning, std::move(*earlier));
  return Status::success();
}

/// Writes at most so often that it takes a small part of the time.
class Saving {
public:
  Saving(const plan::Tuning &tuning, const std::string &output) : tuning(tuning), output(output) {}
  Status whenDue() {
    constexpr double kLeastSeconds = 5, kShare = 0.05;
    return secondsSince(last) < std::max(kLeastSeconds, took / kShare) ? Status::success() : now();
  }
  Status now() {
    auto start = Clock::now();
    Status status = plan::writeTuning(tuning, output);
    last = Clock::now();
    took = secondsSince(start);
    return status;
  }

private:
  const plan::Tuning &tuning;
  const std::string &output;
  Clock::time_point last = Clock::now();
  double took = 0;
};

void report(const plan::Tuning &tuning, const TuneRunOptions &options, double seconds) {
  plan::Tuning::Counts counts = tuning.counts();
  if (options.common.json) {
    nlohmann::json json{{"times", options.output},
                        {"model", tuning.model},
                        {"target", tuning.target.name()},
                        {"measured_on", tuning.measuredOn},
                        {"problems", tuning.problems.size()},
                        {"tried", counts.tried},
                        {"candidates", counts.candidates},
                        {"timed", counts.timed},
                        {"failed", counts.failed},
                        {"seconds", seconds}};
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  std::printf("%s: %zu of %zu problems of %s tried on %s, %zu of %zu candidates timed, %zu failed; "
              "%.1f s\n",
              options.output.c_str(), counts.tried, tuning.problems.size(), tuning.model.c_str(),
              tuning.measuredOn.c_str(), counts.timed, counts.candidates, counts.failed, seconds);
}

int runTuneRun(const TuneRunOptions &options) {
  const auto start = Clock::now();
  if (Status status = checkWritable(options.output); !status)
    return fail(status.error());
  auto settings = makeSettings(options.common);
  if (!settings)
    return fail(settings.error());
  auto tuning = plan::readTuning(options.file);
  if (!tuning)
    return fail(tuning.error());
  const Target target = tuning->target;
  auto machine =
      target.isDevice() ? machineWithDevice(target, *settings) : machineWithProcessor(target);
  if (!machine)
    return fail(
        Error{machine.error().kind, fmt::format("{}: {}", options.file, machine.error().message)});
  auto providers = providersHere(*tuning, *settings, *machine);
  if (!providers)
    return fail(providers.error());
  if (Status status = resume(*tuning, options.output, *machine); !status)
    return fail(status.error());
  machine->facts["host"] = Target::host(0).text();
  machine->facts["dovetail"] = DOVETAIL_VERSION;
  tuning->machine = machine->facts.dump();

  plan::WorkerOptions worker = settings->planner.worker;
  worker.deviceDrivers = settings->environment.deviceDrivers;
  worker.only = *providers;
  if (target.isDevice())
    worker.memoryBytes = UINT64_MAX;
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
  Progress progress;
  plan::TuningSteps steps;
  steps.progress = [&](size_t done, size_t total, const std::string &what) {
    progress.show("measuring", done, total, what);
  };
  steps.stop = [&] { return secondsSince(start) >= options.budget; };
  steps.interrupted = [] { return interrupted != 0; };
  Saving saving(*tuning, options.output);
  plan::Worker measuring(worker, target);
  Status measured = plan::measureCandidates(*tuning, measuring, *providers, steps,
                                            [&] { return saving.whenDue(); });
  Progress::erase();
  if (Status saved = saving.now(); !saved)
    return fail(saved.error());
  if (!measured)
    return fail(measured.error());
  if (interrupted)
    return fail(Error{ErrorKind::Cancelled,
                      fmt::format("interrupted; {} holds what was measured, and the same command "
                                  "goes on from there",
                                  options.output)});
  report(*tuning, options, secondsSince(start));
  return 0;
}

} // namespace

void addTuneRun(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<TuneRunOptions>();
  CLI::App *command = app.add_subcommand(
      "tune-run", "measure candidates that 'tune-export' wrote, on the machine they are for");
  command->add_option("file", options->file, "what 'tune-export' wrote")->required();
  command->add_option("-o,--output", options->output, "file for the times")->required();
  command
      ->add_option("--budget", options->budget,
                   "seconds after which no further problem is begun (default: all are measured)")
      ->check(seconds());
  command
      ->add_option("--plugins", options->common.plugins, "folders with further provider plug-ins")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--json", options->common.json, "print one JSON object");
  command->add_flag("-v,--verbose", options->common.verbose, "say more on standard error");
  command->callback([options, &exitCode] { exitCode = runTuneRun(*options); });
}

} // namespace dovetail::cli
