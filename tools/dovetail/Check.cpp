// SPDX-License-Identifier: Apache-2.0
//
// dovetail check MODEL...: the problems of all regions of some models, each once; every candidate
// of every provider is built and run once and compared with the reference by the bounds of trials.
// What fails is printed with its problem, which 'dovetail problem' reproduces.
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "CommandLine.h"
#include "OpenedModel.h"
#include "plan/Worker.h"

namespace dovetail::cli {
namespace {

struct CheckOptions {
  CommonOptions common;
  std::vector<std::string> models;
  double budget = 0;
};

struct ProviderCount {
  size_t candidates = 0, correct = 0;
  std::map<std::string, size_t> failed; ///< by type
};

struct Finding {
  std::string problem, candidate, outcome, detail;
};

struct Outcome {
  size_t models = 0, problems = 0, checked = 0;
  std::map<std::string, ProviderCount> providers;
  std::vector<Finding> findings;

  void add(const plan::Evaluation &evaluation, const std::string &problem) {
    ++checked;
    for (const plan::Trial &trial : evaluation.trials) {
      ProviderCount &count = providers[trial.candidate.provider];
      ++count.candidates;
      if (trial.usable()) {
        ++count.correct;
        continue;
      }
      ++count.failed[plan::outcomeName(trial.outcome)];
      findings.push_back(
          {problem, trial.candidate.label(), plan::outcomeName(trial.outcome), trial.detail});
    }
  }
};

/// Symbols of different models may have the same names and other values.
std::string identityOf(const plan::PosedProblem &posed) {
  std::string text = posed.problem.text();
  if (posed.problem.hasSymbols())
    for (const auto &[symbol, value] : posed.representative)
      if (text.find(symbol) != std::string::npos)
        text += " " + symbol + "=" + std::to_string(value);
  return text;
}

void printJson(const Outcome &outcome) {
  nlohmann::json report{{"models", outcome.models},
                        {"problems", outcome.problems},
                        {"checked", outcome.checked},
                        {"left", outcome.problems - outcome.checked},
                        {"providers", nlohmann::json::object()},
                        {"failures", nlohmann::json::array()}};
  for (const auto &[name, count] : outcome.providers)
    report["providers"][name] = {
        {"candidates", count.candidates}, {"correct", count.correct}, {"failed", count.failed}};
  for (const Finding &finding : outcome.findings)
    report["failures"].push_back({{"candidate", finding.candidate},
                                  {"outcome", finding.outcome},
                                  {"detail", finding.detail},
                                  {"problem", finding.problem}});
  std::printf("%s\n", report.dump(2).c_str());
}

void print(const Outcome &outcome) {
  for (const Finding &finding : outcome.findings)
    std::printf("%s %s%s%s\n  %s\n", finding.candidate.c_str(), finding.outcome.c_str(),
                finding.detail.empty() ? "" : ": ", finding.detail.c_str(),
                finding.problem.c_str());
  std::printf("%zu model%s, %zu problems, %zu checked%s\n", outcome.models,
              outcome.models == 1 ? "" : "s", outcome.problems, outcome.checked,
              outcome.checked < outcome.problems
                  ? fmt::format("; --budget left {}", outcome.problems - outcome.checked).c_str()
                  : "");
  for (const auto &[name, count] : outcome.providers) {
    std::string failed;
    for (const auto &[type, number] : count.failed)
      failed += fmt::format(", {} {}", number, type);
    std::printf("%-12s %zu candidates, %zu correct%s\n", name.c_str(), count.candidates,
                count.correct, failed.c_str());
  }
}

int runCheck(const CheckOptions &options) {
  auto start = std::chrono::steady_clock::now();
  auto spent = [&] {
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return options.budget > 0 && seconds.count() >= options.budget;
  };
  auto settings = makeSettings(options.common);
  if (!settings)
    return fail(settings.error());
  PluginSet plugins = loadPlugins(*settings, {});
  Outcome outcome;
  std::vector<plan::PosedProblem> problems;
  std::set<std::string> seen;
  for (const std::string &model : options.models) {
    if (isArtifactFile(model))
      return fail(badInput("{} is an artifact, which holds one plan; candidates are checked on the "
                           "problems of a model",
                           model));
    CompileOptions compile = compileOptions(*settings, {});
    compile.states = options.common.states;
    auto posed = problemsOf(model, compile, plugins);
    if (!posed)
      return fail(posed.error());
    ++outcome.models;
    for (plan::PosedProblem &problem : *posed)
      if (seen.insert(identityOf(problem)).second)
        problems.push_back(std::move(problem));
  }
  outcome.problems = problems.size();
  plan::Worker worker(settings->planner.worker, settings->target);
  Progress progress("checking");
  for (size_t i = 0; i < problems.size() && !spent(); ++i) {
    const plan::PosedProblem &posed = problems[i];
    std::string text = posed.problem.text();
    progress.show(i, problems.size(), text);
    settings->log(LogLevel::Debug, "{}", text);
    plan::EvaluationOptions request;
    request.providers = options.common.only;
    request.measure = false;
    request.representative = posed.representative;
    auto evaluation = worker.evaluate(posed.problem, request);
    if (!evaluation)
      return fail(evaluation.error());
    outcome.add(*evaluation, text);
  }
  progress.clear();
  options.common.json ? printJson(outcome) : print(outcome);
  return outcome.findings.empty() ? 0 : 3;
}

} // namespace

void addCheck(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App *command = app.add_subcommand(
      "check", "compare every candidate for the problems of some models with the reference");
  command->add_option("models", options->models, "ONNX models")->required();
  options->common.addTo(*command);
  command
      ->add_option("--budget", options->budget,
                   "seconds after which no further problem is begun (default: all are checked)")
      ->check(seconds());
  command->add_option("--dim", options->common.dims, "NAME=N: value of a symbol (may be repeated)")
      ->allow_extra_args(false);
  command
      ->add_option("--typical", options->common.typical,
                   "NAME=N: value of an open dimension for the checks (may be repeated)")
      ->allow_extra_args(false);
  command->callback([options, &exitCode] { exitCode = runCheck(*options); });
}

} // namespace dovetail::cli
