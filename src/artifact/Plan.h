// SPDX-License-Identifier: Apache-2.0
//
// The plan: what runs, in which order, in which memory, and why. A value: printable, comparable,
// stored in an artifact and executed by the runtime without the compiler. The same plan gives the
// same bits.
//
// A plan is blocks of steps; block 0 is the model, further ones are bodies of control flow, each of
// one step of an earlier block. Values are numbered per block; what a body reads of the block
// around it is among its inputs. Every value that a step writes has a dense layout and one kind of
// storage. Views cost nothing: they are values that alias another one under other extents, or with
// strides, which only kernels made for them read.
// Extents known only at run time are Extents over symbols; the runtime derives the symbols from the
// inputs (or from what a data-dependent step returns) and computes the rest. A body also knows the
// symbols of the blocks around it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/Extent.h"
#include "support/Layout.h"
#include "support/Plugin.h"
#include "support/Problem.h"
#include "support/Requirement.h"

namespace dovetail {

enum class Storage : uint8_t {
  Input,    ///< index: model (or block) input; bound by the caller
  Output,   ///< index: model (or block) output; written straight into the caller's memory
  Constant, ///< index: into Plan::constants; mapped from the artifact
  Arena,    ///< offset: in the block's arena; unset while extents are symbolic (the runtime assigns
            ///< it). inPlaceOf: takes over the memory of an operand of the step that gives it
  Alias,  ///< index: value whose memory this one shows under its own extents (same byte count, same
          ///< layout class), or, with strides, some elements of it from offset on
  Dynamic ///< extents known after the producing step: allocated by the runtime when the step states
          ///< them
};

struct PlanValue {
  std::string name; ///< ONNX name where there is one
  dvt_type type = DVT_F32;
  std::vector<Extent> extents;
  std::string layout; ///< canonical layout text; "" row-major
  Storage storage = Storage::Arena;
  uint32_t index = 0;
  uint64_t offset = 0; ///< bytes. Arena: multiple of 64, static extents only. Alias with strides:
                       ///< of the first element in what it shows
  uint64_t bytes = 0;  ///< physical size, padding included; 0 while symbolic
  /// Arena: operand of the producing step, read there for the last time, in whose memory this value
  /// comes to lie. The step's problem allows it.
  uint32_t inPlaceOf = kNoValue;
  std::vector<int64_t> strides; ///< Alias: in elements, none negative; empty when dense
  /// Whose memory it lies in. The device's has an arena of its own, and constants of its own.
  dvt_memory_kind memory = DVT_MEMORY_HOST;

