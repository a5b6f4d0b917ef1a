// SPDX-License-Identifier: Apache-2.0
//
// Kernels on a device, ready to run: a plan of the library for a graph, or its older calls. The
// device and its context are the host's: whatever is current in the calling thread is used.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/cudnn/Graph.h"

namespace dovetail::cudnn {

/// The library's handle, made when first needed. Kernels hold it, so that it goes with the last of
/// them, while the device's context is current. May be used by several threads at once.
class SharedHandle {
public:
  explicit SharedHandle(std::shared_ptr<const Library> library) : library(std::move(library)) {}
  ~SharedHandle();
  SharedHandle(const SharedHandle &) = delete;

  /// One lock serves all streams: what is done under it only enqueues work.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex); }
  /// Under the lock. Null with the reason in `backend`.
  LibraryHandle on(Backend &backend, DeviceStream stream);

private:
  std::shared_ptr<const Library> library;
  std::mutex mutex;
  LibraryHandle handle = nullptr;
};

/// Where the tensors of a graph lie that are not virtual: in operands and results of the problem,
/// or here, where they are numbers.
class Places {
public:
  Places() = default;
  Places(const Graph &graph, const providers::ProblemReader &problem);

  /// Checks what a run is given, of which `workspaceBytes` are to be workspace, and finds the
  /// addresses, in the order of tensors().
  dvt_code find(const dvt_run_args &args, uint64_t workspaceBytes, std::vector<void *> &addresses,
                std::string &reason);
  std::vector<size_t> tensors() const;

private:
  struct Place {
    size_t tensor = 0;
    bool isResult = false;
    uint32_t position = 0;
    std::optional<float> number;
  };
  std::vector<Place> places;
  uint32_t inputCount = 0, outputCount = 0;
};

class Kernel {
public:
  virtual ~Kernel() = default;
  virtual uint64_t workspaceBytes() const = 0;
  /// Enqueues the work on the stream of `args`. May be called by several threads at once.
  virtual dvt_code run(const dvt_run_args &args, std::string &reason) = 0;
};

/// What kernels are made with. `driver`: the file of another driver than the system's.
struct Surroundings {
  std::shared_ptr<const Library> library;
  std::shared_ptr<SharedHandle> handle;
  std::string driver;
};

/// Of a plan: JSON of makePlan for `graph`. Null with `reason` and `code` where there is no device
/// to run on or the plan does not load on it.
std::unique_ptr<Kernel> loadKernel(const Surroundings &surroundings, const Graph &graph,
                                   const providers::ProblemReader &problem, const std::string &plan,
                                   dvt_code &code, std::string &reason);

} // namespace dovetail::cudnn
