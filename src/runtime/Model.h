// SPDX-License-Identifier: Apache-2.0
//
// A loaded plan: plug-ins found, kernels prepared, constants packed once and shared by all
// sessions. Where the library a step was planned with is gone or has another version, another
// kernel takes its place; that is logged and can be looked at.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artifact/Artifact.h"
#include "device/Device.h"
#include "runtime/HostMemory.h"
#include "runtime/LoadCrew.h"
#include "runtime/PreparedKernel.h"
#include "runtime/Staging.h"
#include "support/Layout.h"
#include "support/Log.h"
#include "support/Parallel.h"

namespace dovetail {

struct ModelOptions {
  std::shared_ptr<const PluginSet> plugins;
  /// Where `plugins` is null: finds the providers of these names, those that a loaded plan uses.
  std::function<std::shared_ptr<const PluginSet>(const std::vector<std::string> &names)>
      findPlugins;
  uint32_t threads = 0;                   ///< 0: as planned, but no more than this process may use
  const dvt_parallel *parallel = nullptr; ///< the host's; null: an OpenMP team of `threads`
  HostAllocator allocator;
  Log log;
  bool alternatives = false;  ///< keep what else was on offer, which only explaining needs
  bool checkConstants = true; ///< compare each constant with its digest
  std::string deviceDrivers;  ///< as dvt_host.device_drivers; empty: the system's
};

/// Where the time of loading went. Of what several threads do at once, the time of all of them
/// divided by their number.
struct LoadTimes {
  double readMillis = 0;      ///< reading the plan and checking it
  double pluginsMillis = 0;   ///< finding and opening plug-ins and their libraries
  double constantsMillis = 0; ///< comparing constants with their digests
  double kernelsMillis = 0;   ///< making kernels ready, packing not counted, and waiting
  double packingMillis = 0;   ///< bringing constants into the form in which kernels use them
};

/// What runs at a step, and why it is not what was planned.
struct StepState {
  std::string label;   ///< nodes it covers
  std::string planned; ///< label of the planned candidate; empty for steps without a kernel
  std::string running; ///< label of the candidate in use; empty: bound at first execution
  std::string note;    ///< why they differ; empty where they do not
};

class Model {
public:
  static Expected<std::shared_ptr<Model>> load(const std::string &path,
                                               const ModelOptions &options);
  /// Of a plan made in this process; what its constants point to must stay (see
  /// PlanConstant::owner).
  static Expected<std::shared_ptr<Model>> create(Plan plan, const ModelOptions &options);

  const Plan &plan() const { return artifact.plan; }
  const std::string &digest() const { return artifact.digest; } ///< empty without a file
  const Problem &problem(uint32_t index) const { return problems[index]; }
  const dvt_parallel *parallel() const { return parallelFor; }
  uint32_t threads() const { return std::max(parallelFor->threads, 1u); }
  const HostAllocator &allocator() const { return options.allocator; }
  const Log &log() const { return options.log; }
  const LoadTimes &loadTimes() const { return times; }
  /// One for each step of the plan, block after block.
  std::vector<StepState> steps() const;
  /// Number of a block's first step among those of all blocks.
  uint32_t firstStep(uint32_t block) const { return firstSteps[block]; }
  uint32_t stepCount() const { return static_cast<uint32_t>(stepKernels.size()); }
  /// The step of that number among those of all blocks.
  const PlanStep *planned(uint32_t step) const;
  /// Whether some kernel brings an OpenMP team of its own.
  bool usesOpenMp() const { return anyOpenMp.load(std::memory_order_relaxed); }

  /// The kernel of a step of a block under these values of its symbols. Any thread may call it.
  Expected<std::shared_ptr<PreparedKernel>> kernelFor(uint32_t block, uint32_t step,
                                                      const SymbolValues &symbols);

  /// For a block that the device has no memory for: the kernel that the plan keeps for when a
  /// library is gone runs instead of the one with most workspace for which there is one that takes
  /// less. False where there is none. Frames made before are as they were. Any thread may call it.
  bool takeLessWorkspace(uint32_t block);
  /// Of a step's kernel as it is now. Nothing where it is as planned.
  std::optional<uint64_t> workspaceInstead(uint32_t block, uint32_t step) const;

