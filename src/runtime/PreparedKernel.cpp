// SPDX-License-Identifier: Apache-2.0
//
// Calls prepare and destroy_kernel of the plug-in door under the process-wide lock.
#include "runtime/PreparedKernel.h"

#include <cstring>
#include <mutex>

namespace dovetail {

namespace {

std::recursive_mutex &providerMutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

thread_local bool lent = false;

constexpr uint64_t kMostWorkspace = uint64_t(1) << 40;

} // namespace

ProviderLock::ProviderLock() : isOwn(!lent) {
  if (isOwn)
    providerMutex().lock();
}
ProviderLock::~ProviderLock() {
  if (isOwn)
    providerMutex().unlock();
}

ProviderLock::Lent::Lent() { lent = true; }
ProviderLock::Lent::~Lent() { lent = false; }

std::string providerMessage(const dvt_error &error, dvt_code code) {
  std::string text(error.message, ::strnlen(error.message, sizeof(error.message)));
  return text.empty() ? fmt::format("code {}, no reason given", int(code)) : text;
}

ErrorKind errorKindOf(dvt_code code) {
  switch (code) {
  case DVT_BAD_INPUT:
    return ErrorKind::BadInput;
  case DVT_UNSUPPORTED:
  case DVT_UNAVAILABLE:
  case DVT_OUT_OF_MEMORY:
    return ErrorKind::Unavailable;
  case DVT_CANCELLED:
    return ErrorKind::Cancelled;
  default:
    return ErrorKind::Internal;
  }
}

Expected<std::shared_ptr<PreparedKernel>>
PreparedKernel::prepare(const Request &request,
                        std::vector<std::shared_ptr<const void>> keepAlive) {
  ProviderLock lock;
  std::shared_ptr<PreparedKernel> result(new PreparedKernel());
  result->chosen = *request.candidate;
  result->api = &request.provider->functions();
  result->device = request.device;
  result->keepAlive = std::move(keepAlive);
  result->keepAlive.push_back(request.memory);

  ProblemView problem(*request.problem);
  std::vector<const char *> storage;
  dvt_candidate candidate = request.candidate->view(storage);
  dvt_target target = request.target->view();
  dvt_prepare_args args{};
  args.struct_size = sizeof(args);
  args.constants = request.constants.data();
  args.kernel = request.kernel;
  args.kernel_bytes = request.kernelBytes;
  args.threads = request.threads;
  args.parallel = request.parallel;
  struct Memory {
    ConstantMemory *whole;
    ConstantMemory::Share share;
  } memory{request.memory.get(), request.share};
  args.memory_context = &memory;
  args.allocate = [](void *context, uint64_t bytes) {
    auto *memory = static_cast<Memory *>(context);
    return memory->whole->take(bytes, memory->share);
  };
  args.packing_micros = request.packingMicros;
  args.kernel_is_executable = request.kernelIsExecutable ? 1 : 0;
  dvt_error error{};
  dvt_code code = result->api->prepare(request.provider->handle(), &target, problem.get(),
                                       &candidate, &args, &result->kernel, &error);
  if (code != DVT_OK || !result->kernel) {
    if (code != DVT_OK)
      result->kernel = nullptr;
    return Error{errorKindOf(code),
                 fmt::format("{}: {}", request.candidate->label(), providerMessage(error, code))};
  }
  result->workspace = result->api->workspace_bytes(result->kernel);
  if (result->workspace > kMostWorkspace)
    return unavailable("{}: wants {} bytes of workspace", request.candidate->label(),
                       result->workspace);
  return result;
}

PreparedKernel::~PreparedKernel() {
  if (!kernel)
    return;
  ProviderLock lock;
  if (device)
    (void)device->makeCurrent();
  api->destroy_kernel(kernel);
}

} // namespace dovetail
