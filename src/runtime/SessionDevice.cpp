// SPDX-License-Identifier: Apache-2.0
//
// What a session does on a device: it has a stream and an arena there, moves bytes to and fro, and
// waits at the end of a run and wherever the host reads.
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
    if (Status status = finishDevice(); !status)
      return status;
    deviceArena.reset();
    auto memory = owner->device()->allocate(bytes);
    lacksMemory = !memory;
    if (!memory)
      return unavailable("no memory on the device for {} bytes of intermediate results: {}", bytes,
                         memory.error().message);
    deviceArena = std::move(*memory);
  }
  current->frame->placeOnDevice(deviceArena.address(), stream->handle());
  if (current->arenaAt != deviceArena.address()) {
    current->recorded.clear(); // it has the addresses of before
    current->deviceRuns = 0;
    current->arenaAt = deviceArena.address();
  }
  return Status::success();
}

Status Session::moveBytes(const Action &action) {
  if (action.bytes == 0)
    return Status::success();
  device::DeviceDriver &driver = owner->device()->driver();
  void *from = action.args.inputs[0].data, *to = action.args.outputs[0].data;
  bool toDevice = action.kind == Action::Kind::ToDevice;
  Status status = toDevice ? driver.copyToDevice(reinterpret_cast<device::DeviceAddress>(to), from,
                                                 action.bytes, stream->handle())
                           : driver.copyToHost(to, reinterpret_cast<device::DeviceAddress>(from),
                                               action.bytes, stream->handle());
  // What is read here must have come; what is read there may change here afterwards.
  if (status && (!toDevice || stepMicros))
    status = stream->synchronize();
  if (!status)
    return Error{status.error().kind,
                 fmt::format("step '{}'{}: {}", block.steps[action.step].label,
                             toDevice || stepMicros ? "" : ", or one before it on the device",
                             status.error().message)};
  return Status::success();
}

} // namespace dovetail
