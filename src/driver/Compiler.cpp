// SPDX-License-Identifier: Apache-2.0
//
// The stages in order: import and graph (Frontend), regions and trials, cover, and the trial of the
// whole model.
#include "driver/Compiler.h"

#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include "driver/Frontend.h"
#include "driver/ReferenceEvaluator.h"
#include "driver/UserKernels.h"
#include "driver/WholeModel.h"

namespace dovetail {

const std::vector<std::string> &stageNames() {
  static const std::vector<std::string> names{"import", "graph", "regions", "plan"};
  return names;
}

namespace {

Status checkStages(const CompileOptions &options) {
  auto known = [](const std::string &name) {
    return std::find(stageNames().begin(), stageNames().end(), name) != stageNames().end();
  };
  for (const std::string &name : options.dumps)
    if (!known(name))
      return badInput("--dump={}: no such stage; the stages are {}", name,
                      fmt::join(stageNames(), ", "));
  if (!options.stopAfter.empty() && !known(options.stopAfter))
    return badInput("--stop-after={}: no such stage; the stages are {}", options.stopAfter,
                    fmt::join(stageNames(), ", "));
  return Status::success();
}

Status checkProviders(const CompileOptions &options, const PluginSet &plugins) {
  std::vector<std::string> names;
  for (const auto &provider : plugins.providers())
    names.push_back(provider->name());
  for (const std::string &name : options.planner.only)
    if (!plugins.find(name))
      return unavailable(
          "--only={}: there is no such provider; found: {}; 'dovetail doctor' tells more", name,
          names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  if (names.empty())
    return unavailable("no provider plug-in was found in {}",
                       fmt::join(options.environment.pluginFolders, ", "));
  return Status::success();
}

std::string regionsText(const plan::OpTable &table) {
  std::string text;
  for (const plan::Region &region : plan::formRegions(table))
    text += fmt::format("{}\n  {}\n", plan::nodeNames(table, region),
                        plan::makeProblem(table, region).problem.text());
  return text;
}

bool wantsDump(const CompileOptions &options, const std::string &stage) {
  return std::find(options.dumps.begin(), options.dumps.end(), stage) != options.dumps.end();
}

/// The model as tables.
Expected<plan::OpTable> readTable(const std::string &path, const CompileOptions &options,
                                  const PluginSet &plugins) {
  if (options.planner.progress)
    options.planner.progress("reading the model", 0, 0, "");
  FrontendOptions frontend;
  frontend.dims = options.dims;
  frontend.inputExtents = options.inputExtents;
  frontend.inputTypes = options.inputTypes;
  frontend.states = options.states;
  frontend.warn = [&](const std::string &text) {
    options.log(LogLevel::Warning, "{}: {}", path, text);
  };
  frontend.stopAfter = options.stopAfter;
  frontend.wantsText = [&](const std::string &stage) { return wantsDump(options, stage); };
  frontend.text = options.dump;
  if (const Provider *reference = plugins.find("reference"))
    frontend.evaluate = [&options, reference](const Problem &problem,
                                              const std::vector<const void *> &inputs) {
      return evaluateOnce(*reference, options.target, problem, inputs);
    };
  return runFrontend(path, frontend);
}

/// Names and versions of the providers that may compete.
std::map<std::string, std::string> versionsOf(const CompileOptions &options,
                                              const PluginSet &plugins) {
  std::map<std::string, std::string> versions;
  for (const auto &provider : plugins.providers()) {
    const auto &only = options.planner.only;
    if (only.empty() || std::find(only.begin(), only.end(), provider->name()) != only.end())
      versions[provider->name()] = provider->version();
  }
  return versions;
}

/// Providers that could compile if their compiler were here.
std::vector<std::string> withoutCompiler(const PluginSet &plugins) {
  std::vector<std::string> names;
  for (const auto &provider : plugins.providers())
    if (provider->functions().compile && !provider->info().can_compile)
      names.push_back(provider->name());
  return names;
}

/// What a planner that only estimates works on.
struct Estimating {
  plan::OpTable table;
  std::unique_ptr<plan::PlanCache> cache;
  plan::PlannerOptions options;
};

Expected<Estimating> prepareEstimating(const std::string &path, const CompileOptions &options,
                                       const PluginSet &plugins, const std::string &cacheFolder) {
  if (Status status = checkProviders(options, plugins); !status)
    return status.takeError();
  auto table = readTable(path, options, plugins);
  if (!table)
    return table.takeError();
  auto cache = plan::PlanCache::open(cacheFolder, options.log);
  if (!cache)
    return cache.takeError();
  Estimating prepared{std::move(*table), std::move(*cache), options.planner};
  prepared.options.select = plan::Select::Estimate;
  return prepared;
}

} // namespace

Expected<std::vector<plan::PosedProblem>>
problemsOf(const std::string &path, const CompileOptions &options, const PluginSet &plugins) {
  auto prepared = prepareEstimating(path, options, plugins, "");
  if (!prepared)
    return prepared.takeError();
  plan::Planner planner(prepared->table, options.target, versionsOf(options, plugins),
                        *prepared->cache, prepared->options);
  return planner.problems();
}

Expected<Compilation> compileModel(const std::string &path, const CompileOptions &options,
                                   std::shared_ptr<const PluginSet> plugins) {
  if (Status status = checkStages(options); !status)
    return status.takeError();
  if (Status status = checkProviders(options, *plugins); !status)
    return status.takeError();
  auto table = readTable(path, options, *plugins);
  if (!table)
    return table.takeError();
  if (options.stopAfter == "import" || options.stopAfter == "graph")
    return Compilation{};
  if (wantsDump(options, "regions") && options.dump)
    options.dump("regions", regionsText(*table));
  if (options.stopAfter == "regions")
    return Compilation{};
  auto cache = plan::PlanCache::open(options.cacheFolder, options.log);
  if (!cache)
    return cache.takeError();
  plan::PlannerOptions plannerOptions = options.planner;
  plannerOptions.device = options.device;
  plannerOptions.forget = withoutCompiler(*plugins);
  plan::Planner planner(*table, options.target, versionsOf(options, *plugins), **cache,
                        plannerOptions);
  if (Status status = planner.evaluate(); !status)
    return status.takeError();
  auto plan = options.prefer == plan::Prefer::Cost && options.timeWholeModel &&
                      options.planner.select != plan::Select::Estimate && !options.device
                  ? chooseByWholeModel(planner, plugins, **cache, options)
                  : planner.choose(options.prefer);
  if (!plan)
    return plan.takeError();
  if (Status status = planner.addStandIns(*plan); !status)
    return status.takeError();
  plan->model = std::filesystem::path(path).filename().string();
  plan->producer = DOVETAIL_VERSION;
  warnOfUserKernels(planner, options.log);
  Compilation compilation{std::move(*plan), planner.statistics()};
  if (wantsDump(options, "plan") && options.dump)
    options.dump("plan", planText(compilation.plan));
  return compilation;
}

Expected<plan::Tuning> tuningOf(const std::string &path, const CompileOptions &options,
                                const PluginSet &plugins) {
  auto prepared = prepareEstimating(path, options, plugins, options.cacheFolder);
  if (!prepared)
    return prepared.takeError();
  prepared->options.device = options.device;
  plan::Tuning tuning;
  tuning.providers = versionsOf(options, plugins);
  for (const std::string &name : withoutCompiler(plugins))
    tuning.providers.erase(name);
  plan::Planner planner(prepared->table, options.target, tuning.providers, *prepared->cache,
                        prepared->options);
  if (Status status = planner.evaluate(); !status)
    return status.takeError();
  for (plan::Prefer prefer : {plan::Prefer::Cost, plan::Prefer::Library, plan::Prefer::Native})
    if (auto plan = planner.choose(prefer); !plan)
      return plan.takeError();
  tuning.model = std::filesystem::path(path).filename().string();
  tuning.producer = DOVETAIL_VERSION;
  tuning.target = options.device ? *options.device : options.target;
  tuning.footprintBytes = planner.footprintBytes();
  for (plan::PosedProblem &posed : planner.asked())
    tuning.problems.push_back({std::move(posed), {}, {}});
  return tuning;
}

} // namespace dovetail
