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
#include "providers/ProviderTable.h"
#include "providers/native/CompactProblem.h"
#include "providers/native/CompilerDoor.h"
#include "providers/native/DriverSet.h"
#include "providers/native/Fingerprint.h"
#include "providers/native/LoadedDeviceKernel.h"
#include "providers/native/LoadedKernel.h"

using namespace dovetail;
using namespace dovetail::native;

namespace {

/// One of the two.
struct NativeKernel {
  uint64_t workspaceBytes() const {
    return onDevice ? onDevice->workspaceBytes() : onHost->workspaceBytes();
  }
  dvt_code run(const dvt_run_args &args, dvt_error *error) const {
    return onDevice ? onDevice->run(args, error) : onHost->run(args, error);
  }

  std::unique_ptr<LoadedKernel> onHost;
  std::unique_ptr<LoadedDeviceKernel> onDevice;
};

struct NativeProvider {
  using Kernel = NativeKernel;
  static constexpr const char *name() { return "native"; }
  static dvt_code create(const dvt_host *host, std::unique_ptr<NativeProvider> &made,
                         dvt_error *error);
  explicit NativeProvider(const dvt_host *host) : drivers(host) {}
  dvt_code propose(const dvt_target *target, const dvt_problem *given,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code compile(const dvt_target *target, const dvt_problem *given,
                   const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *given,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  dvt_code loadCompiler(dvt_error *error);
  /// Once: loading takes longer than it should.
  void sayPassedOver(const std::string &why);

  dvt_provider_info info{};
  std::string compilerPath;
  /// Stays loaded: LLVM does not like to be unloaded while threads that used it live.
  void *compiler = nullptr;
  CompileFunction compileFunction = nullptr;
  DriverSet drivers;
  void *logContext = nullptr;
  decltype(dvt_host::log) log = nullptr;
  std::mutex mutex; ///< guards what follows, as several threads may prepare
  bool saidSlower = false;
};

void NativeProvider::sayPassedOver(const std::string &why) {
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

dvt_code NativeProvider::create(const dvt_host *host, std::unique_ptr<NativeProvider> &made,
                                dvt_error *error) {
  made.reset(new (std::nothrow) NativeProvider(host));
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
  made->info.name = name();
  static const std::string version =
      fmt::format("{}#{}", codegen::kImageVersion, kNativeFingerprint);
  made->info.version = version.c_str();
  made->info.concurrent_prepare = 1;
  made->info.can_compile = ::access(made->compilerPath.c_str(), R_OK) == 0;
  return DVT_OK;
}

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

dvt_code NativeProvider::propose(const dvt_target *target, const dvt_problem *given,
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

dvt_code NativeProvider::loadCompiler(dvt_error *error) {
  if (compileFunction)
    return DVT_OK;
  compiler = ::dlopen(compilerPath.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!compiler) {
    const char *why = ::dlerror();
    return report(error, DVT_UNAVAILABLE,
                  fmt::format("the native compiler is not there: {}", why ? why : ""));
  }
  compileFunction = reinterpret_cast<CompileFunction>(::dlsym(compiler, kCompileSymbol));
  if (!compileFunction)
    return report(error, DVT_UNAVAILABLE,
                  fmt::format("{} does not export {}", compilerPath, kCompileSymbol));
  return DVT_OK;
}

dvt_code NativeProvider::compile(const dvt_target *target, const dvt_problem *given,
                                 const dvt_candidate *candidate, const dvt_bytes_sink *sink,
                                 dvt_error *error) {
  const CompactProblem compact(*given);
  if (dvt_code code = loadCompiler(error); code != DVT_OK)
    return code;
  return compileFunction(target, compact.get(), candidate, sink, error);
}

dvt_code NativeProvider::prepare(const dvt_target *target, const dvt_problem *given,
                                 const dvt_candidate *candidate, const dvt_prepare_args *args,
                                 std::unique_ptr<Kernel> &made, dvt_error *error) {
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
  made = std::make_unique<NativeKernel>();
  auto load = [&]() -> Status {
    if (!machine->isDevice()) {
      auto loaded = LoadedKernel::load(reader, *machine, *schedule, *args);
      if (!loaded)
        return loaded.takeError();
      made->onHost = std::move(*loaded);
      return Status::success();
    }
    auto driver = drivers.of(target->device);
    if (!driver)
      return driver.takeError();
    auto loaded = LoadedDeviceKernel::load(reader, *machine, *driver, *args);
    if (!loaded)
      return loaded.takeError();
    if (const std::string &why = (*loaded)->whatWasPassedOver(); !why.empty())
      sayPassedOver(why);
    made->onDevice = std::move(*loaded);
    return Status::success();
  };
  if (Status status = load(); !status)
    return report(error, status.error());
  return DVT_OK;
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<NativeProvider>::get(host_abi_version);
}
