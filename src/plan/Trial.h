// SPDX-License-Identifier: Apache-2.0
//
// Trials: candidates of a problem built, checked against the reference and timed, in this process.
// The worker runs this; the planner talks to the worker. A candidate's failure is data: it never
// stops the evaluation of the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/Parallel.h"
#include "support/Plugin.h"
#include "support/Problem.h"

namespace dovetail::plan {

enum class TrialOutcome : uint8_t {
  Measured,
  Checked, ///< right, but not timed (estimates only)
  BuildFailed,
  PrepareFailed,
  RunFailed,
  WrongResult,
  OutOfBounds, ///< wrote outside its outputs or workspace
  Timeout,
  OutOfMemory,
  Crashed
};
const char *outcomeName(TrialOutcome outcome);
std::optional<TrialOutcome> parseOutcome(std::string_view name);

struct Trial {
  Candidate candidate;
  TrialOutcome outcome = TrialOutcome::Checked;
  std::string detail;                      ///< of a failure
  double micros = -1, low = -1, high = -1; ///< median and its interval
  double compileMillis = 0;
  double prepareMillis = 0; ///< the least of several; 0: not prepared here
  double packingMillis = 0; ///< of it, packing constants
  double maxError = 0;      ///< relative to the largest magnitude of the truth
  std::vector<uint8_t> kernel;
  bool built = true;      ///< false: proposed only, neither compiled nor checked
  bool compared = false;  ///< it ran, and its results were held against the reference's
  bool badInput = false;  ///< it failed, and says that the problem is at fault
  std::string measuredOn; ///< the machine or device that timed it; empty: this one, or none

  bool usable() const {
    return outcome == TrialOutcome::Measured || outcome == TrialOutcome::Checked;
  }
  /// What loading the kernel takes beside packing; negative where nobody prepared it.
  double preparationMillis() const {
    return prepareMillis > 0 ? std::max(0.0, prepareMillis - packingMillis) : -1;
  }
  /// What another trial of the same candidate found, where that is less: more is the machine's
  /// noise.
  void takePreparation(const Trial &other) {
    if (other.preparationMillis() < 0 ||
        (preparationMillis() >= 0 && preparationMillis() <= other.preparationMillis()))
      return;
    prepareMillis = other.prepareMillis;
    packingMillis = other.packingMillis;
  }
};

struct Evaluation {
  std::vector<Trial> trials;
  std::vector<std::pair<std::string, Refusal>> refusals; ///< provider, what fell out
};

struct EvaluationOptions {
  std::vector<std::string> providers;  ///< empty: all
  std::vector<std::string> algorithms; ///< provider:algorithm labels; empty: all
  /// Labels that crashed before; "provider:" without an algorithm: it is not even asked.
  std::vector<std::string> skip;
  bool build = true;   ///< otherwise proposed only
  bool run = true;     ///< otherwise built only
  bool measure = true; ///< otherwise built and checked only
  bool check = true;
  bool timeReference =
      false; ///< the reference is timed only when nothing else is on offer or this is set
  uint64_t footprintBytes = 0; ///< of the model: how much is read between two runs of one kernel
  double budgetMillis = 400;   ///< for timing all candidates of this problem
  /// Values of the problem's symbols for trials. Where one is missing, candidates are built but
  /// neither run nor timed.
  SymbolValues representative;
};

/// Called before each phase of each candidate, so that a crash can be attributed. While a provider
/// proposes, the label is "provider:".
using PhaseReport = std::function<void(const std::string &label, const char *phase)>;

class TrialRunner {
public:
  TrialRunner(const PluginSet &plugins, Target target);
  ~TrialRunner();
  /// Opens the target's device, so that kernels for it are run; until then they are only built.
  /// `drivers` is as dvt_host.device_drivers. Unavailable where the device is not here.
  Status openDevice(const std::string &drivers);
  /// With `given`, its usable trials are taken as they are, kernels included: nobody is asked and
  /// nothing is compiled. Those of providers that are not loaded are left as they are.
  Evaluation evaluate(const Problem &problem, const EvaluationOptions &options,
                      const PhaseReport &report = {}, const Evaluation *given = nullptr);
  /// Why the device can no longer be used in this process: the driver's text for a kernel that it
  /// did not survive, that of the phase reported last. Empty while it can.
  const std::string &deviceFailure() const;

  struct State;

private:
  std::unique_ptr<State> state;
};

/// Longest chain of accumulated terms behind one output element of any op: what error bounds grow
/// with.
int64_t reductionLength(const Problem &problem);
/// Largest allowed difference, relative to the largest magnitude of the truth.
double errorBound(const Problem &problem, const std::string &numerics);

} // namespace dovetail::plan
