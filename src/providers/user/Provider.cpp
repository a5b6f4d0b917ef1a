// SPDX-License-Identifier: Apache-2.0
//
// The plug-in of users' own kernels. Their manifests stand among the folders in which libraries are
// looked for (dvt_host.library_path): a user's kernel is a library of its own. Where a plan is made
// and there are none, the plug-in has nothing to do and says so; running a plan takes none.
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/schedule/Schedule.h"
#include "providers/ProviderTable.h"
#include "providers/native/CompactProblem.h"
#include "providers/native/CompilerDoor.h"
#include "providers/native/DriverSet.h"
#include "providers/native/LoadedDeviceKernel.h"
#include "support/Hash.h"
#include "toolchain/SourceCompiler.h"
#include "toolchain/UserKernel.h"

using namespace dovetail;
using native::report;
using toolchain::KernelLaunch;
using toolchain::UserKernel;

namespace {

/// Kernels made by an earlier one load as long as this stays.
constexpr const char *kVersion = "1";

bool runsOnly(const dvt_host *host) {
  constexpr size_t end = offsetof(dvt_host, runs_only) + sizeof(dvt_host::runs_only);
  return host && host->struct_size >= end && host->runs_only;
}

struct UserProvider {
  using Kernel = native::LoadedDeviceKernel;
  static constexpr const char *name() { return "user"; }
  static dvt_code create(const dvt_host *host, std::unique_ptr<UserProvider> &made,
                         dvt_error *error);
  explicit UserProvider(const dvt_host *host)
      : drivers(host), tools(host && host->library_path ? host->library_path : "") {}
  dvt_code propose(const dvt_target *target, const dvt_problem *given,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code compile(const dvt_target *target, const dvt_problem *given,
                   const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *given,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  Status readKernels(const std::string &libraryPath);

  native::DriverSet drivers;
  toolchain::Tools tools;
  std::vector<UserKernel> kernels;
  std::string version = kVersion;
  dvt_provider_info info{};
};

/// Measurements hold for these kernels, as these compilers make them.
Status UserProvider::readKernels(const std::string &libraryPath) {
  Hasher hasher;
  for (const std::string &file : toolchain::manifestsIn(libraryPath)) {
    auto kernel = UserKernel::read(file);
    if (!kernel)
      return kernel.takeError();
    auto compiler = toolchain::compilerFor(tools, kernel->isCuda ? "sm_80" : "gfx90a");
    hasher.update(kernel->digest + (compiler ? compiler->description() : "no compiler"));
    kernels.push_back(std::move(*kernel));
  }
  if (!kernels.empty())
    version += "#" + hexText(hasher.digest());
  return Status::success();
}

dvt_code UserProvider::create(const dvt_host *host, std::unique_ptr<UserProvider> &made,
                              dvt_error *error) {
  made.reset(new (std::nothrow) UserProvider(host));
  if (!made)
    return report(error, DVT_OUT_OF_MEMORY, "no memory for the provider of users' kernels");
  if (host && host->library_path)
    if (Status status = made->readKernels(host->library_path); !status)
      return report(error, status.error());
  if (made->kernels.empty() && !runsOnly(host))
    return report(error, DVT_UNAVAILABLE,
                  "no kernel of the user's own was given; --kernel FILE.json does");
  made->info.struct_size = sizeof(made->info);
  made->info.name = name();
  made->info.version = made->version.c_str();
  made->info.can_compile = !made->kernels.empty();
  made->info.concurrent_prepare = 1;
  return DVT_OK;
}

void offer(const UserKernel &kernel, const KernelLaunch &launch, const dvt_problem &problem,
           const dvt_candidate_sink &sink) {
  const std::vector<const char *> rowMajor(problem.input_count + problem.output_count, "");
  dvt_candidate candidate{};
  candidate.struct_size = sizeof(candidate);
  candidate.algorithm = kernel.name.c_str();
  candidate.input_layouts = candidate.output_layouts = rowMajor.data();
  candidate.workspace_bytes = uint64_t(launch.workspaceBytes);
  candidate.packing = DVT_PACKING_NONE;
  candidate.threading = DVT_THREADING_SERIAL;
  candidate.numerics = kernel.numerics.c_str();
  candidate.deterministic = kernel.deterministic;
  candidate.estimate_micros = -1;
  candidate.memory = DVT_MEMORY_DEVICE;
  sink.candidate(sink.context, &candidate);
}

/// The text is the problem's identity, and reading it gives the problem.
Expected<Problem> problemOf(const dvt_problem &problem) {
  return problem.text ? Problem::parse(problem.text)
                      : Expected<Problem>(badInput("a problem without its text"));
}

dvt_code UserProvider::propose(const dvt_target *target, const dvt_problem *given,
                               const dvt_candidate_sink *sink, dvt_error *error) {
  if (std::string_view(target->device) == "cpu")
    return report(error, DVT_UNSUPPORTED, "users' kernels are for devices");
  auto problem = problemOf(*given);
  if (!problem)
    return report(error, problem.error());
  const native::CompactProblem compact(*given);
  if (!codegen::indexDemands(codegen::ProblemReader(*compact.get())).empty())
    return report(error, DVT_UNSUPPORTED,
                  "indices that are known only at run time are not checked by users' kernels");
  std::string first;
  bool offered = false;
  for (const UserKernel &kernel : kernels) {
    std::string reason;
    auto launch = kernel.launchFor(*problem, target->device, target->architecture, reason);
    if (launch)
      if (auto compiler = toolchain::compilerFor(tools, target->architecture); !compiler)
        reason = compiler.error().message;
    if (launch && reason.empty()) {
      offer(kernel, *launch, *given, *sink);
      offered = true;
      continue;
    }
    if (reason.empty())
      continue;
    if (first.empty())
      first = fmt::format("{}: {}", kernel.name, reason);
    if (sink->refusal)
      sink->refusal(sink->context, kernel.name.c_str(), reason.c_str());
  }
  if (offered)
    return DVT_OK;
  return report(error, DVT_UNSUPPORTED,
                first.empty() ? "no user's kernel is for these ops" : first);
}

dvt_code UserProvider::compile(const dvt_target *target, const dvt_problem *given,
                               const dvt_candidate *candidate, const dvt_bytes_sink *sink,
                               dvt_error *error) {
  auto problem = problemOf(*given);
  if (!problem)
    return report(error, problem.error());
  for (const UserKernel &kernel : kernels) {
    std::string reason;
    if (!candidate->algorithm || kernel.name != candidate->algorithm)
      continue;
    auto launch = kernel.launchFor(*problem, target->device, target->architecture, reason);
    if (!launch)
      return report(error, DVT_UNSUPPORTED, reason);
    auto compiled = kernel.compile(tools, *launch, target->architecture);
    if (!compiled)
      return report(error, compiled.error());
    const std::vector<uint8_t> bytes = compiled->serialise();
    sink->bytes(sink->context, bytes.data(), bytes.size());
    return DVT_OK;
  }
  return report(error, DVT_UNSUPPORTED,
                fmt::format("no kernel '{}' was given with --kernel",
                            candidate->algorithm ? candidate->algorithm : ""));
}

/// All that a run depends on is in the kernel's bytes: the manifest is not needed any more.
bool isTakeable(const dvt_candidate &candidate, const dvt_problem &problem) {
  auto areRowMajor = [](const char *const *layouts, uint32_t count) {
    for (uint32_t i = 0; layouts && i < count; ++i)
      if (layouts[i] && *layouts[i])
        return false;
    return true;
  };
  constexpr size_t end = offsetof(dvt_candidate, memory) + sizeof(dvt_candidate::memory);
  return candidate.struct_size >= end && candidate.memory == DVT_MEMORY_DEVICE &&
         candidate.algorithm && areRowMajor(candidate.input_layouts, problem.input_count) &&
         areRowMajor(candidate.output_layouts, problem.output_count);
}

dvt_code UserProvider::prepare(const dvt_target *target, const dvt_problem *given,
                               const dvt_candidate *candidate, const dvt_prepare_args *args,
                               std::unique_ptr<Kernel> &made, dvt_error *error) {
  if (std::string_view(target->device) == "cpu" || !isTakeable(*candidate, *given))
    return report(error, DVT_UNSUPPORTED,
                  "this is not a kernel of a user's for a device, in row-major layouts");
  auto machine = codegen::Machine::of(*target);
  if (!machine)
    return report(error, DVT_UNSUPPORTED, machine.error().message);
  auto driver = drivers.of(target->device);
  if (!driver)
    return report(error, driver.error());
  const native::CompactProblem compact(*given);
  auto loaded = native::LoadedDeviceKernel::load(codegen::ProblemReader(*compact.get()), *machine,
                                                 *driver, *args);
  if (!loaded)
    return report(error, loaded.error());
  made = std::move(*loaded);
  return DVT_OK;
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<UserProvider>::get(host_abi_version);
}
