// SPDX-License-Identifier: Apache-2.0
//
// One user of a model: its bindings, its memory and its runs. One thread at a time uses a session,
// but any may cancel it; several sessions of one model run at once. With the extents of the run
// before, a run allocates nothing.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "runtime/Frame.h"

namespace dovetail {

class Session {
public:
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<Model> model);

  /// Memory of an input, lent until it is bound again. `strides` in elements; empty for dense
  /// row-major. Memory that is strided or not aligned to 64 bytes is copied at each run.
  Status bindInput(uint32_t index, const void *data, std::span<const int64_t> extents,
                   std::span<const int64_t> strides = {});
  /// Memory for an output; its extents must be those that a run gives. Null: the session's own
  /// memory again.
  Status bindOutput(uint32_t index, void *data, std::span<const int64_t> extents,
                    std::span<const int64_t> strides = {});
  /// After each run, what was output `output` becomes input `input` without a copy. The output must
  /// not be bound; the input's first value is bound as usual.
  Status feedBack(uint32_t output, uint32_t input);

  /// `stepMicros`, where given, receives the time of each step of block 0.
  Status run(std::vector<double> *stepMicros = nullptr);
  /// Stops the run under way, or else the next one, between two steps.
  void cancel() { cancelled.store(true, std::memory_order_relaxed); }

  /// Output of the last run; the memory is the caller's own or valid until the next run.
  const dvt_tensor &output(uint32_t index) const { return outputs[index].result; }
  const Model &model() const { return *owner; }
  uint64_t arenaBytes() const { return arena.size(); }

private:
  struct Border {
    uint8_t *data = nullptr; ///< as bound
    bool isBound = false;
    std::vector<int64_t> extents, strides; ///< strides empty when dense
    HostBuffer own;   ///< output: the session's own memory; staging where `staged`
    HostBuffer state; ///< input: memory that came from the output fed back to it
    bool staged = false;
    int64_t fedFrom = -1; ///< input: output that becomes it
    dvt_tensor result{};  ///< output
    std::vector<int64_t> resultExtents;
  };
  /// A value whose extents another step found out.
  struct Found {
    bool known = false;
    std::vector<int64_t> extents;
    HostBuffer memory;
  };

  explicit Session(std::shared_ptr<Model> model);
  const PlanValue &inputValue(uint32_t index) const;
  const PlanValue &outputValue(uint32_t index) const;
  Status checkBorder(const PlanValue &value, const std::string &name, const void *data,
                     std::span<const int64_t> extents, std::span<const int64_t> strides) const;
  Status ready();
  Status findSymbols(SymbolValues &symbols) const;
  Status chooseFrame();
  Status pointInputs();
  Status pointOutputs();
  Status runActions(std::vector<double> *stepMicros);
  Status runUnbound(const Action &action);
  Status finish();
  /// Extents of a value that the frame does not bind, from the symbols known by now.
  Status resolve(uint32_t value);
  const std::vector<int64_t> &extentsOf(uint32_t value) const;
  void *memoryOf(uint32_t value) const;
  Error failure(const Action &action, dvt_code code, const dvt_error &error) const;

  friend class UnboundStep; // UnboundStep.cpp

  std::shared_ptr<Model> owner;
  const PlanBlock &block;
  std::vector<Border> inputs, outputs;
  struct Remembered {
    std::vector<int64_t> signature;
    SymbolValues symbols;
    std::unique_ptr<Frame> frame;
    uint64_t lastUse = 0;
  };
  std::vector<Remembered> frames;
  Remembered *current = nullptr;
  std::vector<int64_t> signature;
  HostBuffer arena;
  bool changed = true; ///< a binding changed since the last run
  uint64_t runs = 0;
  std::atomic<bool> cancelled{false};
  SymbolValues symbols;     ///< of this run, those found out on the way included
  std::vector<Found> found; ///< by value
};

} // namespace dovetail
