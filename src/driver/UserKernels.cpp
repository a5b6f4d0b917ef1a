// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "driver/UserKernels.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "support/DeviceKernel.h"
#include "support/File.h"
#include "toolchain/UserKernel.h"

namespace dovetail {

namespace {

namespace fs = std::filesystem;
using toolchain::UserKernel;

constexpr const char *kProvider = "user";

/// Letters, digits and what else file names may have everywhere.
std::string fileName(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) {
        bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        return !isPlain && std::string_view("_-.").find(c) == std::string_view::npos;
      },
      '-');
  return text.substr(0, 120);
}

std::string aboutKernel(const Plan &plan, const PlanStep &step, const DeviceKernel &kernel) {
  const Candidate &candidate = step.choice.candidate;
  std::string text =
      fmt::format("kernel    {}:{}\nnodes     {}\nproblem   {}\nworkspace {} bytes\n",
                  candidate.provider, candidate.algorithm, step.label,
                  step.problem < plan.problems.size() ? plan.problems[step.problem] : "",
                  kernel.workspaceBytes);
  for (const DeviceLaunch &launch : kernel.launches)
    text += fmt::format("launch    {}: {} blocks of {} threads, {} arguments\n", launch.entry,
                        launch.blocks.text(), launch.threads, launch.arguments.size());
  for (const DeviceImage &image : kernel.images) {
    text += fmt::format("image     {} {}: {} bytes\n", kindName(image.kind), image.architecture,
                        image.bytes.size());
    for (size_t i = 0; i < image.resources.size(); ++i) {
      const DeviceResources &one = image.resources[i];
      text += fmt::format("  {}: {} registers, {} bytes of spills, {} of stack, {} shared\n",
                          kernel.launches[i].entry, one.registers, one.spillBytes, one.stackBytes,
                          one.sharedBytes);
    }
  }
  return text;
}

Status saveImages(const DeviceKernel &kernel, const std::string &stem) {
  std::map<std::string, std::string> files;
  for (const DeviceImage &image : kernel.images) {
    std::string text(image.bytes.begin(), image.bytes.end());
    if (image.kind == DeviceImage::Kind::Log) {
      files[stem + ".log"] += fmt::format("{}:\n{}\n", image.architecture, text);
      continue;
    }
    if (image.kind == DeviceImage::Kind::Ptx && text.ends_with('\0'))
      text.pop_back();
    files[fmt::format("{}.{}.{}", stem, image.architecture, kindName(image.kind))] =
        std::move(text);
  }
  for (const auto &[path, content] : files)
    if (Status status = writeFile(path, content); !status)
      return status;
  return Status::success();
}

Status saveSource(const UserKernel &kernel, const std::string &stem) {
  for (const auto &[from, ending] :
       {std::pair(kernel.source, fs::path(kernel.source).extension().string()),
        std::pair(kernel.manifest, std::string(".json"))}) {
    auto text = readFile(from);
    if (!text)
      return text.takeError();
    if (Status status = writeFile(stem + ending, *text); !status)
      return status;
  }
  return Status::success();
}

} // namespace

Status addUserKernels(const std::vector<std::string> &manifests, bool hasDevice,
                      Environment &environment) {
  if (!manifests.empty() && !hasDevice)
    return badInput("--kernel={}: users' kernels are for devices; name one with --target",
                    manifests[0]);
  std::set<std::string> names;
  std::string entries;
  for (const std::string &given : manifests) {
    std::error_code error;
    const std::string path = fs::absolute(given, error).lexically_normal().string();
    if (error || !fs::is_regular_file(path, error))
      return badInput("--kernel={}: there is no such file", given);
    if (!path.ends_with(".json") || path.find(':') != std::string::npos)
      return badInput("--kernel={}: a manifest's name ends in .json, and no ':' is in its path",
                      given);
    auto kernel = UserKernel::read(path);
    if (!kernel)
      return kernel.takeError();
    if (!names.insert(kernel->name).second)
      return badInput("--kernel={}: the name '{}' was given to another kernel already", given,
                      kernel->name);
    entries += path + ":";
  }
  environment.vendorPath = entries + environment.vendorPath;
  return Status::success();
}

void warnOfUserKernels(const plan::Planner &planner, const Log &log) {
  std::set<std::string> said;
  for (const plan::Trial &trial : planner.failed(kProvider))
    if (said.insert(trial.candidate.algorithm).second)
      log(LogLevel::Warning, "the kernel {}:{} is not used: {}: {}", kProvider,
          trial.candidate.algorithm, plan::outcomeName(trial.outcome), trial.detail);
}

Status checkTemps(const std::string &folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return fs::is_directory(folder, error)
             ? Status::success()
             : Status(badInput("--save-temps={}: is no folder and cannot be made one", folder));
}

Status saveTemps(const Plan &plan, const Environment &environment, const std::string &folder) {
  if (Status status = checkTemps(folder); !status)
    return status;
  std::map<std::string, UserKernel> given;
  for (const std::string &manifest : toolchain::manifestsIn(environment.vendorPath))
    if (auto kernel = UserKernel::read(manifest))
      given.emplace(kernel->name, std::move(*kernel));
  std::set<int32_t> saved;
  for (const PlanBlock &block : plan.blocks)
    for (const PlanStep &step : block.steps) {
      const int32_t number = step.choice.kernel;
      if (number < 0 || !saved.insert(number).second)
        continue;
      const Candidate &candidate = step.choice.candidate;
      const std::string stem = fmt::format(
          "{}/{:03}-{}", folder, number, fileName(candidate.provider + "-" + candidate.algorithm));
      const KernelBytes &bytes = plan.kernels[size_t(number)];
      auto kernel = DeviceKernel::parse({bytes.data(), bytes.size()});
      Status status = kernel
                          ? saveImages(*kernel, stem)
                          : writeFile(stem + ".kernel",
                                      {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
      if (status && kernel)
        status = writeFile(stem + ".txt", aboutKernel(plan, step, *kernel));
      if (auto own = given.find(candidate.algorithm);
          status && candidate.provider == kProvider && own != given.end())
        status = saveSource(own->second, stem);
      if (!status)
        return status;
    }
  return Status::success();
}

} // namespace dovetail
