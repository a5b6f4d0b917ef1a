// SPDX-License-Identifier: Apache-2.0
//
// dovetail check MODEL...: the problems of all regions of some models, each once; every candidate
// of every provider is built and run once and compared with the reference by the bounds of trials.
// What fails is printed with its problem, which 'dovetail problem' reproduces.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "CheckRecords.h"
#include "CheckReport.h"
#include "CommandLine.h"
#include "OpenedModel.h"
#include "Progress.h"
#include "plan/Evaluations.h"
#include "plan/SharedTurns.h"
#include "plan/Worker.h"

namespace dovetail::cli {
namespace {

struct CheckOptions {
  CommonOptions common;
  std::vector<std::string> models;
  double budget = std::numeric_limits<double>::infinity();
  unsigned jobs = 1;
};

/// A problem of one or several of the models.
struct SharedProblem {
  plan::PosedProblem posed;
  std::vector<size_t> models;
  plan::Evaluation known;           ///< from earlier checks
  std::vector<std::string> missing; ///< providers of which nothing is known
};

Expected<std::vector<SharedProblem>> collect(const CheckOptions &options, const Settings &settings,
                                             const PluginSet &plugins, CheckReport &report) {
  std::vector<SharedProblem> problems;
  std::unordered_map<std::string, size_t> known;
  Progress progress;
  for (const std::string &path : options.models) {
    if (isArtifactFile(path))
      return badInput("{} is an artifact, which holds one plan; candidates are checked on the "
                      "problems of a model",
                      path);
    progress.show("reading model", report.modelCount() + 1, options.models.size(), path);
    CompileOptions compile = compileOptions(settings, {});
    compile.states = options.common.states;
    auto posed = problemsOf(path, compile, plugins);
    if (!posed)
      return posed.takeError();
    size_t model = report.addModel(path);
    for (plan::PosedProblem &problem : *posed) {
      auto [entry, isNew] = known.emplace(identityOf(problem), problems.size());
      if (isNew)
        problems.push_back({std::move(problem), {}, {}, {}});
      std::vector<size_t> &models = problems[entry->second].models;
      if (models.empty() || models.back() != model)
        models.push_back(model);
    }
  }
  for (const SharedProblem &problem : problems)
    report.addProblem(problem.models);
  return problems;
}

/// Goes through problems with one or several workers at once.
class Checking {
public:
  Checking(const CheckOptions &options, const Settings &settings, CheckRecords &records,
           CheckReport &report, std::vector<SharedProblem> &problems)
      : options(options), settings(settings), records(records), report(report), problems(problems) {
  }

  Status run();

private:
  void work();
  std::optional<size_t> take();
  void finish(size_t turn, double seconds, Expected<plan::Evaluation> evaluation, bool hasWorker);
  bool isSpent() const {
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return seconds.count() >= options.budget;
  }

  const CheckOptions &options;
  const Settings &settings;
  CheckRecords &records;
  CheckReport &report;
  std::vector<SharedProblem> &problems;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  Progress progress;

