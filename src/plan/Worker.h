// SPDX-License-Identifier: Apache-2.0
//
// The measuring worker as the planner sees it: a long-lived process, spawned, in which vendor
// libraries and fresh kernels run. When one crashes it, exceeds its memory or hangs, the worker is
// replaced, the candidate at fault gets a typed failure, and the rest of its problem is evaluated
// again without it. A provider that falls already while it proposes, or with one candidate after
// the other, loses all its candidates of the problem; one that does so again and again is not asked
// any more, so that a hanging library costs a few timeouts and not one for each problem.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "plan/Trial.h"
#include "plan/WorkerProtocol.h"

namespace dovetail::plan {

struct WorkerOptions {
  std::string executable;           ///< of the worker
  std::vector<std::string> plugins; ///< folders
  std::string vendorPath;
  std::string deviceDrivers;                ///< as dvt_host.device_drivers
  std::vector<std::string> only;            ///< providers; reference is always loaded, as the truth
  std::chrono::milliseconds timeout{60000}; ///< without a sign of life
  /// Address space beyond which allocations fail; UINT64_MAX: none. Drivers of devices reserve more
  /// than there is memory.
  uint64_t memoryBytes = uint64_t(16) << 30;
  PhaseReport report; ///< told of each phase of each candidate as the worker begins it; or empty
};

class Worker {
public:
  Worker(WorkerOptions options, Target target);
  ~Worker();
  Worker(const Worker &) = delete;

  /// Evaluates a problem; starts the worker when there is none. Error when it cannot be started, or
  /// falls before it reaches any candidate.
  Expected<Evaluation> evaluate(const Problem &problem, EvaluationOptions options);
  /// The same with the kernels of `given`, see TrialRunner; those of a device run on it.
  /// Unavailable where the device is not here.
  Expected<Evaluation> evaluate(const Problem &problem, EvaluationOptions options,
                                const Evaluation &given);
  /// Whether a worker ever answered here.
  bool hasStarted() const { return answered; }
  /// How often a worker had to be replaced.
  unsigned replacements() const { return replaced; }
  /// False for a provider that fell too often and is left out since.
  bool asks(const std::string &provider) const;

private:
  struct Fall {
    std::string label, phase; ///< what was going on; empty when nothing was reported
    bool hung = false;
  };
  Expected<Evaluation> evaluate(const Problem &problem, EvaluationOptions request,
                                const Evaluation *given);
  Expected<Evaluation> attempt(const Problem &problem, const EvaluationOptions &request,
                               const Evaluation *given, Fall &fall);
  void leaveOut(EvaluationOptions &request, std::vector<Trial> &lost) const;
  Status start();
  void stop();

  WorkerOptions options;
  Target target;
  int toWorker = -1, fromWorker = -1;
  int process = -1;
  unsigned replaced = 0;
  bool answered = false;
  std::map<std::string, unsigned> fallsWhileProposing; ///< by provider
};

/// The worker's side: serves requests on descriptors until the first is closed. Returns the exit
/// code.
int serveWorker(int input, int output);

} // namespace dovetail::plan
