// SPDX-License-Identifier: Apache-2.0
//
// The plug-in of Dovetail's own kernels: proposes what the schedule families offer, loads and runs
// kernels. Compiling is in a shared object of its own, loaded from this one's folder at the first
// compile, so that a machine that only runs models needs no LLVM.
#include <dlfcn.h>
#include <mutex>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "codegen/schedule/Divisors.h"
#include "codegen/schedule/IndexDemands.h"
#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/DeviceTime.h"
#include "device/DeviceDescription.h"
#include "graph/OpRegistry.h"
#include "providers/native/CompactProblem.h"
#include "providers/native/CompilerDoor.h"
#include "providers/native/DriverSet.h"
#include "providers/native/Fingerprint.h"
#include "providers/native/LoadedDeviceKernel.h"
#include "providers/native/LoadedKernel.h"

using namespace dovetail;
using namespace dovetail::native;

struct dvt_provider {
  explicit dvt_provider(const dvt_host *host) : drivers(host) {}
  dvt_provider_info info{};
  std::string compilerPath;
  void *compiler = nullptr;
  CompileFunction compile = nullptr;
  DriverSet drivers;
  void *logContext = nullptr;
  decltype(dvt_host::log) log = nullptr;
  std::mutex mutex; ///< guards what follows, as several threads may prepare
  bool saidSlower = false;

  /// Once: loading takes longer than it should.
  void sayPassedOver(const std::string &why);
};

/// One of the two.
struct dvt_kernel {
  std::unique_ptr<LoadedKernel> onHost;
  std::unique_ptr<LoadedDeviceKernel> onDevice;
};

void dvt_provider::sayPassedOver(const std::string &why) {
  constexpr int kWarning = 2;
  std::lock_guard lock(mutex);
  if (std::exchange(saidSlower, true) || !log)
    return;
  std::string text =
      fmt::format("own kernels are assembled by the driver, which takes a while each "
                  "time a plan is loaded: {}",
                  why);
  log(logContext, kWarning, text.c_str());
}

