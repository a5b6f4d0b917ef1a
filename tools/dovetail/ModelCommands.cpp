// SPDX-License-Identifier: Apache-2.0
//
// dovetail run, compile, bench and explain.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <fmt/ranges.h>

#include "Explain.h"
#include "OpenedModel.h"
#include "Progress.h"
#include "Tokens.h"
#include "artifact/Artifact.h"
#include "driver/UserKernels.h"

namespace dovetail::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct ModelOptionsCli {
  CommonOptions common;
  InputOptions inputs;
  StageOptions stages;
  std::string model, output, temps;
  unsigned repeat = 1, runs = 0;
  double seconds = 2;
  TokenOptions tokens;
  bool all = false, withoutMeasured = false, profile = false;
};

/// Between runs that are timed a terminal has little to draw.
constexpr std::chrono::seconds kBetweenLines{1};

double millis(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::vector<std::pair<std::string, Array>> outputsOf(const Session &session) {
  const Plan &plan = session.model().plan();
  std::vector<std::pair<std::string, Array>> arrays;
  for (uint32_t i = 0; i < plan.outputNames.size(); ++i) {
    const dvt_tensor &tensor = session.output(i);
    Array array;
    array.type = tensor.type;
    array.extents.assign(tensor.extents, tensor.extents + tensor.rank);
    int64_t elements = 1;
    for (int64_t extent : array.extents)
      elements *= extent;
    const auto *bytes = static_cast<const uint8_t *>(tensor.data);
    array.bytes.assign(bytes, bytes + bytesOf(tensor.type, elements));
    arrays.emplace_back(plan.outputNames[i], std::move(array));
  }
  return arrays;
}

nlohmann::json describe(const Array &array) {
  nlohmann::json result{{"type", typeName(array.type)}, {"shape", array.extents}};
  if (array.type == DVT_F32 && !array.bytes.empty()) {
    const auto *values = reinterpret_cast<const float *>(array.bytes.data());
    size_t count = array.bytes.size() / 4;
    double sum = 0;
    float least = values[0], most = values[0];
    for (size_t i = 0; i < count; ++i) {
      sum += values[i];
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    result["min"] = least;
    result["max"] = most;
    result["mean"] = sum / static_cast<double>(count);
  }
  return result;
}

int runRun(const ModelOptionsCli &options) {
  if (!options.output.empty())
    if (Status status = checkOutput(options.output, options.model); !status)
      return fail(status.error());
  auto given = readInputs(options.inputs);
  if (!given)
    return fail(given.error());
  auto opened = openModel(options.model, options.common, options.stages, *given);
  if (!opened)
    return fail(opened.error());
  if (opened->stopped)
    return 0;
  std::vector<std::shared_ptr<void>> memory;
  auto session = bindSession(*opened, options.common, *given, memory);
  if (!session)
    return fail(session.error());
  std::vector<double> times;
  const unsigned runs = std::max(1u, options.repeat);
  Progress progress(kBetweenLines);
  for (unsigned i = 0; i < runs; ++i) {
    progress.show("running", i, runs);
    auto start = Clock::now();
    if (Status status = (*session)->run(); !status)
      return fail(status.error());
    times.push_back(millis(Clock::now() - start));
  }
  Progress::erase();
  auto outputs = outputsOf(**session);
  if (!options.output.empty())
    if (Status status = writeNpz(options.output, outputs); !status)
      return fail(status.error());
  nlohmann::json report{{"outputs", nlohmann::json::object()}, {"run_ms", times}};
  for (const auto &[name, array] : outputs)
    report["outputs"][name] = describe(array);
  if (options.common.json) {
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  for (const auto &[name, array] : outputs) {
    nlohmann::json facts = describe(array);
    std::printf("%s: %s[%s]", name.c_str(), typeName(array.type),
                fmt::format("{}", fmt::join(array.extents, ",")).c_str());
    if (facts.contains("mean"))
      std::printf("  min %g, max %g, mean %g", facts["min"].get<double>(),
                  facts["max"].get<double>(), facts["mean"].get<double>());
    std::printf("\n");
  }
  std::sort(times.begin(), times.end());
  std::printf("%zu run%s, median %.3f ms\n", times.size(), times.size() == 1 ? "" : "s",
              times[times.size() / 2]);
  return 0;
}

int runBench(const ModelOptionsCli &options) {
  auto given = readInputs(options.inputs);
  if (!given)
    return fail(given.error());
  auto opened = openModel(options.model, options.common, options.stages, *given);
  if (!opened)
    return fail(opened.error());
  if (opened->stopped)
    return 0;
  if (options.tokens.tokens > 0)
    return benchTokens(options.model, *opened, options.common, *given, options.tokens);
  std::vector<std::shared_ptr<void>> memory;
  auto session = bindSession(*opened, options.common, *given, memory);
  if (!session)
    return fail(session.error());
  std::vector<double> times, stepSums;
  auto begin = Clock::now();
  double firstMillis = 0;
  constexpr unsigned kWarmUps = 3;
  Progress progress(kBetweenLines);
  for (unsigned i = 0;; ++i) {
    bool enough = options.runs > 0
                      ? times.size() >= options.runs
                      : times.size() >= 10 && millis(Clock::now() - begin) > options.seconds * 1000;
    if (enough)
      break;
    progress.show("timing runs", times.size(), options.runs);
    std::vector<double> steps;
    auto start = Clock::now();
    if (Status status = (*session)->run(options.profile ? &steps : nullptr); !status)
      return fail(status.error());
    double time = millis(Clock::now() - start);
    if (i == 0)
      firstMillis = time;
    if (i < kWarmUps)
      continue;
    times.push_back(time);
    stepSums.resize(steps.size());
    for (size_t s = 0; s < steps.size(); ++s)
      stepSums[s] += steps[s];
  }
  Progress::erase();
  std::sort(times.begin(), times.end());
  auto at = [&](double share) {
    return times[std::min(times.size() - 1, static_cast<size_t>(share * times.size()))];
  };
  nlohmann::json report{{"model", options.model},
                        {"threads", opened->model->threads()},
                        {"median_ms", at(0.5)},
                        {"p90_ms", at(0.9)},
                        {"min_ms", times.front()},
                        {"runs", times.size()},
                        {"load_ms", opened->loadMillis},
                        {"packing_ms", opened->model->loadTimes().packingMillis},
                        {"first_ms", firstMillis},
                        {"compile_ms", opened->compileMillis},
                        {"arena_bytes", (*session)->arenaBytes()}};
  if (options.profile) {
    nlohmann::json steps = nlohmann::json::array();
    for (uint32_t s = 0; s < stepSums.size(); ++s) {
      const PlanStep &planned = *opened->model->planned(s);
      steps.push_back(
          {{"nodes", planned.label},
           {"kernel", planned.choice.candidate.provider + ":" + planned.choice.candidate.algorithm},
           {"micros", stepSums[s] / static_cast<double>(times.size())}});
    }
    report["steps"] = std::move(steps);
  }
  if (options.common.json) {
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  std::printf("median %.3f ms, p90 %.3f ms, min %.3f ms over %zu runs at %u threads; load %.1f ms, "
              "of which packing %.1f ms; first run %.3f ms\n",
              at(0.5), at(0.9), times.front(), times.size(), opened->model->threads(),
              opened->loadMillis, opened->model->loadTimes().packingMillis, firstMillis);
  if (options.profile)
    for (const auto &step : report["steps"])
      std::printf("%10s  %-50s %s\n", duration(step["micros"].get<double>()).c_str(),
                  step["kernel"].get<std::string>().c_str(),
                  step["nodes"].get<std::string>().c_str());
  return 0;
}

int runCompile(const ModelOptionsCli &options) {
  if (isArtifactFile(options.model))
    return fail(badInput("{} is an artifact already; 'dovetail run' and 'bench' take it as it is",
                         options.model));
  std::string output = options.output.empty() ? options.model + ".dvt" : options.output;
  if (Status status = checkOutput(output, options.model); !status)
    return fail(status.error());
  auto given = readInputs(options.inputs);
  if (!given)
    return fail(given.error());
  auto session = makeSettings(options.common);
  if (!session)
    return fail(session.error());
  if (!options.temps.empty())
    if (Status status = checkTemps(options.temps); !status)
      return fail(status.error());
  auto plugins = std::make_shared<const PluginSet>(loadPlugins(*session, {}));
  CompileOptions compile = compileOptions(*session, options.stages);
  giveInputs(compile, *given);
  compile.states = options.common.states;
  auto start = Clock::now();
  Progress progress;
  compile.planner.progress = progress.callback();
  auto compilation = compileModel(options.model, compile, plugins);
  if (!compilation)
    return fail(compilation.error());
  if (compilation->plan.blocks.empty() || !options.stages.stopAfter.empty())
    return 0;
  progress.show("writing", 0, 0);
  ArtifactOptions artifactOptions;
  artifactOptions.measured = !options.withoutMeasured;
  if (Status status = writeArtifact(compilation->plan, output, artifactOptions); !status)
    return fail(status.error());
  if (!options.temps.empty())
    if (Status status = saveTemps(compilation->plan, session->environment, options.temps); !status)
      return fail(status.error());
  Progress::erase();
  double seconds = millis(Clock::now() - start) / 1000;
  const auto &statistics = compilation->statistics;
  if (options.common.json) {
    nlohmann::json report{{"artifact", output},
                          {"seconds", seconds},
                          {"regions", statistics.regions},
                          {"problems", statistics.problems},
                          {"problems_timed", statistics.timed},
                          {"problems_from_cache", statistics.fromCache},
                          {"problems_estimated", statistics.estimated},
                          {"candidates", statistics.candidates},
                          {"failed_candidates", statistics.failures},
                          {"complete", statistics.complete},
                          {"steps", compilation->plan.stepCount()}};
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  std::printf("%s: %zu steps; %zu problems (%zu timed, %zu from the cache, %zu by estimates), "
              "%zu candidates, %zu failed; %.1f s\n",
              output.c_str(), compilation->plan.stepCount(), statistics.problems, statistics.timed,
              statistics.fromCache, statistics.estimated, statistics.candidates,
              statistics.failures, seconds);
  return 0;
}

/// The plan of an artifact for a device, or of a model compiled for one: the device need not be
/// here.
Expected<std::optional<Plan>> planForDevice(const ModelOptionsCli &options,
                                            const std::map<std::string, Array> &given) {
  if (isArtifactFile(options.model)) {
    auto artifact = readArtifact(options.model, {true});
    if (!artifact)
      return artifact.takeError();
    return artifact->plan.device ? std::optional(std::move(artifact->plan)) : std::nullopt;
  }
  auto session = makeSettings(options.common);
  if (!session)
    return session.takeError();
  if (!session->device || !options.stages.stopAfter.empty())
    return std::optional<Plan>();
  CompileOptions compile = compileOptions(*session, options.stages);
  giveInputs(compile, given);
  compile.states = options.common.states;
  Progress progress;
  compile.planner.progress = progress.callback();
  auto compilation = compileModel(options.model, compile,
                                  std::make_shared<const PluginSet>(loadPlugins(*session, {})));
  if (!compilation)
    return compilation.takeError();
  return std::optional(std::move(compilation->plan));
}

void printPlan(const ModelOptionsCli &options, const Plan &plan,
               const std::vector<StepState> &states) {
  if (options.common.json)
    std::printf("%s\n", explainJson(plan, states).dump(2).c_str());
  else
    printExplanation(plan, states, options.all);
}

int runExplain(const ModelOptionsCli &options) {
  auto given = readInputs(options.inputs);
  if (!given)
    return fail(given.error());
  auto forDevice = planForDevice(options, *given);
  if (!forDevice)
    return fail(forDevice.error());
  if (*forDevice) {
    printPlan(options, **forDevice, {});
    return 0;
  }
  auto opened = openModel(options.model, options.common, options.stages, *given);
  if (!opened)
    return fail(opened.error());
  if (opened->stopped)
    return 0;
  printPlan(options, opened->model->plan(), opened->model->steps());
  return 0;
}

CLI::App *addCommand(CLI::App &app, const char *name, const char *help,
                     const std::shared_ptr<ModelOptionsCli> &options) {
  CLI::App *command = app.add_subcommand(name, help);
  command->add_option("model", options->model, "an ONNX model or an artifact")->required();
  options->common.addTo(*command);
  options->common.addPlanningTo(*command);
  options->inputs.addTo(*command);
  options->stages.addTo(*command);
  return command;
}

} // namespace

void addModelCommands(CLI::App &app, int &exitCode) {
  auto runOptions = std::make_shared<ModelOptionsCli>();
  CLI::App *run = addCommand(app, "run", "run a model or an artifact", runOptions);
  run->add_option("--output", runOptions->output, "FILE.npz for the outputs");
  run->add_option("--repeat", runOptions->repeat, "runs")->check(wholeNumber(1, 1000000));
  run->callback([runOptions, &exitCode] { exitCode = runRun(*runOptions); });

  auto compileOptions = std::make_shared<ModelOptionsCli>();
  CLI::App *compile = addCommand(app, "compile", "compile a model to an artifact", compileOptions);
  compile->add_option("-o,--output", compileOptions->output,
                      "the artifact (default: the model's name plus .dvt)");
  compile->add_flag("--without-measured", compileOptions->withoutMeasured,
                    "leave the measured times out");
  compile->add_option(
      "--save-temps", compileOptions->temps,
      "FOLDER for what goes into the plan's kernels and comes out: PTX, cubins, code "
      "objects, logs, sources of your own kernels");
  compile->callback([compileOptions, &exitCode] { exitCode = runCompile(*compileOptions); });

  auto benchOptions = std::make_shared<ModelOptionsCli>();
  CLI::App *bench = addCommand(app, "bench", "time a model or an artifact", benchOptions);
  bench
      ->add_option("--runs", benchOptions->runs,
                   "timed runs (default: as many as fit into --seconds, at least 10)")
      ->check(wholeNumber(1, 1000000));
  bench->add_option("--seconds", benchOptions->seconds, "time to spend on runs")->check(seconds());
  bench->add_flag("--profile", benchOptions->profile, "time every step, too");
  bench
      ->add_option("--tokens", benchOptions->tokens.tokens,
                   "run a decoder for so many tokens, its states (see --state) carried from one "
                   "to the next, and report tokens per second")
      ->check(wholeNumber(1, 1000000))
      ->excludes("--runs", "--seconds", "--profile");
  bench
      ->add_option("--past", benchOptions->tokens.past,
                   "with --tokens: length of the cache before the first (default: empty)")
      ->check(wholeNumber(0, 1000000000))
      ->needs("--tokens");
  bench->callback([benchOptions, &exitCode] {
    if (benchOptions->tokens.tokens > 0 && benchOptions->common.states.empty() &&
        !isArtifactFile(benchOptions->model))
      benchOptions->common.states = {"auto"};
    exitCode = runBench(*benchOptions);
  });

  auto explainOptions = std::make_shared<ModelOptionsCli>();
  CLI::App *explain =
      addCommand(app, "explain", "what was chosen, and what else was on offer", explainOptions);
  explain->add_flag("--all", explainOptions->all,
                    "every alternative, and the text of each problem");
  explain->callback([explainOptions, &exitCode] { exitCode = runExplain(*explainOptions); });
}

} // namespace dovetail::cli
