// SPDX-License-Identifier: Apache-2.0
//
// Finds, loads and holds provider plug-ins. Plug-ins are looked for in given folders only (the
// install folder and those the user names), never in the current one. One that does not load, is of
// another door version or refuses to be created costs its candidates and is reported; it never
// stops the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dovetail/provider.h"
#include "support/Expected.h"
#include "support/Problem.h"

namespace dovetail {

/// A candidate with owned strings; survives the call that proposed it.
struct Candidate {
  std::string provider;
  std::string algorithm;
  std::vector<std::string> inputLayouts, outputLayouts; ///< canonical layout texts, "" is row-major
  uint64_t workspaceBytes = 0;
  uint64_t packedBytes = 0;
  dvt_packing packing = DVT_PACKING_NONE;
  dvt_threading threading = DVT_THREADING_SERIAL;
  std::string numerics = "f32";
  bool deterministic = true;
  bool runtimeExtents = false;
  double estimateMicros = -1;
  uint32_t registers = 0, sharedBytes = 0, scratchBytes = 0, codeBytes = 0;
  dvt_memory_kind memory = DVT_MEMORY_HOST; ///< of operands, results, constants and workspace
  uint64_t processBytes = 0;                ///< see dvt_candidate::process_bytes
  std::string processGroup;

  static Candidate copy(std::string provider, const dvt_candidate &from,
                        const dvt_problem &problem);
  /// The C struct, valid while this lives unmodified and `storage` lives.
  dvt_candidate view(std::vector<const char *> &storage) const;
  /// provider:algorithm, plus layouts where several candidates share an algorithm.
  std::string label() const;
};

struct Refusal {
  std::string algorithm; ///< empty: the provider as a whole
  std::string reason;
};

struct Proposal {
  std::vector<Candidate> candidates;
  std::vector<Refusal> refusals;
};

/// Target of kernels, a processor or a device; part of every cache key.
struct Target {
  std::string device = "cpu", architecture, features;
  uint32_t threads = 1;
  uint64_t l1Bytes = 0, l2Bytes = 0, l3Bytes = 0;
  std::string description; ///< of a device, JSON (device/DeviceDescription.h); empty on the CPU
  /// This machine, at `threads` threads (0: all cores this process may use).
  static Target host(uint32_t threads);
  bool isDevice() const { return device != "cpu"; }
  /// Where kernels for it find operands and leave results.
  dvt_memory_kind memory() const { return isDevice() ? DVT_MEMORY_DEVICE : DVT_MEMORY_HOST; }
  /// "cpu", "cuda:sm_90": as users name it.
  std::string name() const { return isDevice() ? device + ":" + architecture : device; }
  /// All of it on one line; of a description its digest.
  std::string text() const;
  bool hasFeature(std::string_view name) const;
  dvt_target view() const; ///< points into this
};

/// One created provider. Not copyable; destroying it destroys the provider, not kernels' memory.
class Provider {
public:
  ~Provider();
  Provider(const Provider &) = delete;
  const std::string &name() const { return providerName; }
  const dvt_provider_info &info() const { return *api->info(instance); }
  std::string version() const { return info().version ? info().version : ""; }
  /// Whether several threads may prepare kernels at once.
  bool preparesConcurrently() const;
  const dvt_provider_api &functions() const { return *api; }
  dvt_provider *handle() const { return instance; }

  Proposal propose(const Target &target, const Problem &problem) const;
  /// Kernel bytes; empty where the provider needs no compiling.
  Expected<std::vector<uint8_t>> compile(const Target &target, const Problem &problem,
                                         const Candidate &candidate) const;

private:
  friend class PluginSet;
  Provider() = default;
  std::string providerName;
  const dvt_provider_api *api = nullptr;
  dvt_provider *instance = nullptr;
  void *library = nullptr;
};

class PluginSet {
public:
  struct Options {
    std::vector<std::string> folders; ///< searched in order for dovetail_*.so
    std::string vendorPath;           ///< dvt_host.library_path
    std::string deviceDrivers;        ///< dvt_host.device_drivers
    std::vector<std::string> only;    ///< names; empty means all
    bool runsOnly = false;            ///< dvt_host.runs_only
    void (*log)(void *, int, const char *) = nullptr;
    void *logContext = nullptr;
  };
  struct Failure {
    std::string file, reason;
    bool expected = false; ///< no fault of the plug-in's: shadowed, or its library is not here
  };
  /// Loads every plug-in found. Reference is ordered last.
  static PluginSet load(const Options &options);
  const Provider *find(std::string_view name) const;
  const std::vector<std::unique_ptr<Provider>> &providers() const { return loaded; }
  const std::vector<Failure> &failures() const { return failed; }

private:
  std::vector<std::unique_ptr<Provider>> loaded;
  std::vector<Failure> failed;
};

/// The part of a provider's version that kernels made by it depend on: what stands before a '#'.
std::string_view loadableVersion(std::string_view version);

/// Folder of plug-ins beside the running binary or library (…/lib/dovetail).
std::string defaultPluginFolder();

} // namespace dovetail