namespace {

dvt_code create(const dvt_host *host, dvt_provider **provider, dvt_error *error) {
  auto *made = new (std::nothrow) dvt_provider(host);
  if (!made)
    return report(error, DVT_OUT_OF_MEMORY, "no memory for the native provider");
  if (host) {
    made->logContext = host->log_context;
    made->log = host->log;
  }
  Dl_info self;
  if (::dladdr(reinterpret_cast<void *>(&create), &self) && self.dli_fname) {
    std::string path = self.dli_fname;
    made->compilerPath = path.substr(0, path.rfind('/') + 1) + kCompilerFile;
  }
  made->info.struct_size = sizeof(made->info);
  made->info.name = "native";
  static const std::string version =
      fmt::format("{}#{}", codegen::kImageVersion, kNativeFingerprint);
  made->info.version = version.c_str();
  made->info.concurrent_prepare = 1;
  made->info.can_compile = ::access(made->compilerPath.c_str(), R_OK) == 0;
  *provider = made;
  return DVT_OK;
}

/// The compiler stays loaded: LLVM does not like to be unloaded while threads that used it live.
void destroy(dvt_provider *provider) { delete provider; }

const dvt_provider_info *info(dvt_provider *provider) { return &provider->info; }

void offer(const codegen::Schedule &schedule, const codegen::Machine &machine,
           const dvt_problem &problem, const dvt_candidate_sink &sink) {
  std::vector<const char *> inputs, outputs;
  for (const std::string &layout : schedule.inputLayouts)
    inputs.push_back(layout.c_str());
  for (const std::string &layout : schedule.outputLayouts)
    outputs.push_back(layout.c_str());
  dvt_candidate candidate{};
  candidate.struct_size = sizeof(candidate);
  candidate.algorithm = schedule.algorithm.c_str();
  candidate.input_layouts = inputs.data();
  candidate.output_layouts = outputs.data();
  auto aligned = [](uint64_t bytes) { return (bytes + 63) / 64 * 64; };
  candidate.workspace_bytes =
      aligned(schedule.workspaceBytes) +
      aligned(schedule.scratchBytes) * (machine.isDevice() ? 1 : machine.threads);
  for (uint64_t bytes : schedule.packedBytes)
    candidate.packed_bytes += bytes;
  candidate.packing = candidate.packed_bytes ? DVT_PACKING_AT_LOAD : DVT_PACKING_NONE;
  candidate.threading = machine.isDevice() ? DVT_THREADING_SERIAL : DVT_THREADING_PARALLEL_FOR;
  candidate.numerics = schedule.numerics;
  candidate.deterministic = 1;
  candidate.runtime_extents = 1;
  candidate.estimate_micros = schedule.estimateMicros;
  candidate.memory = machine.isDevice() ? DVT_MEMORY_DEVICE : DVT_MEMORY_HOST;
  sink.candidate(sink.context, &candidate);
}

/// Why the problem is not for this build of native; empty when it is.
std::string findForeign(const dvt_problem &problem) {
  for (uint32_t i = 0; i < problem.op_count; ++i) {
    const dvt_op &op = problem.ops[i];
    // What the graph has no name for is a change of layout between kernels, of which there is one.
    const graph::OpInfo *info = graph::findOp(op.name);
    int64_t known = info ? int64_t(info->version) : 1;
    if (op.version > known)
      return fmt::format("{} of op set {} is newer than the {} that native knows", op.name,
                         op.version, known);
  }
  return {};
}

bool hasStrides(const dvt_problem &problem) {
  for (uint32_t i = 0; i < problem.value_count; ++i)
    if (problem.values[i].strides)
      return true;
  return false;
}

dvt_code propose(dvt_provider *, const dvt_target *target, const dvt_problem *given,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  const CompactProblem compact(*given);
  const dvt_problem *problem = compact.get();
  auto machine = codegen::Machine::of(*target);
  if (!machine)
    return report(error, DVT_UNSUPPORTED, machine.error().message);
  if (hasStrides(*problem))
    return report(error, DVT_UNSUPPORTED, "native kernels take dense tensors only");
  if (std::string why = findForeign(*problem); !why.empty())
    return report(error, DVT_UNSUPPORTED, why);
  codegen::ProblemReader reader(*problem);
  std::string reason;
  const bool divides = !codegen::divisorInputs(reader, &reason).empty();
  if (!reason.empty())
    return report(error, DVT_UNSUPPORTED, reason);
  if (machine->isDevice() && divides)
    return report(error, DVT_UNSUPPORTED,
                  "divisors that are known only at run time are checked on the processor");
  bool offered = false;
  codegen::ScheduleSink schedules;
  const size_t checks = machine->isDevice() ? codegen::indexDemands(reader).size() : 0;
  auto described = machine->isDevice()
                       ? device::DeviceDescription::of(*target)
                       : Expected<device::DeviceDescription>(device::DeviceDescription());
  schedules.offer = [&](codegen::Schedule schedule) {
    offered = true;
    if (machine->isDevice() && described)
      if (auto micros = codegen::deviceMicros(reader, *machine, *described, schedule))
        schedule.estimateMicros = *micros;
    schedule.workspaceBytes = codegen::workspaceWithChecks(schedule.workspaceBytes, checks);
    if (checks > 0 && schedule.estimateMicros >= 0) // looking at indices, and waiting for it
      schedule.estimateMicros +=
          double(checks + 1) * machine->startMicros() + (described ? described->transferMicros : 0);
    offer(schedule, *machine, *problem, *sink);
  };
  schedules.refuse = [&](const char *family, const std::string &why) {
    if (reason.empty())
      reason = fmt::format("{}: {}", family, why);
    if (sink->refusal)
      sink->refusal(sink->context, family, why.c_str());
  };
  for (const codegen::ScheduleFamily &family : codegen::scheduleFamilies())
    if (family.serves(*machine))
      family.propose(reader, *machine, schedules);
  if (offered)
    return DVT_OK;
  if (reason.empty())
    reason = "no native kernel family takes these ops together";
  return report(error, DVT_UNSUPPORTED, reason);
}

dvt_code loadCompiler(dvt_provider &provider, dvt_error *error) {
  if (provider.compile)
    return DVT_OK;
  provider.compiler =
      ::dlopen(provider.compilerPath.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!provider.compiler) {
    const char *why = ::dlerror();
    return report(error, DVT_UNAVAILABLE,
                  fmt::format("the native compiler is not there: {}", why ? why : ""));
  }
  provider.compile = reinterpret_cast<CompileFunction>(::dlsym(provider.compiler, kCompileSymbol));
  if (!provider.compile)
    return report(error, DVT_UNAVAILABLE,
                  fmt::format("{} does not export {}", provider.compilerPath, kCompileSymbol));
  return DVT_OK;
}

dvt_code compile(dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                 const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error) {
  const CompactProblem compact(*problem);
  if (dvt_code code = loadCompiler(*provider, error); code != DVT_OK)
    return code;
  return provider->compile(target, compact.get(), candidate, sink, error);
}

dvt_code prepare(dvt_provider *provider, const dvt_target *target, const dvt_problem *given,
                 const dvt_candidate *candidate, const dvt_prepare_args *args, dvt_kernel **kernel,
                 dvt_error *error) {
  const CompactProblem compact(*given);
  const dvt_problem *problem = compact.get();
  auto machine = codegen::Machine::of(*target);
  if (!machine)
    return report(error, DVT_UNSUPPORTED, machine.error().message);
  codegen::ProblemReader reader(*problem);
  auto schedule = hasStrides(*problem) || !findForeign(*problem).empty()
                      ? std::nullopt
                      : findSchedule(reader, *machine, *candidate);
  if (!schedule)
    return report(
        error, DVT_UNSUPPORTED,
        fmt::format("native does not propose '{}' for this problem", candidate->algorithm));
  auto made = std::make_unique<dvt_kernel>();
  auto load = [&]() -> Status {
    if (!machine->isDevice()) {
      auto loaded = LoadedKernel::load(reader, *machine, *schedule, *args);
      if (!loaded)
        return loaded.takeError();
      made->onHost = std::move(*loaded);
      return Status::success();
    }
    auto driver = provider->drivers.of(target->device);
    if (!driver)
      return driver.takeError();
    auto loaded = LoadedDeviceKernel::load(reader, *machine, *driver, *args);
    if (!loaded)
      return loaded.takeError();
    if (const std::string &why = (*loaded)->whatWasPassedOver(); !why.empty())
      provider->sayPassedOver(why);
    made->onDevice = std::move(*loaded);
    return Status::success();
  };
  if (Status status = load(); !status)
    return report(error, status.error());
  *kernel = made.release();
  return DVT_OK;
}

uint64_t workspaceBytes(const dvt_kernel *kernel) {
  return kernel->onDevice ? kernel->onDevice->workspaceBytes() : kernel->onHost->workspaceBytes();
}

dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  return kernel->onDevice ? kernel->onDevice->run(*args, error) : kernel->onHost->run(*args, error);
}

void destroyKernel(dvt_kernel *kernel) { delete kernel; }

} // namespace

extern "C" DVT_EXPORT const dvt_provider_api *dvt_provider_entry(uint32_t hostVersion) {
  static const dvt_provider_api api = {sizeof(dvt_provider_api),
                                       DVT_PROVIDER_ABI_VERSION,
                                       "native",
                                       create,
                                       destroy,
                                       info,
                                       propose,
                                       compile,
                                       prepare,
                                       workspaceBytes,
                                       run,
                                       destroyKernel};
  return hostVersion == DVT_PROVIDER_ABI_VERSION ? &api : nullptr;
}
