// SPDX-License-Identifier: Apache-2.0
//
// A plan on a device, ready to run. The device and its context are the host's: whatever is current
// in the calling thread is used.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/cudnn/Graph.h"

namespace dovetail::cudnn {

/// The library's handles, one for each stream, made when first needed. May be used by several
/// threads at once.
class Handles {
public:
  explicit Handles(std::shared_ptr<const Library> library) : library(std::move(library)) {}
  ~Handles();
  Handles(const Handles &) = delete;

  /// One lock serves all streams: what is done under it only enqueues work.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex); }
  /// Under the lock. Null with the reason in `backend`.
  LibraryHandle of(Backend &backend, DeviceStream stream);

private:
  std::shared_ptr<const Library> library;
  std::mutex mutex;
  std::map<DeviceStream, LibraryHandle> handles;
};

class Kernel {
public:
  /// `plan` is JSON of makePlan for `graph`, `driver` the file of another driver than the system's.
  /// Null with `reason` and `code` where there is no device to run on or the plan does not load on
  /// it.
  static std::unique_ptr<Kernel> make(std::shared_ptr<const Library> library,
                                      std::shared_ptr<Handles> handles, const Graph &graph,
                                      const providers::ProblemReader &problem,
                                      const std::string &plan, const std::string &driver,
                                      dvt_code &code, std::string &reason);

  uint64_t workspaceBytes() const { return workspace; }
  /// Enqueues the work on the stream of `args`. May be called by several threads at once.
  dvt_code run(const dvt_run_args &args, std::string &reason);

private:
  /// Where a tensor of the graph lies: in an operand or result of the problem, or in `number`.
  struct Place {
    int64_t uniqueId = 0;
    bool isResult = false;
    uint32_t position = 0;
    std::optional<float> number;
  };
  struct Pack {
    std::vector<void *> pointers;
    Object object;
  };
  const Pack *packFor(Backend &backend, std::vector<void *> pointers);

  std::shared_ptr<const Library> library;
  std::shared_ptr<Handles> handles;
  Object plan;
  std::vector<Place> places;
  std::vector<Pack> packs; ///< of the last runs, the newest last; under the lock of the handles
  uint64_t workspace = 0;
  uint32_t inputCount = 0, outputCount = 0;
};

} // namespace dovetail::cudnn
