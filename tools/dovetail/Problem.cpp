// SPDX-License-Identifier: Apache-2.0
//
// dovetail problem 'TEXT': lists, checks and times the candidates of one problem. The reproducer in
// every report.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "CommandLine.h"
#include "Progress.h"
#include "plan/Worker.h"

namespace dovetail::cli {
namespace {

struct ProblemOptions {
  CommonOptions common;
  std::string text;
  uint64_t footprint = 0;
  bool noTiming = false;
};

/// Says what the worker is at. While it times candidates nothing is drawn: that takes a core.
plan::PhaseReport reportTo(Progress &progress) {
  return [&progress, tried = size_t(0), isTiming = false](const std::string &label,
                                                          const char *phase) mutable {
    if (phase == std::string_view("time")) {
      if (!isTiming)
        progress.show("timing candidates", 0, 0);
      isTiming = true;
      return;
    }
    tried += phase == std::string_view("compile");
    progress.show("trying", tried, 0, fmt::format("{}, {}", label, phase));
  };
}

int runProblem(const ProblemOptions &options) {
  auto session = makeSettings(options.common);
  if (!session)
    return fail(session.error());
  auto problem = Problem::parse(options.text);
  if (!problem)
    return fail(problem.error());
  Progress progress;
  plan::WorkerOptions workerOptions = session->planner.worker;
  workerOptions.report = reportTo(progress);
  plan::Worker worker(workerOptions, session->kernelTarget());
  plan::EvaluationOptions request;
  request.providers = options.common.only;
  request.measure = !options.noTiming;
  request.timeReference = true;
  request.footprintBytes = options.footprint;
  request.representative = session->dims;
  request.budgetMillis = 1000;
  auto evaluation = worker.evaluate(*problem, request);
  Progress::erase();
  if (!evaluation)
    return fail(evaluation.error());
  auto &trials = evaluation->trials;
  std::stable_sort(trials.begin(), trials.end(), [](const plan::Trial &a, const plan::Trial &b) {
    auto key = [](const plan::Trial &t) { return t.micros >= 0 ? t.micros : 1e30; };
    return key(a) < key(b);
  });
  bool bad = false;
  for (const plan::Trial &trial : trials)
    bad |= !trial.usable();
  if (options.common.json) {
    std::printf("%s\n", plan::toJson(*evaluation, nullptr).dump(2).c_str());
    return bad ? 3 : 0;
  }
  std::printf("%s\n%s\n", problem->text().c_str(), session->kernelTarget().text().c_str());
  for (const plan::Trial &trial : trials) {
    std::string layouts;
    for (const std::string &layout : trial.candidate.inputLayouts)
      layouts += (layouts.empty() ? "" : " ") + (layout.empty() ? std::string("-") : layout);
    layouts += " ->";
    for (const std::string &layout : trial.candidate.outputLayouts)
      layouts += " " + (layout.empty() ? std::string("-") : layout);
    std::printf("%10s  %-12s %-44s %-30s error %.1e  compile %.0f ms%s%s\n",
                duration(trial.micros).c_str(), plan::outcomeName(trial.outcome),
                (trial.candidate.provider + ":" + trial.candidate.algorithm).c_str(),
                layouts.c_str(), trial.maxError, trial.compileMillis,
                trial.detail.empty() ? "" : "  ", trial.detail.c_str());
  }
  for (const auto &[provider, refusal] : evaluation->refusals)
    std::printf("   refused  %s: %s\n",
                (refusal.algorithm.empty() ? provider : provider + ":" + refusal.algorithm).c_str(),
                refusal.reason.c_str());
  return bad ? 3 : 0;
}

} // namespace

void addProblem(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<ProblemOptions>();
  CLI::App *command =
      app.add_subcommand("problem", "list, check and time the candidates of one problem");
  command->add_option("text", options->text, "the problem's one-line text, as 'explain' prints it")
      ->required();
  command->add_option("--footprint", options->footprint,
                      "bytes that the rest of a model would read between two runs");
  command->add_flag("--no-timing", options->noTiming, "check only");
  options->common.addTo(*command);
  options->common.addTargetTo(*command);
  command->add_option("--dim", options->common.dims, "NAME=N: value of a symbol (may be repeated)")
      ->allow_extra_args(false);
  command->callback([options, &exitCode] { exitCode = runProblem(*options); });
}

} // namespace dovetail::cli