  std::mutex mutex; ///< of all that follows, of records and of the report
  plan::SharedTurns turns;
  std::vector<size_t> open; ///< problem of each turn
  size_t finished = 0;
  std::optional<Error> failure;
};

Status Checking::run() {
  plan::CostModel costs{settings.target, {}, {}};
  plan::Trial literal; // what the truth takes says how large a problem is
  literal.candidate.provider = "reference";
  for (size_t i = 0; i < problems.size(); ++i) {
    SharedProblem &problem = problems[i];
    problem.known = records.find(problem.posed, problem.missing);
    if (problem.missing.empty()) {
      report.add(problem.known, problem.posed.problem.text(), problem.models, true);
      continue;
    }
    turns.add(costs.of(literal, problem.posed.problem, problem.posed.representative),
              problem.models);
    open.push_back(i);
  }
  // Teams of several workers share the cores: who waits in spinning takes them from the others.
  if (options.jobs > 1)
    ::setenv("OMP_WAIT_POLICY", "passive", 0);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < options.jobs; ++i)
    others.emplace_back([this] { work(); });
  work();
  for (std::thread &other : others)
    other.join();
  Progress::erase();
  if (failure)
    return std::move(*failure);
  return Status::success();
}

std::optional<size_t> Checking::take() {
  std::lock_guard lock(mutex);
  if (failure || isSpent())
    return std::nullopt;
  std::chrono::duration<double> now = std::chrono::steady_clock::now() - start;
  auto turn = turns.next(now.count());
  if (turn) {
    std::string text = problems[open[*turn]].posed.problem.text();
    progress.show("checking", finished, open.size(), text);
    settings.log(LogLevel::Debug, "{}", text);
  }
  return turn;
}

/// A worker dies with the thread that started it, so each thread has its own.
void Checking::work() {
  plan::Worker worker(settings.planner.worker, settings.target);
  while (auto turn = take()) {
    const SharedProblem &problem = problems[open[*turn]];
    plan::EvaluationOptions request;
    request.providers = problem.missing;
    request.measure = false;
    request.representative = problem.posed.representative;
    auto begin = std::chrono::steady_clock::now();
    auto evaluation = worker.evaluate(problem.posed.problem, request);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    finish(*turn, seconds.count(), std::move(evaluation), worker.hasStarted());
  }
}

void Checking::finish(size_t turn, double seconds, Expected<plan::Evaluation> evaluation,
                      bool hasWorker) {
  std::lock_guard lock(mutex);
  SharedProblem &problem = problems[open[turn]];
  std::string text = problem.posed.problem.text();
  turns.spend(turn, seconds);
  ++finished;
  if (!evaluation) {
    if (!hasWorker)
      failure = evaluation.takeError();
    else
      report.addFailure(evaluation.error(), text, problem.models);
    return;
  }
  records.store(problem.posed, *evaluation, problem.missing);
  plan::append(problem.known, std::move(*evaluation));
  report.add(problem.known, text, problem.models, false);
  problem.known = {};
}

int runCheck(const CheckOptions &options) {
  auto settings = makeSettings(options.common);
  if (!settings)
    return fail(settings.error());
  PluginSet plugins = loadPlugins(*settings, {});
  CheckReport report;
  auto problems = collect(options, *settings, plugins, report);
  if (!problems)
    return fail(problems.error());
  auto cache = plan::PlanCache::open(settings->cacheFolder, settings->log);
  if (!cache)
    return fail(cache.error());
  const std::vector<std::string> &only = options.common.only;
  std::map<std::string, std::string> versions;
  for (const auto &provider : plugins.providers())
    if (only.empty() || std::find(only.begin(), only.end(), provider->name()) != only.end())
      versions[provider->name()] = provider->version();
  const Provider *reference = plugins.find("reference");
  CheckRecords records(std::move(*cache), settings->target, std::move(versions),
                       reference ? reference->version() : "");
  Checking checking(options, *settings, records, report, *problems);
  if (Status status = checking.run(); !status)
    return fail(status.error());
  options.common.json ? report.printJson() : report.print();
  return report.allRight() ? 0 : 3;
}

} // namespace

void addCheck(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App *command = app.add_subcommand(
      "check", "compare every candidate for the problems of some models with the reference");
  command->add_option("models", options->models, "ONNX models")->required();
  options->common.addTo(*command);
  command
      ->add_option(
          "--budget", options->budget,
          "seconds after which no further problem is begun, shared fairly among the models "
          "(default: all are checked)")
      ->check(seconds());
  command
      ->add_option("--jobs", options->jobs,
                   "problems that are worked on at once, each by a process of its own (default: 1)")
      ->check(wholeNumber(1, 256));
  options->common.addCacheTo(*command);
  command->add_flag("--no-cache", options->common.noCache,
                    "check again what was found right before");
  command->add_option("--dim", options->common.dims, "NAME=N: value of a symbol (may be repeated)")
      ->allow_extra_args(false);
  command
      ->add_option("--typical", options->common.typical,
                   "NAME=N: value of an open dimension for the checks (may be repeated)")
      ->allow_extra_args(false);
  command->callback([options, &exitCode] { exitCode = runCheck(*options); });
}

} // namespace dovetail::cli
