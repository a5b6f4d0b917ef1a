// SPDX-License-Identifier: Apache-2.0
//
// A kernel ready to run: loaded by its provider, constants packed. Shared by all sessions of a
// model; run may be called by several threads at once.
#pragma once

#include <memory>
#include <vector>

#include "device/Device.h"
#include "runtime/ConstantMemory.h"
#include "support/Plugin.h"

namespace dovetail {

class PreparedKernel {
public:
  struct Request {
    const Provider *provider;
    const Target *target;
    const Problem *problem;
    const Candidate *candidate;
    std::vector<const void *> constants; ///< one for each problem input, null where it is none
    const void *kernel = nullptr;
    uint64_t kernelBytes = 0;
    uint32_t threads = 1;
    const dvt_parallel *parallel = nullptr;
    std::shared_ptr<ConstantMemory> memory =
        nullptr;                      ///< for packed constants; the kernel keeps it alive
    ConstantMemory::Share share = {}; ///< of it, which is used first
    double *packingMicros = nullptr;  ///< the time spent on packing is added to it
    bool kernelIsExecutable = false;  ///< its bytes may be run where they are
    std::shared_ptr<device::Device> device = nullptr; ///< that it runs on, current now
  };
  /// `keepAlive` is what must outlive the kernel: the plug-ins and the memory of its constants and
  /// bytes.
  static Expected<std::shared_ptr<PreparedKernel>>
  prepare(const Request &request, std::vector<std::shared_ptr<const void>> keepAlive);
  ~PreparedKernel();
  PreparedKernel(const PreparedKernel &) = delete;
  PreparedKernel &operator=(const PreparedKernel &) = delete;

  const Candidate &candidate() const { return chosen; }
  uint64_t workspaceBytes() const { return workspace; }
  /// Of constants that it packed, as far as is known.
  uint64_t packedBytes() const {
    return chosen.packing == DVT_PACKING_NONE || chosen.packedBytes == UINT64_MAX
               ? 0
               : chosen.packedBytes;
  }
  dvt_kernel *handle() const { return kernel; }
  decltype(dvt_provider_api::run) runFunction() const { return api->run; }

private:
  PreparedKernel() = default;
  Candidate chosen;
  const dvt_provider_api *api = nullptr;
  dvt_kernel *kernel = nullptr;
  uint64_t workspace = 0;
  std::shared_ptr<device::Device> device;
  std::vector<std::shared_ptr<const void>> keepAlive;
};

/// Text of an error a provider filled in.
std::string providerMessage(const dvt_error &error, dvt_code code);
/// What a provider's code says about whose fault it is.
ErrorKind errorKindOf(dvt_code code);

/// Proposing and preparing are for one thread at a time; everything in the process that calls them
/// holds this.
class ProviderLock {
public:
  /// For threads that work for the one that holds the lock, which waits for them: while this lives,
  /// its thread counts as holding the lock. That no provider is called by more threads than it
  /// allows is then up to the holder.
  class Lent {
  public:
    Lent();
    ~Lent();
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
  };

  ProviderLock();
  ~ProviderLock();
  ProviderLock(const ProviderLock &) = delete;
  ProviderLock &operator=(const ProviderLock &) = delete;

private:
  bool isOwn;
};

} // namespace dovetail
