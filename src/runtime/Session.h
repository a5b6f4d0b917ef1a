// SPDX-License-Identifier: Apache-2.0
//
// One user of a model: its bindings, its memory and its runs. One thread at a time uses a session,
// but any may cancel it; several sessions of one model run at once. With the extents of the run
// before, a run without control flow allocates nothing, but what libraries do by themselves and
// conversions to layouts that a substitute of the planned kernel wants.
// The body of a control-flow step is run by a session of its own inside the one of the block around
// it: it has inputs, outputs, frames and memory as the model has, and knows the symbols around it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/Frame.h"
#include "runtime/Staging.h"

namespace dovetail {

class Session {
public:
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<Model> model);
  ~Session();

  /// Memory of an input, lent until it is bound again. `strides` in elements; empty for dense
  /// row-major. Memory that is strided or not aligned to 64 bytes is copied at each run.
  Status bindInput(uint32_t index, const void *data, std::span<const int64_t> extents,
                   std::span<const int64_t> strides = {});
  /// Memory for an output; its extents must be those that a run gives. Null: the session's own
  /// memory again.
  Status bindOutput(uint32_t index, void *data, std::span<const int64_t> extents,
                    std::span<const int64_t> strides = {});
  /// After each run, what was output `output` becomes input `input` without a copy. The output must
  /// not be bound; the input's first value is bound as usual. Where the plan says that the pair
  /// grows, both share memory with room to spare, and only what is new is written.
  Status feedBack(uint32_t output, uint32_t input);
  /// For a state that grows: room for `length` along the axis along which it does.
  Status reserveState(uint32_t input, int64_t length);

  /// `stepMicros`, where given, receives the time of each step of the plan, block after block; a
  /// step of a body has that of all its runs, which the step with the body contains.
  Status run(std::vector<double> *stepMicros = nullptr);
  /// Stops the run under way, or else the next one, between two steps.
  void cancel() { cancelled.store(true, std::memory_order_relaxed); }

  /// Output of the last run; the memory is the caller's own or valid until the next run.
  const dvt_tensor &output(uint32_t index) const { return outputs[index].result; }
  const Model &model() const { return *owner; }
  /// Of intermediate results, bodies included.
  uint64_t arenaBytes() const;

private:
  struct Border {
    uint8_t *data = nullptr; ///< as bound
    bool isBound = false;
    std::vector<int64_t> extents, strides; ///< strides empty when dense
    HostBuffer own;   ///< output: the session's own memory; staging where `staged`
    HostBuffer state; ///< input: memory that came from the output fed back to it
    HostBuffer shown; ///< output: a copy in the model's order of dimensions
    bool staged = false;
    int64_t fedFrom = -1;              ///< input: output that becomes it
    int64_t feeds = -1;                ///< output: input that it becomes
    bool grows = false;                ///< input: the output fed back is it and something behind it
    int64_t reserved = 0;              ///< input that grows: length to have room for
    const PlanState *turned = nullptr; ///< the state that it belongs to
    std::vector<Extent> modelExtents;  ///< where it belongs to a state
    dvt_tensor result{};               ///< output, as the model has it
    std::vector<int64_t> resultExtents, resultStrides;

    void turn(const Plan &plan, bool isInput, uint32_t index);
    void take(const void *memory, std::span<const int64_t> shape, std::span<const int64_t> steps);
    bool isTurned() const { return turned && !turned->order.empty(); }
    bool holdsState() const { return state.data() && data == state.data(); }
  };
  /// A value whose extents another step found out.
  struct Found {
    bool known = false;
    std::vector<int64_t> extents;
    HostBuffer memory;
  };

