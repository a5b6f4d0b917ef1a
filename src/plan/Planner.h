// SPDX-License-Identifier: Apache-2.0
//
// The plan room's entry: a graph as tables goes in, a plan comes out. First evaluate() collects
// trials of every region's problem, from the cache or the worker, under a budget; then choose()
// covers the model, as often as wanted under different preferences, from the same trials.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "artifact/PlanMemory.h"
#include "artifact/PlanPreparation.h"
#include "plan/OpTable.h"
#include "plan/PlanCache.h"
#include "plan/Regions.h"
#include "plan/Worker.h"
#include "support/Log.h"

namespace dovetail::plan {

enum class Prefer : uint8_t { Cost, Library, Native };
enum class Select : uint8_t { Measure, Estimate, Replay };

struct ForcedChoice {
  std::string node;      ///< ONNX node name
  std::string algorithm; ///< provider:algorithm
};

/// Told of a stage as it begins and goes on: how much of it is done, of how much in all. `total` is
/// 0 where nobody knows.
using ProgressCallback = std::function<void(const std::string &stage, size_t done, size_t total,
                                            const std::string &what)>;

/// What private memory a plan may take: packed constants, code, what comes with libraries, arena.
struct MemoryBound {
  enum class Kind : uint8_t {
    Share, ///< kShare of weights (halves as if f32) and arena less kOwnBytes, or kLeastShare
    Bytes, ///< so many
    None
  };
  static constexpr double kShare = 1.3;
  static constexpr uint64_t kLeastShare = uint64_t(768) << 10; ///< little beside any process
  /// What the runtime takes beside all that is in the accounts of a plan, as it was measured.
  static constexpr uint64_t kOwnBytes = uint64_t(800) << 10;
  Kind kind = Kind::Share;
  uint64_t bytes = 0;

  static constexpr uint64_t kMostBytes = uint64_t(1) << 50;
  /// "200MiB", also with KiB, GiB or no unit, which is bytes; "none". BadInput says what would do.
  static Expected<MemoryBound> parse(const std::string &text);
  /// For a plan of that memory; UINT64_MAX: none.
  uint64_t of(const PlanMemory &memory) const;
};

struct PlannerOptions {
  Select select = Select::Measure;
  std::vector<std::string>
      only; ///< providers; empty: all. Reference joins as last resort unless left out
  std::vector<ForcedChoice> force;
  double budgetSeconds = 120;
  std::vector<std::string>
      forget; ///< providers whose trials are not kept: they lack their compiler here
  MemoryBound memory;
  PreparationPrice preparation; ///< what slow loading costs beside the time of a run
  bool deterministic = false;   ///< only deterministic candidates of class "f32"
  /// Usual sizes of symbols, by name: kernels are timed at these. Others are chosen (typicalSizes).
  SymbolValues typical;
  WorkerOptions worker;
  /// To run steps on, beside the processor. What it takes is never measured here: it is predicted,
  /// or known from the machine that has it (Tuning.h).
  std::optional<Target> device;
  Log log;
  ProgressCallback progress;  ///< in stages of many small parts about ten times a second at most
  std::function<bool()> stop; ///< polled between problems: true ends measuring with what is there
};

/// A problem on which providers compete, and the values of its symbols for trials.
struct PosedProblem {
  Problem problem;
  SymbolValues representative;
};

class Planner {
public:
  /// `providers`: name -> version of those at hand. The table must outlive the planner.
  Planner(const OpTable &table, Target target, std::map<std::string, std::string> providers,
          PlanCache &cache, PlannerOptions options);
  ~Planner();

  /// The problems of all regions, those of bodies included, each once; nothing is built. In place
  /// of evaluate().
  Expected<std::vector<PosedProblem>> problems();
  Status evaluate();
  /// Within the bound on memory; where nothing fits, a plan of little memory, which is logged.
  Expected<Plan> choose(Prefer prefer);
  /// Gives each step of the processor that a library's kernel serves its fallback, for when the
  /// library is gone: an own kernel, built where need be. For a plan that choose() gave.
  Status addStandIns(Plan &plan);
  /// Problems that were asked about for the device, where there is one, else for the processor:
  /// those of regions and, after choose(), of conversions that choices came across. What takes
  /// longest comes first.
  std::vector<PosedProblem> asked() const;
  /// Candidates of a provider that could not be built or do wrong, of those asked about.
  std::vector<Trial> failed(const std::string &provider) const;
  /// Of the model, as measurements are kept by it.
  uint64_t footprintBytes() const;
  /// Microseconds of each step of block 0 in runs of a plan that choose() gave: later choices go by
  /// them where they would take the same kernels.
  void observe(const Plan &plan, const std::vector<double> &stepMicros);

  struct Statistics {
    size_t regions = 0, candidates = 0, failures = 0;
    /// Problems, those of layout conversions included: timed in this run, timed before, or known by
    /// estimates only.
    size_t problems = 0, timed = 0, fromCache = 0, estimated = 0;
    double seconds = 0;
    bool complete = true; ///< false: the budget ran out
  };
  const Statistics &statistics() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace dovetail::plan
