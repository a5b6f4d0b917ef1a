// SPDX-License-Identifier: Apache-2.0
//
// dvt_compile: the compiler's side of the C API, in a library of its own, so that programs that
// only run models load neither LLVM nor protobuf.
#include <charconv>
#include <cstring>
#include <new>

#include "artifact/Artifact.h"
#include "device/DeviceDescription.h"
#include "dovetail/dovetail.h"
#include "driver/Compiler.h"
#include "driver/UserKernels.h"

namespace dovetail {
namespace {

std::vector<std::string> splitList(const char *text, char separator) {
  std::vector<std::string> parts;
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    size_t end = std::min(rest.find(separator), rest.size());
    if (end > 0)
      parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parts;
}

Status readSizes(const char *option, const char *text, SymbolValues &values) {
  for (const std::string &part : splitList(text, ',')) {
    size_t equals = part.find('=');
    int64_t value = 0;
    const char *end = part.data() + part.size();
    if (equals == std::string::npos || equals == 0)
      return badInput("{}: '{}' is not NAME=N", option, part);
    auto [stop, failure] = std::from_chars(part.data() + equals + 1, end, value);
    if (failure != std::errc() || stop != end || value < 0)
      return badInput("{}: '{}' is not NAME=N with a whole number of at least 0", option, part);
    values[part.substr(0, equals)] = value;
  }
  return Status::success();
}

Status readChoice(const dvt_compile_options &given, CompileOptions &options) {
  std::string select = given.select ? given.select : "measure";
  if (select == "measure")
    options.planner.select = plan::Select::Measure;
  else if (select == "estimate")
    options.planner.select = plan::Select::Estimate;
  else if (select == "replay")
    options.planner.select = plan::Select::Replay;
  else
    return badInput("select is '{}'; it may be measure, estimate or replay", select);
  std::string prefer = given.prefer ? given.prefer : "cost";
  if (prefer == "library")
    options.prefer = plan::Prefer::Library;
  else if (prefer == "native")
    options.prefer = plan::Prefer::Native;
  else if (prefer != "cost")
    return badInput("prefer is '{}'; it may be library, native or NULL", prefer);
  if (given.memory) {
    auto bound = plan::MemoryBound::parse(given.memory);
    if (!bound)
      return badInput("memory: {}", bound.error().message);
    options.planner.memory = *bound;
  }
  if (given.runs_per_load > 0)
    options.planner.preparation.runs = given.runs_per_load;
  if (given.lock_file)
    return badInput("lock_file is '{}'; replay reads the plan cache, set cache_path",
                    given.lock_file);
  if (Status status = readSizes("typical", given.typical, options.planner.typical); !status)
    return status;
  return readSizes("dimensions", given.dimensions, options.dims);
}

Status compile(const char *modelPath, const char *artifactPath, const dvt_compile_options &given) {
  if (!modelPath || !artifactPath)
    return badInput("dvt_compile needs the path of a model and of the artifact");
  CompileOptions options;
  options.environment = Environment::detect();
  std::vector<std::string> folders = splitList(given.plugin_path, ':');
  options.environment.pluginFolders.insert(options.environment.pluginFolders.begin(),
                                           folders.begin(), folders.end());
  if (given.vendor_path)
    options.environment.vendorPath =
        std::string(given.vendor_path) + ":" + options.environment.vendorPath;
  options.log = {given.log, given.log_context, static_cast<LogLevel>(given.log_level)};
  options.target = Target::host(given.threads);
  if (given.target && std::string_view(given.target) != "cpu") {
    auto found = device::findDescription(given.target, options.environment.deviceFolders);
    if (!found)
      return found.takeError();
    options.device = found->target();
  }
  if (Status status = addUserKernels(splitList(given.kernels, ':'), options.device.has_value(),
                                     options.environment);
      !status)
    return status;
  options.cacheFolder = given.cache_path ? given.cache_path : options.environment.cacheFolder;
  if (Status status = readChoice(given, options); !status)
    return status;
  plan::PlannerOptions &planner = options.planner;
  planner.only = splitList(given.only, ',');
  if (given.measure_seconds > 0)
    planner.budgetSeconds = given.measure_seconds;
  planner.deterministic = given.deterministic != 0;
  options.states = splitList(given.states, ',');
  planner.log = options.log;
  planner.worker.executable = options.environment.worker;
  planner.worker.plugins = options.environment.pluginFolders;
  planner.worker.vendorPath = options.environment.vendorPath;
  planner.worker.only = planner.only;
  auto plugins = std::make_shared<const PluginSet>(loadPlugins(options.environment, options.log));
  auto compilation = compileModel(modelPath, options, plugins);
  if (!compilation)
    return compilation.takeError();
  return writeArtifact(compilation->plan, artifactPath);
}

dvt_code report(dvt_error *error, dvt_code code, const std::string &message) {
  if (error) {
    std::strncpy(error->message, message.c_str(), sizeof error->message - 1);
    error->message[sizeof error->message - 1] = '\0';
  }
  return code;
}

} // namespace
} // namespace dovetail

extern "C" DVT_EXPORT dvt_code dvt_compile(const char *model_path, const char *artifact_path,
                                           const dvt_compile_options *options, dvt_error *error) {
  using namespace dovetail;
  try {
    dvt_compile_options given{};
    if (options)
      std::memcpy(&given, options, std::min<size_t>(options->struct_size, sizeof given));
    Status status = compile(model_path, artifact_path, given);
    if (status)
      return DVT_OK;
    switch (status.error().kind) {
    case ErrorKind::BadInput:
      return report(error, DVT_BAD_INPUT, status.error().message);
    case ErrorKind::Unavailable:
      return report(error, DVT_UNAVAILABLE, status.error().message);
    case ErrorKind::Cancelled:
      return report(error, DVT_CANCELLED, status.error().message);
    case ErrorKind::Internal:
      break;
    }
    return report(error, DVT_FAILED, status.error().message);
  } catch (const std::bad_alloc &) {
    return report(error, DVT_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &exception) {
    return report(error, DVT_FAILED, exception.what());
  }
}
