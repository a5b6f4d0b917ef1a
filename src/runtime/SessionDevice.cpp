// SPDX-License-Identifier: Apache-2.0
//
// What a session does on a device: it has a stream and an arena there, moves bytes to and fro, and
// waits at the end of a run and, for what it reads, wherever the host reads.
#include "runtime/Session.h"

namespace dovetail {

Session::~Session() {
  if (stream && owner->device()->makeCurrent())
    (void)stream->synchronize(); // what it still reads and writes is about to go
}

Status Session::finishDevice(const Action *action) {
  Status status = stream ? stream->synchronize() : Status::success();
  if (status)
    return status;
  std::string where = "a step on the device failed; 'dovetail bench --profile' waits for each and "
                      "names it";
  if (action) {
    const PlanStep &step = block.steps[action->step];
    where = fmt::format("step '{}' ({})", step.label, step.choice.candidate.label());
  }
  return Error{status.error().kind, where + ": " + status.error().message};
}

/// Points the frame to the arena on the device, a larger one where it has to be.
Status Session::placeOnDevice(bool &lacksMemory) {
  if (!stream)
    return Status::success();
  uint64_t bytes = current->frame->deviceArenaBytes;
  if (deviceArena.bytes() < bytes) {
    deviceArena.reset(); // in the stream's order
    auto memory = owner->device()->allocate(bytes, stream);
    lacksMemory = !memory;
    if (!memory)
      return unavailable("no memory on the device for {} bytes of intermediate results, and no "
                         "kernels that take less: {}; run smaller batches",
                         bytes, memory.error().message);
    deviceArena = std::move(*memory);
  }
  staging->reserve(current->frame->stagedBytes, owner->log());
  current->frame->placeOnDevice(deviceArena.address(), stream->handle());
  if (current->arenaAt != deviceArena.address()) {
    current->recorded.clear(); // it has the addresses of before
    current->deviceRuns = 0;
    current->arenaAt = deviceArena.address();
  }
  return Status::success();
}

Status Session::readyDevice() {
  Status status = owner->device()->makeCurrent();
  if (status && isUnderWay) {
    (void)stream->synchronize(); // its error was that run's
    staging->drop();
    isUnderWay = false;
  }
  return status;
}

/// What comes from the device is there after arrive(); what goes there may change here afterwards.
Status Session::moveBytes(const Action &action) {
  if (action.bytes == 0)
    return Status::success();
  void *from = action.args.inputs[0].data, *to = action.args.outputs[0].data;
  if (action.kind == Action::Kind::ToHost) {
    Status status = staging->toHost(to, reinterpret_cast<device::DeviceAddress>(from), action.bytes,
                                    action.staged, action.step);
    if (!status)
      return stepFailure(action.step, status.error());
    return stepMicros ? arrive() : Status::success();
  }
  Status status = staging->toDevice(reinterpret_cast<device::DeviceAddress>(to), from, action.bytes,
                                    action.staged);
  if (status && stepMicros)
    status = stream->synchronize();
  return status ? Status::success() : Status(stepFailure(action.step, status.error()));
}

Status Session::arrive() {
  if (!staging || !staging->isAwaited())
    return Status::success();
  uint32_t step = staging->awaitedStep();
  Status status = staging->arrive();
  return status ? Status::success() : Status(stepFailure(step, status.error()));
}

/// Of a transfer; what runs before it on the device shows its errors here, too, unless each step is
/// waited for.
Error Session::stepFailure(uint32_t step, const Error &error) const {
  return {error.kind,
          fmt::format("step '{}'{}: {}", block.steps[step].label,
                      stepMicros ? "" : ", or one before it on the device", error.message)};
}

} // namespace dovetail
