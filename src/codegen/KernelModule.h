// SPDX-License-Identifier: Apache-2.0
//
// One kernel being made: phases are added in the order in which they will run, each by emitting its
// body; finish() lowers the module, optimises it, generates code and gives the kernel's bytes (see
// schedule/KernelAbi.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"

#include "codegen/Emitter.h"
#include "codegen/gpu/DevicePhase.h"
#include "codegen/schedule/Schedule.h"

namespace dovetail::codegen {

class KernelModule {
public:
  KernelModule(const ProblemReader &problem, const Machine &machine);
  ~KernelModule();

  using Body = llvm::function_ref<void(Emitter &emitter, Value begin, Value end)>;
  /// A phase of `count` tasks; `body` emits what runs the tasks [begin, end), i64 values.
  void addPhase(int64_t count, Body body);
  /// The same where the number of tasks depends on run-time extents: `count` emits it, an i64.
  void addPhase(llvm::function_ref<Value(Emitter &emitter)> count, Body body);

  /// A phase of a device alone whose tasks are each for a block of so many threads, all of which
  /// run `body` for it.
  void addBlockPhase(uint32_t threads, llvm::function_ref<Value(Emitter &emitter)> count,
                     Body body);

  /// Lanes of f32 vectors in the phases added from here on; by default those of the machine.
  /// Narrower ones suit short rows.
  void setLanes(unsigned lanes);
  /// The kernel may use the instructions for sums of products of bytes, which the machine has.
  void useVnni();

  /// Kernel bytes (for a device: a DeviceKernel's), or why there are none: the first
  /// Emitter::fail() of a body, or an error of ours.
  Expected<std::vector<uint8_t>> finish(const Schedule &schedule);

  /// For tests and debugging: the module as emitted, and after finish() the optimised LLVM IR and
  /// the assembly where keepText was set.
  bool keepText = false;
  std::string emittedText() const;
  std::string optimisedText, assemblyText;

private:
  void addDevicePhase(const DeviceTasks &tasks, Body body);
  Expected<std::vector<uint8_t>> finishDevice(const Schedule &schedule);

  struct State;
  std::unique_ptr<State> state;
};

} // namespace dovetail::codegen
