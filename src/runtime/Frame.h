// SPDX-License-Identifier: Apache-2.0
//
// A block of a plan made concrete for one set of input extents: every extent a number, every buffer
// placed, and for each step the arguments of its kernel filled in once, so that running it is a
// walk over a list of calls. Steps that depend on data (extents that another step finds out) stay
// unbound; the session binds them as it goes.
#pragma once

#include <memory>
#include <vector>

#include "artifact/BlockMemory.h"
#include "runtime/Model.h"

namespace dovetail {

/// One call. Operands are tensors of the frame.
struct Action {
  enum class Kind : uint8_t {
    Run,     ///< a kernel
    Reorder, ///< one tensor into another layout, where a substitute kernel wants other layouts than
             ///< the plan
    Copy,    ///< bytes of one tensor, unless they are where they shall be
    Write,   ///< extents, as numbers, into a tensor
    Unbound, ///< bound by the session when it gets there
    ToDevice, ///< bytes of a tensor in host memory to one on the device
    ToHost    ///< and back
  };
  Kind kind = Kind::Run;
  uint32_t step = 0; ///< of the block
  decltype(dvt_provider_api::run) run = nullptr;
  dvt_kernel *kernel = nullptr;
  dvt_run_args args{};
  uint64_t workspaceOffset = 0;                  ///< in the arena
  bool onDevice = false;                         ///< Run: with the device's arena, on its stream
  uint64_t bytes = 0;                            ///< Copy, ToDevice, ToHost
  uint64_t staged = 0;                           ///< ToDevice, ToHost: place in the staging memory
  const Layout *from = nullptr, *to = nullptr;   ///< Reorder
  const std::vector<int64_t> *extents = nullptr; ///< Reorder; Write: the numbers

  /// Whether the host reads tensors at once: work for the device and what comes from it is given
  /// to a stream.
  bool readsOnHost() const { return kind != Kind::ToHost && !(kind == Kind::Run && onDevice); }
};

/// Where a block's buffers were placed last, and for which sizes. Sizes that only the run tells are
/// rounded up by an eighth at most before they are placed, so that the next lengths of a sequence,
/// or of a cache that grows, find everything placed.
struct PlacedSizes {
  std::vector<uint64_t> values, workspaces;
  BlockPlacement placement;
};

/// The kernel of a step was made for its problem: a value must have the extents that stand there,
/// whatever the plan says.
Status checkExtents(const PlanStep &step, const PlanValue &value,
                    const std::vector<int64_t> &extents, const ProblemValue &problem,
                    const SymbolValues &symbols);

class Frame {
public:
  /// `symbols` are those that follow from the inputs' extents, and those of the blocks around it.
  /// `placed`, of the same block, is used and brought up to date.
  static Expected<std::unique_ptr<Frame>> build(Model &model, uint32_t block,
                                                const SymbolValues &symbols, PlacedSizes &placed);

  std::vector<Action> actions;
  uint64_t arenaBytes = 0, deviceArenaBytes = 0;
  uint64_t stagedBytes = 0; ///< of all transfers, see Staging
  bool hasUnbound = false;
  uint64_t packedBytes = 0; ///< of constants that kernels bound for this frame's extents packed

  /// Whether the extents of a value follow from the inputs' alone, and its memory from the plan.
  bool isBound(uint32_t value) const { return bound[value]; }
  const std::vector<int64_t> &extents(uint32_t value) const { return valueExtents[value]; }
  uint64_t bytes(uint32_t value) const { return valueBytes[value]; }
  /// Memory of a bound value, after place and setBorder.
  void *data(uint32_t value) const;

  /// Points everything in the arena to where the arena is.
  void place(uint8_t *arena);
  /// Likewise on the device, where kernels then work on `stream`.
  void placeOnDevice(device::DeviceAddress arena, device::StreamHandle stream);
  /// Points everything that is model input (or output) `index` to its memory.
  void setInput(uint32_t index, void *data) { setBorder(inputData, inputSlots, index, data); }
  void setOutput(uint32_t index, void *data) { setBorder(outputData, outputSlots, index, data); }

private:
  friend class FrameBuilder;
  /// A tensor and where it begins, in bytes, in the memory that is given to it.
  struct Slot {
    uint32_t tensor;
    uint64_t offset;
  };
  using Slots = std::vector<std::vector<Slot>>;
  void setBorder(std::vector<void *> &known, const Slots &slots, uint32_t index, void *data) {
    if (known[index] == data)
      return;
    known[index] = data;
    for (Slot slot : slots[index])
      tensors[slot.tensor].data = data ? static_cast<uint8_t *>(data) + slot.offset : nullptr;
  }

  const PlanBlock *block = nullptr;
  std::vector<uint32_t> roots;
  std::vector<bool> bound;
  std::vector<std::vector<int64_t>> valueExtents;
  std::vector<uint64_t> valueBytes, valueOffsets;
  std::vector<const void *> constantData; ///< by value
  std::vector<dvt_tensor> tensors;        ///< does not move once built
  std::vector<Slot> arenaSlots, deviceSlots;
  Slots inputSlots, outputSlots;
  std::vector<void *> inputData, outputData;
  uint8_t *arena = nullptr;
  std::vector<std::unique_ptr<Layout>> layouts;
  std::vector<std::unique_ptr<std::vector<int64_t>>> numbers;
  std::vector<std::shared_ptr<PreparedKernel>> kernels; ///< keeps them alive
};

} // namespace dovetail
