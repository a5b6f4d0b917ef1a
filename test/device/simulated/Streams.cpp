// SPDX-License-Identifier: Apache-2.0
//
// Streams and events. The driver's own stream waits for all others, and they for it only where they
// are told to, as streams that do not block.
#include "State.h"

namespace simulated {

Code spoil(StreamState &stream, const char *what) {
  stream.unrecordable = CaptureInvalidated;
  return refuse(CaptureUnsupported, "{} while a stream records", what);
}

Code spoilRecording(const char *what) {
  for (auto &[number, stream] : state().streams)
    if (stream.recorded &&
        (stream.mode == OfAll ||
         (stream.mode == OfThread && stream.recorder == std::this_thread::get_id())))
      return spoil(stream, what);
  return Success;
}

namespace {

GraphState *findGraph(Handle handle) {
  auto found = state().graphs.find(numberOf(handle));
  if (found != state().graphs.end())
    return &found->second;
  refuse(InvalidHandle, "there is no recorded work {}", handle);
  return nullptr;
}

EventState *findEvent(Handle handle) {
  auto found = state().events.find(numberOf(handle));
  if (found != state().events.end())
    return &found->second;
  refuse(InvalidHandle, "there is no event {}", handle);
  return nullptr;
}

/// Until the device has come to it. An event that was never recorded is over.
Code finish(const EventState &event) {
  if (!event.recorded)
    return Success;
  auto stream = state().streams.find(event.stream);
  return stream == state().streams.end() ? Success : drain(stream->second, event.position);
}

} // namespace

Code createStream(Handle *stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  uint64_t number = state().nextHandle++;
  state().streams[number];
  *stream = handleOf(number);
  return Success;
}

Code destroyStream(Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *found = findStream(stream);
  if (!found)
    return InvalidHandle;
  if (!stream)
    return refuse(InvalidHandle, "the driver's own stream cannot be destroyed");
  Code code = drain(*found, UINT64_MAX);
  state().streams.erase(numberOf(stream));
  return code;
}

Code synchronizeStream(Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *found = findStream(stream);
  if (!found)
    return InvalidHandle;
  if (found->recorded)
    return spoil(*found, "waiting for a stream");
  ++state().counts["synchronisations"];
  return stream ? drain(*found, UINT64_MAX) : drainAll();
}

Code createEvent(bool timed, Handle *event) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  uint64_t number = state().nextHandle++;
  state().events[number].timed = timed;
  *event = handleOf(number);
  return Success;
}

Code destroyEvent(Handle event) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (!findEvent(event))
    return InvalidHandle;
  state().events.erase(numberOf(event));
  return Success;
}

Code recordEvent(Handle event, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  EventState *found = findEvent(event);
  StreamState *queue = found ? findStream(stream) : nullptr;
  if (!queue)
    return InvalidHandle;
  uint64_t number = numberOf(event);
  give(*queue, [number] {
    if (auto known = state().events.find(number); known != state().events.end())
      known->second.tick = ++state().ticks;
    return Success;
  });
  found->recorded = true;
  found->tick = 0;
  found->stream = numberOf(stream);
  found->position = queue->given;
  return Success;
}

Code waitForEvent(Handle stream, Handle event) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  EventState *found = findEvent(event);
  StreamState *queue = found ? findStream(stream) : nullptr;
  if (!queue)
    return InvalidHandle;
  give(*queue, [what = *found] { return finish(what); });
  return Success;
}

Code synchronizeEvent(Handle event) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  EventState *found = findEvent(event);
  return found ? finish(*found) : InvalidHandle;
}

/// Time is counted in events, a thousandth of a millisecond for each.
Code elapsedMillis(Handle from, Handle to, float *millis) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  EventState *first = findEvent(from), *last = first ? findEvent(to) : nullptr;
  if (!last)
    return InvalidHandle;
  if (!first->timed || !last->timed || !first->recorded || !last->recorded)
    return refuse(InvalidHandle, "an event takes no time, or was not recorded");
  if (first->tick == 0 || last->tick == 0)
    return refuse(NotReady, "the device has not come to an event yet");
  *millis = static_cast<float>(static_cast<double>(last->tick - first->tick) * 1e-3);
  return Success;
}

Code beginCapture(Handle stream, int mode) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *found = findStream(stream);
  if (!found)
    return InvalidHandle;
  if (!stream || found->recorded)
    return refuse(CaptureUnsupported,
                  "the driver's own stream, or one that records, cannot record");
  if (mode < OfAll || mode > Relaxed)
    return refuse(InvalidValue, "there is no way {} to record", mode);
  found->recorded.emplace();
  found->recorder = std::this_thread::get_id();
  found->mode = mode;
  found->unrecordable = Success;
  return Success;
}

Code endCapture(Handle stream, Handle *recorded) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *found = findStream(stream);
  if (!found)
    return InvalidHandle;
  if (!found->recorded)
    return refuse(CaptureUnsupported, "stream {} does not record", stream);
  if (found->mode != Relaxed && found->recorder != std::this_thread::get_id())
    return refuse(CaptureUnsupported, "another thread began to record stream {}", stream);
  std::vector<Operation> operations = std::move(*found->recorded);
  found->recorded.reset();
  if (found->unrecordable)
    return refuse(CaptureInvalidated, "something was given that cannot be recorded");
  uint64_t number = state().nextHandle++;
  state().graphs[number].operations = std::move(operations);
  *recorded = handleOf(number);
  return Success;
}

Code isCapturing(Handle stream, int *status) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *found = findStream(stream);
  if (!found)
    return InvalidHandle;
  *status = !found->recorded ? 0 : found->unrecordable == Success ? 1 : 2;
  return Success;
}

Code makeGraph(Handle recorded, Handle *graph) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  GraphState *found = findGraph(recorded);
  if (!found)
    return InvalidHandle;
  uint64_t number = state().nextHandle++;
  GraphState made{found->operations, true};
  state().graphs[number] = std::move(made);
  *graph = handleOf(number);
  return Success;
}

Code launchGraph(Handle graph, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  GraphState *found = findGraph(graph);
  StreamState *queue = found ? findStream(stream) : nullptr;
  if (!queue)
    return InvalidHandle;
  if (!found->ready)
    return refuse(InvalidHandle, "recorded work {} was not made ready", graph);
  ++state().counts["graph launches"];
  for (const Operation &operation : found->operations)
    give(*queue, operation.run);
  return Success;
}

Code destroyGraph(Handle graph, bool ready) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  GraphState *found = findGraph(graph);
  if (!found)
    return InvalidHandle;
  if (found->ready != ready)
    return refuse(InvalidHandle, "recorded work {} was {}made ready", graph, ready ? "not " : "");
  state().graphs.erase(numberOf(graph));
  return Success;
}

} // namespace simulated
