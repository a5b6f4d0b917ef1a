// SPDX-License-Identifier: Apache-2.0
//
// From a path and options to a session that can run.
#include "OpenedModel.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/ranges.h>

#include "Progress.h"
#include "artifact/ArtifactFormat.h"
#include "driver/WholeModel.h"

namespace dovetail::cli {
namespace {

double millisSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::string shapeText(const std::vector<int64_t> &extents) {
  return fmt::format("[{}]", fmt::join(extents, ","));
}

Status checkInput(const Plan &plan, uint32_t index, const Array &array, const SymbolValues &dims) {
  const PlanValue &value = plan.blocks.front().values[plan.blocks.front().inputs[index]];
  const std::vector<Extent> shape = borderExtents(plan, true, index);
  bool sameType = array.type == value.type || (value.type == DVT_BF16 && array.type == DVT_U16);
  if (!sameType)
    return badInput("input '{}' is given as {}, the model takes {}; convert it with numpy's astype",
                    plan.inputNames[index], typeName(array.type), typeName(value.type));
  bool sameRank = array.extents.size() == shape.size();
  bool fits = sameRank;
  std::string expected;
  for (size_t i = 0; i < shape.size(); ++i) {
    expected += (i ? "," : "") + shape[i].text();
    if (sameRank && shape[i].isStatic())
      fits &= shape[i].value() == array.extents[i];
  }
  if (!fits)
    return badInput("input '{}' is given with shape {}, the model takes [{}]",
                    plan.inputNames[index], shapeText(array.extents), expected);
  for (size_t i = 0; i < shape.size(); ++i)
    if (auto wanted = shape[i].evaluate(dims); wanted && *wanted != array.extents[i])
      return badInput(
          "input '{}' is given with {} for the dimension '{}', for which --dim gives {}",
          plan.inputNames[index], array.extents[i], shape[i].text(), *wanted);
  return Status::success();
}

std::string openDimensions(const Plan &plan) {
  std::set<std::string> names;
  for (const SymbolSource &source : plan.blocks.front().symbolSources)
    names.insert(source.symbol);
  if (names.empty())
    return "the artifact was compiled with fixed dimensions; compile the model again for others";
  return fmt::format("the open dimensions of the artifact are {}", fmt::join(names, ", "));
}

} // namespace

void InputOptions::addTo(CLI::App &app) {
  app.add_option("--input", input, "NAME=FILE.npy: one input (may be repeated)")
      ->allow_extra_args(false);
  app.add_option("--inputs", inputs,
                 "FILE.npz with inputs by name; those not given are filled with seeded noise");
}

void StageOptions::addTo(CLI::App &app) {
  app.add_option("--stop-after", stopAfter, "STAGE: end after import, graph, regions or plan");
  app.add_option("--dump", dumps,
                 "STAGE: print what a stage gives on standard error (may be repeated)")
      ->allow_extra_args(false);
}

bool isArtifactFile(const std::string &path) {
  std::array<char, kArtifactMagic.size()> bytes{};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) // opening a pipe would wait
    return false;
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  return file.gcount() == static_cast<std::streamsize>(bytes.size()) && bytes == kArtifactMagic;
}

Expected<std::map<std::string, Array>> readInputs(const InputOptions &options) {
  std::map<std::string, Array> arrays;
  if (!options.inputs.empty()) {
    auto read = readNpz(options.inputs);
    if (!read)
      return read.takeError();
    arrays = std::move(*read);
  }
  std::set<std::string> named;
  for (const std::string &text : options.input) {
    size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return badInput("--input '{}': expected NAME=FILE.npy", text);
    std::string name = text.substr(0, equals);
    if (!named.insert(name).second)
      return badInput("--input gives '{}' twice", name);
    auto array = readNpy(text.substr(equals + 1));
    if (!array)
      return array.takeError();
    arrays[name] = std::move(*array);
  }
  return arrays;
}

Status checkOutput(const std::string &output, const std::string &model) {
  if (Status status = checkWritable(output); !status)
    return status;
  std::error_code ignored;
  if (std::filesystem::equivalent(output, model, ignored))
    return badInput("{}: would be overwritten, but it is the model itself; give another name",
                    output);
  return Status::success();
}

void giveInputs(CompileOptions &options, const std::map<std::string, Array> &given) {
  for (const auto &[name, array] : given) {
    options.inputExtents[name] = array.extents;
    options.inputTypes[name] = array.type;
  }
}

CompileOptions compileOptions(const Settings &session, const StageOptions &stages) {
  CompileOptions options;
  options.environment = session.environment;
  options.target = session.target;
  options.device = session.device;
  options.planner = session.planner;
  options.prefer = session.prefer;
  options.cacheFolder = session.cacheFolder;
  options.dims = session.dims;
  options.stopAfter = stages.stopAfter;
  options.dumps = stages.dumps;
  options.dump = [](const std::string &, const std::string &text) {
    Progress::erase();
    std::fputs(text.c_str(), stderr);
  };
  options.log = session.log;
  return options;
}