  /// Whether a kernel that takes or gives `wanted` can work on it as it lies.
  bool isLaidOut(const std::string &wanted) const {
    return wanted == layout || (strides.empty() && isSameLayout(wanted, layout, extents));
  }
};

/// A kernel chosen for a step: the candidate, of which version of its provider, and its compiled
/// bytes.
struct KernelChoice {
  Candidate candidate;
  std::string providerVersion;
  int32_t kernel = -1; ///< index into Plan::kernels; -1: needs no bytes
};

enum class StepKind : uint8_t {
  Kernel,    ///< runs choice (or fallback) on inputs -> outputs
  LateBound, ///< extents symbolic: providers are asked at first execution for each signature;
             ///< choice is what runs where none of `lateProviders` covers it (a kernel with
             ///< run-time extents)
  ShapeData, ///< writes `data` (extents as numbers) to the one output, an integer tensor
  Copy,      ///< copies inputs[0] to outputs[0], same type, extents and layout
  // Control flow. `captured` are values of the block that the bodies read; bodies have them as
  // their last inputs. All operands and results are dense and row-major.
  If, ///< (condition, captured…) -> results; bodies {then, else}: (captured…) -> results
  Loop, ///< (trip count, condition, carried…, captured…) -> carried…, stacked…; either of the first
        ///< two may be absent. Body: (iteration, condition, carried…, captured…) -> condition,
        ///< carried…, elements…
  Scan, ///< (carried…, scanned…, captured…) -> carried…, stacked…; body: (carried…, elements…,
        ///< captured…) -> carried…, elements…
  Refuse, ///< () -> results: fails with its label, which says why the branch it stands for makes no
          ///< sense
  Append, ///< (state, part…) -> grown: the parts one after the other behind the state, along the
          ///< first axis. Where `grown` lies in the state's memory only parts are copied
  Transfer ///< copies inputs[0] to outputs[0], same type, extents and layout, one in host memory
           ///< and one in the device's
};

/// Along which axis a Scan goes through a tensor, or stacks one up, and whether from the end.
struct ScanAxis {
  uint32_t axis = 0;
  bool backwards = false;
  friend bool operator==(const ScanAxis &, const ScanAxis &) = default;
};

struct PlanStep {
  StepKind kind = StepKind::Kernel;
  std::string label;    ///< names of the ONNX nodes it covers, for people
  uint32_t problem = 0; ///< index into Plan::problems
  /// Value numbers in the order of the problem's inputs and outputs.
  std::vector<uint32_t> inputs, outputs;
  KernelChoice choice;
  /// Runs when the provider of `choice` is not there or has another version. Layouts may differ
  /// from those of the step's values: the runtime converts.
  std::optional<KernelChoice> fallback;
  std::vector<std::string> lateProviders; ///< in order of preference, LateBound only
  std::string lateAlgorithm; ///< LateBound: what was best of the first of them when planning; it
                             ///< runs wherever it is on offer. May be empty
  /// In the arena of the memory that `choice` works in; static extents only.
  uint64_t workspaceOffset = 0, workspaceBytes = 0;
  std::vector<Extent> data;      ///< ShapeData only
  std::vector<uint32_t> bodies;  ///< blocks, control flow only
  uint32_t carried = 0;          ///< Loop, Scan: values handed from iteration to iteration
  std::vector<ScanAxis> scanned; ///< Scan: of what it goes through, then of what it stacks
  uint32_t report = UINT32_MAX;  ///< index into Plan::reports
};

/// Where a symbol's value comes from: extent `axis` of value `value` of the block.
struct SymbolSource {
  std::string symbol;
  uint32_t value = 0;
  uint32_t axis = 0;
};

/// An input that takes the place of an output after a run, as far as the session is asked to.
struct PlanState {
  uint32_t input = 0, output = 0; ///< of the model, or of the body
  /// Whether the output is what an Append step puts behind the input, so that both can lie in the
  /// same memory.
  bool grows = false;
  /// For each dimension of the plan's values the one of the model's tensors that it is; empty where
  /// they are the same.
  std::vector<uint32_t> order;
};

struct PlanBlock {
  std::vector<PlanValue> values;
  std::vector<uint32_t> inputs, outputs; ///< value numbers
  std::vector<PlanStep> steps;
  uint64_t arenaBytes = 0;       ///< static extents only
  uint64_t deviceArenaBytes = 0; ///< of the arena in the device's memory
  std::vector<SymbolSource> symbolSources;
  std::vector<Requirement> requirements; ///< on the symbols' values, when the block runs
  std::vector<PlanState> growing; ///< bodies: what is carried and grows; block 0: see Plan::states