  /// `outer` runs the block around this one; null for block 0.
  Session(std::shared_ptr<Model> model, uint32_t block, Session *outer);
  const std::string &inputName(uint32_t index) const;
  const std::string &outputName(uint32_t index) const;
  /// Whether one frame serves all runs.
  bool isFixed() const { return block.symbolSources.empty() && inherited.empty(); }
  Session &body(uint32_t block);
  bool isCancelled() const { return cancelFlag->load(std::memory_order_relaxed); }
  Status stopCancelled();
  Status runOnce();
  const PlanValue &inputValue(uint32_t index) const;
  const PlanValue &outputValue(uint32_t index) const;
  Status checkBorder(const Border &border, const PlanValue &value, const std::string &name,
                     const void *data, std::span<const int64_t> extents,
                     std::span<const int64_t> strides) const;
  size_t modelAxis(uint32_t input, size_t axis) const {
    const PlanState *state = inputs[input].turned;
    return state && axis < state->order.size() ? state->order[axis] : axis;
  }
  Status growState(uint32_t index);
  Status lendState(uint32_t value);
  Status show(uint32_t index, void *memory, const std::vector<int64_t> &extents);
  void feedInputs();
  Status ready();
  Status findSymbols(SymbolValues &symbols) const;
  Expected<int64_t> inheritedValue(const std::string &symbol) const;
  Status inheritSymbols(SymbolValues &symbols) const;
  Status chooseFrame();
  Status pointInputs();
  Status pointOutputs();
  Status runActions();
  Status moveBytes(const Action &action);
  /// Waits for what comes from the device, before the host reads it.
  Status arrive();
  void recordWork();
  Expected<std::unique_ptr<device::Graph>> record(size_t first, size_t &end);
  Status placeFrame();
  Status placeOnDevice(bool &lacksMemory);
  /// Current for this thread, and done with what a run that failed has left on the stream.
  Status readyDevice();
  /// Waits for what the device still has to do. Errors of kernels show here, where it is not known
  /// which of them it was, unless the session waits for each (`step`).
  Status finishDevice(const Action *step = nullptr);
  Status runUnbound(const Action &action);
  Status finish();
  /// Extents of a value that the frame does not bind, from the symbols known by now.
  Status resolve(uint32_t value);
  const std::vector<int64_t> &extentsOf(uint32_t value) const;
  /// The value whose memory it shows.
  uint32_t rootOf(uint32_t value) const;
  void *memoryOf(uint32_t value) const;
  Status checkView(uint32_t output) const;
  Error failure(const Action &action, dvt_code code, const dvt_error &error) const;
  Error stepFailure(uint32_t step, const Error &error) const;

  friend class UnboundStep;

  std::shared_ptr<Model> owner;
  uint32_t number; ///< of the block
  const PlanBlock &block;
  Session *outer;
  std::vector<std::string> inherited;                  ///< symbols that come from the blocks around
  std::map<uint32_t, std::unique_ptr<Session>> bodies; ///< by block
  double *stepMicros = nullptr;                        ///< of this block, in a timed run
  std::vector<Border> inputs, outputs;
  /// Actions [first, end) of a frame: kernels that the device gets as one.
  struct RecordedWork {
    size_t first, end;
    std::unique_ptr<device::Graph> graph;
  };
  struct Remembered {
    std::vector<int64_t> signature;
    SymbolValues symbols;
    std::unique_ptr<Frame> frame;
    uint64_t lastUse = 0;
    uint64_t number = 0;               ///< among all that the session made, from 1 on
    device::DeviceAddress arenaAt = 0; ///< on the device, for which the following holds
    uint64_t deviceRuns = 0;
    std::vector<RecordedWork> recorded;
  };
  std::vector<Remembered> frames;
  Remembered *current = nullptr;
  std::vector<int64_t> signature;
  PlacedSizes placed;
  HostBuffer arena;
  device::DeviceMemory deviceArena;
  std::shared_ptr<device::Stream> stream; ///< null where nothing runs on a device
  std::unique_ptr<Staging> staging;       ///< likewise
  bool isUnderWay = false;                ///< a run began, and was not waited for
  bool changed = true;                    ///< a binding changed since the last run
  uint64_t runs = 0;
  std::atomic<bool> cancelled{false};
  std::atomic<bool> *cancelFlag; ///< that of the model's session
  SymbolValues symbols;          ///< of this run, those found out on the way included
  uint64_t symbolsOf = 0;        ///< frame with whose symbols these began
  uint64_t framesMade = 0;
  std::vector<Found> found; ///< by value
};

} // namespace dovetail