Expected<OpenedModel> openModel(const std::string &path, const CommonOptions &common,
                                const StageOptions &stages,
                                const std::map<std::string, Array> &given) {
  auto session = makeSettings(common);
  if (!session)
    return session.takeError();
  OpenedModel opened;
  opened.isArtifact = isArtifactFile(path);
  ModelOptions modelOptions;
  modelOptions.threads = common.threads;
  modelOptions.log = session->log;
  modelOptions.alternatives = true;
  modelOptions.deviceDrivers = session->environment.deviceDrivers;
  Progress progress;
  auto start = std::chrono::steady_clock::now();
  if (opened.isArtifact) {
    if (!stages.stopAfter.empty() || !stages.dumps.empty() || !common.force.empty() ||
        common.prefer != "cost" || !common.only.empty() || common.deterministic || session->device)
      return badInput("{} is an artifact, whose plan is made; --stop-after, --dump, --force, "
                      "--prefer, --only, --target and --deterministic need the model",
                      path);
    modelOptions.findPlugins = [&](const std::vector<std::string> &names) {
      return opened.plugins = std::make_shared<const PluginSet>(loadPlugins(*session, names, true));
    };
    progress.show("loading", 0, 0);
    auto model = Model::load(path, modelOptions);
    if (!model)
      return model.takeError();
    opened.model = std::move(*model);
    opened.loadMillis = millisSince(start);
    if (!common.planningGiven.empty())
      session->log(LogLevel::Warning, "{} is an artifact, whose plan is made; {} changes nothing",
                   path, fmt::join(common.planningGiven, " or "));
    return opened;
  }
  opened.plugins = std::make_shared<const PluginSet>(loadPlugins(*session, {}));
  modelOptions.plugins = opened.plugins;
  CompileOptions options = compileOptions(*session, stages);
  options.planner.progress = progress.callback();
  giveInputs(options, given);
  options.states = common.states;
  auto compilation = compileModel(path, options, opened.plugins);
  if (!compilation)
    return compilation.takeError();
  opened.compileMillis = millisSince(start);
  opened.statistics = compilation->statistics;
  if (compilation->plan.blocks.empty() || stages.stopAfter == "plan") {
    opened.stopped = true;
    return opened;
  }
  if (!compilation->statistics.complete)
    session->log(LogLevel::Warning,
                 "the budget of {} s ended before all candidates were timed; --budget gives more",
                 common.budget);
  progress.show("loading", 0, 0);
  start = std::chrono::steady_clock::now();
  modelOptions.threads = session->target.threads;
  auto model = Model::create(std::move(compilation->plan), modelOptions);
  if (!model)
    return model.takeError();
  opened.model = std::move(*model);
  opened.loadMillis = millisSince(start);
  return opened;
}

Expected<std::unique_ptr<Session>> bindSession(const OpenedModel &opened,
                                               const CommonOptions &common,
                                               const std::map<std::string, Array> &given,
                                               std::vector<std::shared_ptr<void>> &memory) {
  auto settings = makeSettings(common);
  if (!settings)
    return settings.takeError();
  const Plan &plan = opened.model->plan();
  for (const auto &[name, array] : given)
    if (std::find(plan.inputNames.begin(), plan.inputNames.end(), name) == plan.inputNames.end())
      return badInput("there is no input '{}'; the inputs are {}", name,
                      fmt::join(plan.inputNames, ", "));
  for (const auto &[name, value] : settings->dims)
    if (opened.isArtifact &&
        std::none_of(plan.blocks.front().symbolSources.begin(),
                     plan.blocks.front().symbolSources.end(),
                     [&, &wanted = name](const auto &source) { return source.symbol == wanted; }))
      return badInput("--dim sets '{}' to {}, but {}", name, value, openDimensions(plan));
  auto session = Session::create(opened.model);
  if (!session)
    return session.takeError();
  std::vector<bool> bound(plan.inputNames.size(), false);
  for (uint32_t i = 0; i < plan.inputNames.size(); ++i) {
    auto array = given.find(plan.inputNames[i]);
    if (array == given.end())
      continue;
    if (Status status = checkInput(plan, i, array->second, settings->dims); !status)
      return status.takeError();
    size_t bytes = std::max<size_t>(64, (array->second.bytes.size() + 63) / 64 * 64);
    std::shared_ptr<void> data(std::aligned_alloc(64, bytes), std::free);
    std::memcpy(data.get(), array->second.bytes.data(), array->second.bytes.size());
    memory.push_back(data);
    if (Status status = (*session)->bindInput(i, data.get(), array->second.extents); !status)
      return status.takeError();
    bound[i] = true;
  }
  SymbolValues sizes = settings->dims;
  if (!opened.isArtifact)
    for (const auto &[name, size] : settings->planner.typical)
      sizes.try_emplace(Extent::symbol(name).text(), size);
  if (Status status = bindNoise(**session, plan, bound, memory, sizes); !status)
    return status.takeError();
  return session;
}

} // namespace dovetail::cli