  /// Of packed constants that kernels bound at run time may hold, for the model and for each of its
  /// sessions: as much as the constants themselves.
  uint64_t mostLateBytes() const;

  /// Bytes of a constant, shown with `extents`, in `layout`; valid while the model lives. Any
  /// thread may call it.
  Expected<const void *> constantData(uint32_t constant, const std::vector<int64_t> &extents,
                                      const std::string &layout);

  /// That runs steps of the plan in its own memory; null where none does.
  const std::shared_ptr<device::Device> &device() const { return planDevice; }
  /// The same on the device, where it is brought once; as long as the model lives. The device is
  /// current. Any thread may call it.
  Expected<device::DeviceAddress>
  deviceConstant(uint32_t constant, const std::vector<int64_t> &extents, const std::string &layout);
  /// For the time being no more constants come to the device: what brought them is given back.
  void endUpload();

private:
  explicit Model(const ModelOptions &options);
  Status start();
  /// How many threads there are, and the crew where they are ours.
  void beginThreads();
  /// Gives the constants to the crew.
  void beginCheck();
  /// What the crew found, once it has finished: the first constant that is wrong.
  Status endCheck();
  Status openDevice();
  Status checkDeviceMemory();
  Status checkTarget() const;
  Status checkConstants();
  Status prepareSteps();
  /// Of the region of packed constants, for one step.
  static uint64_t packedShare(const PlanStep &step);
  uint64_t packedBytes() const;
  /// Kernels for steps that will ask for them; keeps them until they do.
  std::vector<std::shared_ptr<PreparedKernel>> prepareAhead();
  Status prepareStep(uint32_t block, uint32_t step);
  void evictPackedConstants();

  struct Search; // KernelSearch.cpp
  Expected<std::shared_ptr<PreparedKernel>> search(uint32_t block, uint32_t step,
                                                   const Problem &problem, bool specialised,
                                                   std::string &note);

  ModelOptions options;
  Artifact artifact;
  Target target;
  std::shared_ptr<device::Device> planDevice; ///< outlives all that lies on it
  std::vector<Problem> problems;
  std::vector<uint32_t> firstSteps; ///< of each block
  std::unique_ptr<ParallelFor> ownParallel;
  dvt_parallel hostParallel{}; ///< a copy of the host's
  const dvt_parallel *parallelFor = nullptr;
  struct ConstantCheck {
    Status status = Status::success();
    double millis = 0;
  };
  std::vector<ConstantCheck> checks; ///< of each constant, while they are checked
  std::unique_ptr<LoadCrew> crew;    ///< while the model is loaded, where threads are ours
  std::atomic<bool> anyOpenMp{false};
  bool kernelsAreExecutable = false; ///< those of the plan, where they are mapped

  mutable std::recursive_mutex mutex; ///< guards everything below
  LoadTimes times;
  double packingMicros = 0;
  std::shared_ptr<ConstantMemory> planMemory; ///< while the plan's steps are prepared
  std::map<std::string, std::unique_ptr<HostBuffer>> convertedConstants; ///< outlive the kernels
  std::map<std::string, device::DeviceMemory> deviceConstants; ///< by number, extents and layout
  std::unique_ptr<Upload> upload;                              ///< while they are brought
  std::vector<std::shared_ptr<PreparedKernel>> stepKernels;    ///< of all blocks, one after another
  std::vector<std::string> stepNotes;
  std::map<uint32_t, uint64_t> lessWorkspace; ///< by number of the step among all, where replaced
  /// Equal steps with equal constants share a kernel.
  std::map<std::string, std::weak_ptr<PreparedKernel>> kernelsByKey;
  struct LateKernel {
    std::shared_ptr<PreparedKernel> kernel;
    uint64_t lastUse = 0;
    uint64_t bytes = 0; ///< of constants, packed for it alone
  };
  std::map<std::string, LateKernel> lateKernels;
  uint64_t uses = 0, lateBytes = 0;
};

} // namespace dovetail