  /// Whether the plan says where everything lies; else the runtime places all of it.
  bool isPlaced() const { return arenaBytes > 0 || deviceArenaBytes > 0; }
};

struct PlanConstant {
  std::string name;
  dvt_type type = DVT_F32;
  std::vector<int64_t> extents;
  uint64_t bytes = 0;
  /// The bytes, row-major, and what keeps them mapped. Not owned by the plan's value semantics.
  const void *data = nullptr;
  std::shared_ptr<const void> owner;
};

/// A compiled kernel: bytes of its own, or such as another keeps alive. Copies share them.
class KernelBytes {
public:
  KernelBytes() = default;
  KernelBytes(std::vector<uint8_t> bytes);
  KernelBytes(std::initializer_list<uint8_t> bytes) : KernelBytes(std::vector(bytes)) {}
  KernelBytes(const uint8_t *bytes, uint64_t count, std::shared_ptr<const void> owner)
      : first(bytes), count(count), owner(std::move(owner)) {}
  const uint8_t *data() const { return first; }
  uint64_t size() const { return count; }
  const uint8_t *begin() const { return first; }
  const uint8_t *end() const { return first + count; }
  friend bool operator==(const KernelBytes &a, const KernelBytes &b);

private:
  const uint8_t *first = nullptr;
  uint64_t count = 0;
  std::shared_ptr<const void> owner;
};

/// What became of one offer for a region.
struct Alternative {
  std::string label;          ///< provider:algorithm, or the parts where the region was split
  double micros = -1;         ///< median; negative when not timed
  double low = -1, high = -1; ///< interval of the median
  std::string outcome;        ///< "chosen", "slower", "refused: …", "failed: …"
};

struct RegionReport {
  std::string ops;   ///< "conv+add+relu"
  std::string nodes; ///< ONNX node names
  uint32_t problem = 0;
  double micros = -1;          ///< of the chosen kernel
  double conversionMicros = 0; ///< of the conversions its inputs needed
  bool conversion = false;     ///< the step is a layout conversion itself
  /// Of the chosen kernel, as its trial found it: what preparing takes without packing. Negative
  /// when it is not known.
  double prepareMillis = -1;
  std::vector<Alternative> alternatives;
};

/// A whole-model timing that took part in the final choice.
struct WholeModelTiming {
  std::string name; ///< "mixed", "library-first", "native-first", "refined", …
  double micros = -1, low = -1, high = -1;
  bool chosen = false;
  /// Time over that of the chosen one, both with what is charged for preparing: the median over
  /// rounds in which both ran, and its interval. Negative where there is none.
  double ratio = -1, ratioLow = -1, ratioHigh = -1;
};

struct Plan {
  std::string model;            ///< file name of the model, for people
  std::string producer;         ///< Dovetail's version
  Target target;                ///< the processor
  std::optional<Target> device; ///< that runs steps in its own memory
  std::string
      selection; ///< how it was chosen: "measure", "estimate", "replay", with --prefer/--only
  std::vector<std::string> inputNames, outputNames;
  SymbolRanges symbols;
  std::vector<PlanState> states;
  std::vector<PlanConstant> constants;
  std::vector<std::string> problems;
  std::vector<KernelBytes> kernels;
  std::vector<PlanBlock> blocks;
  std::map<std::string, std::string> providers; ///< name -> version at planning time
  /// What its memory was to be held to (PlanMemory::total); UINT64_MAX: nothing.
  uint64_t memoryBound = UINT64_MAX;

  /// Measured figures: in a section of the artifact that can be dropped and is outside the digest.
  std::vector<RegionReport> reports;
  std::vector<WholeModelTiming> timings;
  double planningSeconds = 0;
  /// Inferences that a load was taken to serve, among which slow preparing was shared out; 0:
  /// preparing did not count.
  double runsPerLoad = 0;
  SymbolValues typicalSizes; ///< of symbols, at which steps with free extents were timed
  uint32_t problemsTimed = 0, problemsFromCache = 0, problemsEstimated = 0;

  /// Of all blocks.
  size_t stepCount() const {
    size_t count = 0;
    for (const PlanBlock &block : blocks)
      count += block.steps.size();
    return count;
  }
  /// Whether no symbol has to be found out at run time.
  bool isStatic() const {
    for (const PlanBlock &block : blocks)
      if (!block.symbolSources.empty())
        return false;
    return true;
  }
};

/// Extents of a model's input or output as the model has them, in the order of its dimensions.
std::vector<Extent> borderExtents(const Plan &plan, bool isInput, uint32_t index);
/// The state whose border is that input or output; null where there is none.
const PlanState *stateOf(const Plan &plan, bool isInput, uint32_t index);

/// Numbers by dimension of the plan's value, from those by dimension of the model's tensor, and
/// back.
std::vector<int64_t> inPlanOrder(const PlanState *state, std::vector<int64_t> numbers);
std::vector<int64_t> inModelOrder(const PlanState *state, std::vector<int64_t> numbers);

} // namespace dovetail
