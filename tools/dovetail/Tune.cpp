// SPDX-License-Identifier: Apache-2.0
//
// dovetail tune-export MODEL -o FILE and tune-import TIMES: candidates for a machine that is not
// this one, and what they took there.
#include <chrono>
#include <cstdio>
#include <limits>

#include <fmt/ranges.h>

#include "CommandLine.h"
#include "OpenedModel.h"
#include "Progress.h"
#include "plan/TuningRun.h"

namespace dovetail::cli {
namespace {

struct ExportOptions {
  CommonOptions common;
  InputOptions inputs;
  std::string model, output;
  double budget = std::numeric_limits<double>::infinity();
};

struct ImportOptions {
  CommonOptions common;
  std::string file;
};

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Expected<plan::Tuning> readModel(const ExportOptions &options, const Settings &settings) {
  if (isArtifactFile(options.model))
    return badInput("{} is an artifact, which holds one plan; candidates are exported for a model",
                    options.model);
  auto given = readInputs(options.inputs);
  if (!given)
    return given.takeError();
  CompileOptions compile = compileOptions(settings, {});
  giveInputs(compile, *given);
  compile.states = options.common.states;
  PluginSet plugins = loadPlugins(settings, {});
  Progress progress;
  compile.planner.progress = progress.callback();
  return tuningOf(options.model, compile, plugins);
}

Status buildWithin(plan::Tuning &tuning, const ExportOptions &options, const Settings &settings) {
  auto cache = plan::PlanCache::open(settings.cacheFolder, settings.log);
  if (!cache)
    return cache.takeError();
  plan::Worker worker(settings.planner.worker, tuning.target);
  Progress progress;
  plan::TuningSteps steps;
  steps.progress = [&](size_t done, size_t total, const std::string &what) {
    progress.show("compiling", done, total, what);
  };
  steps.stop = [&, start = Clock::now()] { return secondsSince(start) >= options.budget; };
  return plan::buildCandidates(tuning, worker, **cache, steps);
}

int runExport(const ExportOptions &options) {
  const auto start = Clock::now();
  if (Status status = checkOutput(options.output, options.model); !status)
    return fail(status.error());
  auto settings = makeSettings(options.common);
  if (!settings)
    return fail(settings.error());
  auto tuning = readModel(options, *settings);
  if (!tuning)
    return fail(tuning.error());
  const size_t posed = tuning->problems.size();
  if (Status status = buildWithin(*tuning, options, *settings); !status)
    return fail(status.error());
  if (Status status = plan::writeTuning(*tuning, options.output); !status)
    return fail(status.error());
  plan::Tuning::Counts counts = tuning->counts();
  if (options.common.json) {
    nlohmann::json report{{"file", options.output},
                          {"target", tuning->target.name()},
                          {"problems", tuning->problems.size()},
                          {"left", posed - tuning->problems.size()},
                          {"candidates", counts.candidates},
                          {"failed", counts.failed},
                          {"seconds", secondsSince(start)}};
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  std::printf("%s: %zu problems for %s%s, %zu candidates, %zu failed; %.1f s\n",
              options.output.c_str(), tuning->problems.size(), tuning->target.name().c_str(),
              posed > tuning->problems.size()
                  ? fmt::format(" (--budget left {})", posed - tuning->problems.size()).c_str()
                  : "",
              counts.candidates, counts.failed, secondsSince(start));
  return 0;
}

/// Says which of the times planning here will not find. Unavailable where it will find none.
Status compareVersions(const plan::Tuning &tuning, const Settings &settings) {
  PluginSet plugins = loadPlugins(settings, {});
  std::vector<std::string> reasons;
  for (const auto &[name, version] : tuning.providers) {
    const Provider *provider = plugins.find(name);
    if (!provider)
      reasons.push_back(fmt::format("the provider {} is not here", name));
    else if (provider->version() != version)
      reasons.push_back(fmt::format("the provider {} is here in version {}, the times are of {}",
                                    name, provider->version(), version));
  }
  if (reasons.size() == tuning.providers.size())
    return unavailable("none of the times can be used here: {}; export the candidates again",
                       fmt::join(reasons, "; "));
  if (!reasons.empty())
    settings.log(LogLevel::Warning, "plans made here do not use all of the times: {}",
                 fmt::join(reasons, "; "));
  return Status::success();
}

int runImport(const ImportOptions &options) {
  auto settings = makeSettings(options.common);
  if (!settings)
    return fail(settings.error());
  auto tuning = plan::readTuning(options.file);
  if (!tuning)
    return fail(tuning.error());
  plan::Tuning::Counts counts = tuning->counts();
  if (counts.tried == 0)
    return fail(badInput("{}: holds no times yet; 'dovetail tune-run {} -o TIMES' measures them, "
                         "on a machine with {}",
                         options.file, options.file, tuning->target.name()));
  if (settings->cacheFolder.empty())
    return fail(badInput("there is no plan cache; name its folder with --cache DIR"));
  if (Status status = compareVersions(*tuning, *settings); !status)
    return fail(
        Error{status.error().kind, fmt::format("{}: {}", options.file, status.error().message)});
  auto cache = plan::PlanCache::open(settings->cacheFolder, settings->log);
  if (!cache)
    return fail(cache.error());
  plan::storeTimes(*tuning, **cache);
  if (options.common.json) {
    nlohmann::json report{{"cache", settings->cacheFolder},
                          {"model", tuning->model},
                          {"target", tuning->target.name()},
                          {"measured_on", tuning->measuredOn},
                          {"problems", tuning->problems.size()},
                          {"tried", counts.tried},
                          {"timed", counts.timed},
                          {"failed", counts.failed}};
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  std::printf("%s: %zu problems of %s for %s as measured on %s, %zu times; %zu candidates failed "
              "there\n",
              settings->cacheFolder.c_str(), counts.tried, tuning->model.c_str(),
              tuning->target.name().c_str(), tuning->measuredOn.c_str(), counts.timed,
              counts.failed);
  return 0;
}

} // namespace

void addTuning(CLI::App &app, int &exitCode) {
  auto exporting = std::make_shared<ExportOptions>();
  CLI::App *command = app.add_subcommand(
      "tune-export", "write all candidates for a model, to be measured on another machine");
  command->add_option("model", exporting->model, "an ONNX model")->required();
  command->add_option("-o,--output", exporting->output, "file for the candidates")->required();
  exporting->common.addTo(*command);
  exporting->common.addTargetTo(*command);
  exporting->common.addCacheTo(*command);
  exporting->common.addSizesTo(*command);
  exporting->inputs.addTo(*command);
  command
      ->add_option("--budget", exporting->budget,
                   "seconds after which no further problem is compiled; what takes longest comes "
                   "first (default: all)")
      ->check(seconds());
  command->callback([exporting, &exitCode] { exitCode = runExport(*exporting); });

  auto importing = std::make_shared<ImportOptions>();
  command =
      app.add_subcommand("tune-import", "take the times that 'tune-run' wrote into the plan cache");
  command->add_option("file", importing->file, "what 'tune-run' wrote")->required();
  importing->common.addTo(*command);
  importing->common.addCacheTo(*command);
  command->callback([importing, &exitCode] { exitCode = runImport(*importing); });
}

} // namespace dovetail::cli
