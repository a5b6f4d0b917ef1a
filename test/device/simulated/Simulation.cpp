// SPDX-License-Identifier: Apache-2.0
//
// Contexts, memory and transfers. One lock guards everything; kernels run under it, one after the
// other.
#include "State.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simulated {

State &state() {
  static auto *only = new State(); // kernels may run while the process ends
  return *only;
}

namespace {

/// What was counted, as a line of JSON behind what the file has, when the process ends.
struct Report {
  Report() = default;
  Report(const Report &) = delete;
  ~Report() {
    const char *path = std::getenv("DOVETAIL_SIMULATED_REPORT");
    std::FILE *file = path ? std::fopen(path, "ae") : nullptr;
    if (!file)
      return;
    std::string line = fmt::format("{{\"architecture\": \"{}\"", state().limits.architecture);
    for (const auto &[what, number] : state().counts)
      line += fmt::format(", \"{}\": {}", what, number);
    std::fputs((line + "}\n").c_str(), file);
    std::fclose(file);
  }
} report;

} // namespace

Code breakDown(Code code, std::string reason) {
  state().broken = code;
  state().brokenReason = std::move(reason);
  return refuse(code, "{}", state().brokenReason);
}

Code checkContext() {
  ++state().counts["calls"];
  if (!state().initialised)
    return refuse(NotInitialized, "the driver was not initialised");
  if (state().retained == 0 || !isCurrent)
    return refuse(InvalidContext, "no device is current for this thread");
  if (state().broken)
    return refuse(state().broken, "an earlier kernel failed: {}", state().brokenReason);
  return Success;
}

StreamState *findStream(Handle handle) {
  auto found = state().streams.find(numberOf(handle));
  if (handle == nullptr)
    found = state().streams.try_emplace(0).first;
  if (found != state().streams.end())
    return &found->second;
  refuse(InvalidHandle, "there is no stream {}", handle);
  return nullptr;
}

Code drain(StreamState &stream, uint64_t upTo) {
  while (stream.done < std::min(upTo, stream.given)) {
    Operation operation = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    ++stream.done;
    if (state().broken) // what is left is dropped
      continue;
    if (Code code = operation.run())
      return code;
  }
  return state().broken;
}

Code drainAll() {
  for (auto &[number, stream] : state().streams)
    if (Code code = drain(stream, UINT64_MAX))
      return code;
  return Success;
}

void give(StreamState &stream, std::function<Code()> run) {
  if (stream.recorded) {
    stream.recorded->push_back({std::move(run)});
    return;
  }
  stream.waiting.push_back({std::move(run)});
  ++stream.given;
}

namespace {

/// The pinned block that holds all of these bytes, or null.
Pinned *pinnedOf(const void *memory, uint64_t bytes) {
  auto after = state().pinned.upper_bound(const_cast<void *>(memory));
  if (after == state().pinned.begin())
    return nullptr;
  auto &[begin, block] = *std::prev(after);
  uint64_t offset = static_cast<const uint8_t *>(memory) - static_cast<uint8_t *>(begin);
  return offset + bytes <= block.bytes.size() ? &block : nullptr;
}

Code checkDeviceRange(const char *what, uint64_t address, uint64_t bytes) {
  std::string why = state().memory.check(address, bytes);
  return why.empty() ? Success : refuse(InvalidValue, "{}: {}", what, why);
}

/// When the device comes to it.
Code checkReached(const char *what, uint64_t address, uint64_t bytes) {
  Code code = checkDeviceRange(what, address, bytes);
  return code ? code : checkOrdered(what, address);
}

/// `bytes` of it may begin in pinned memory and leave it: no driver takes that.
Code checkHostPointer(const char *what, const void *memory, uint64_t bytes) {
  if (!memory)
    return refuse(InvalidValue, "{}: the host's memory is null", what);
  if (state().memory.covers(reinterpret_cast<uint64_t>(memory)))
    return refuse(InvalidValue, "{}: the host's memory is the device's", what);
  const auto *first = static_cast<const uint8_t *>(memory);
  for (const auto &[begin, block] : state().pinned) {
    const auto *from = static_cast<const uint8_t *>(begin), *to = from + block.bytes.size();
    if (first < to && from < first + bytes && (first < from || first + bytes > to))
      return refuse(InvalidValue, "{}: {} bytes of the host's leave a block of {} that is pinned",
                    what, bytes, block.bytes.size());
  }
  return Success;
}

uint64_t sumOf(const void *memory, uint64_t bytes) {
  uint64_t sum = 1469598103934665603u; // FNV-1a
  for (uint64_t i = 0; i < bytes; ++i)
    sum = (sum ^ static_cast<const uint8_t *>(memory)[i]) * 1099511628211u;
  return sum;
}

} // namespace

void describe(const Limits &limits) {
  std::lock_guard lock(state().mutex);
  state().limits = limits;
  state().memory.reserve(limits.memoryBytes);
}
const Limits &limits() { return state().limits; }

const char *nameOf(int code) {
  switch (code) {
  case Success:
    return "success";
  case InvalidValue:
    return "invalid value";
  case OutOfMemory:
    return "out of memory";
  case NotInitialized:
    return "not initialised";
  case InvalidDevice:
    return "invalid device";
  case InvalidImage:
    return "invalid image";
  case InvalidContext:
    return "invalid context";
  case InvalidHandle:
    return "invalid handle";
  case NotFound:
    return "not found";
  case NotReady:
    return "not ready";
  case IllegalAddress:
    return "illegal address";
  case LaunchOutOfResources:
    return "launch out of resources";
  case CaptureUnsupported:
    return "not permitted while a stream records";
  case CaptureInvalidated:
    return "recording was spoilt";
  default:
    return "unknown";
  }
}

const char *explain(int code) {
  return code == lastCode && !lastReason.empty() ? lastReason.c_str() : nameOf(code);
}

Code init() {
  std::lock_guard lock(state().mutex);
  state().initialised = true;
  return Success;
}

Code checkDevice(int device) {
  std::lock_guard lock(state().mutex);
  if (!state().initialised)
    return refuse(NotInitialized, "the driver was not initialised");
  return device == 0 ? Success : refuse(InvalidDevice, "there is one device; {} is none", device);
}

Code retain(int device) {
  if (Code code = checkDevice(device))
    return code;
  std::lock_guard lock(state().mutex);
  ++state().retained;
  return Success;
}

/// With the last one the device forgets everything.
Code releaseContext(int device) {
  if (Code code = checkDevice(device))
    return code;
  std::lock_guard lock(state().mutex);
  State &s = state();
  if (s.retained == 0)
    return refuse(InvalidContext, "the device's context is released and was not retained");
  if (--s.retained > 0)
    return Success;
  (void)drainAll();
  s.memory.clear();
  s.pinned.clear();
  s.pools.clear();
  s.ordered.clear();
  s.streams.clear();
  s.events.clear();
  s.functions.clear();
  s.graphs.clear();
  s.modules.clear();
  s.broken = Success;
  return Success;
}

Code setCurrent(bool current) {
  std::lock_guard lock(state().mutex);
  if (current && state().retained == 0)
    return refuse(InvalidContext, "the device's context is not retained");
  isCurrent = current;
  return Success;
}

Code allocate(uint64_t bytes, uint64_t *address) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (Code code = spoilRecording("an allocation"))
    return code;
  if (bytes == 0 || !address)
    return refuse(InvalidValue, "no bytes are allocated");
  *address = state().memory.allocate(bytes);
  ++state().counts["allocations"];
  return *address ? Success
                  : refuse(OutOfMemory, "{} bytes are wanted and {} are left", bytes,
                           state().memory.freeBytes());
}

Code freeMemory(uint64_t address) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (address == 0)
    return Success;
  if (Code code = spoilRecording("giving memory back"))
    return code;
  if (Code code = drainAll()) // as hardware does
    return code;
  if (state().ordered.contains(address))
    return refuse(InvalidValue, "{:#x} is out of a pool and goes back in a stream's order",
                  address);
  std::string why = state().memory.release(address);
  return why.empty() ? Success : refuse(InvalidValue, "{}", why);
}

uint64_t pinnedLimit() {
  const char *bytes = std::getenv("DOVETAIL_SIMULATED_PINNED_BYTES");
  return bytes ? std::strtoull(bytes, nullptr, 10) : UINT64_MAX;
}

Code allocatePinned(uint64_t bytes, void **memory) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (bytes == 0 || !memory)
    return refuse(InvalidValue, "no bytes are allocated");
  uint64_t there = 0;
  for (const auto &[begin, block] : state().pinned)
    there += block.bytes.size();
  if (bytes > pinnedLimit() - std::min(there, pinnedLimit()))
    return refuse(OutOfMemory, "{} bytes of pinned memory are wanted and {} of {} are in use",
                  bytes, there, pinnedLimit());
  std::vector<uint8_t> block(bytes, 0xCD);
  *memory = block.data();
  state().pinned[*memory].bytes = std::move(block);
  return Success;
}

Code freePinned(void *memory) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  auto found = state().pinned.find(memory);
  if (found == state().pinned.end())
    return refuse(InvalidValue, "{} is no pinned memory", memory);
  if (found->second.pending > 0)
    return refuse(InvalidValue, "{} transfers of this pinned memory were not waited for",
                  found->second.pending);
  state().pinned.erase(found);
  return Success;
}

Code memoryInfo(uint64_t *free, uint64_t *total) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  *free = state().memory.freeBytes();
  *total = state().limits.memoryBytes;
  return Success;
}

Code copyToDevice(uint64_t to, const void *from, uint64_t bytes, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *queue = findStream(stream);
  if (!queue)
    return InvalidHandle;
  if (bytes == 0)
    return Success;
  if (queue->recorded)
    return spoil(*queue, "a copy from the host");
  if (Code code = checkHostPointer("copy to the device", from, bytes))
    return code;
  if (Code code = checkDeviceRange("copy to the device", to, bytes))
    return code;
  ++state().counts["copies to the device"];
  state().counts["bytes to the device"] += bytes;
  Pinned *block = pinnedOf(from, bytes);
  if (!block) { // drivers copy ordinary memory before they return
    std::vector<uint8_t> staged(static_cast<const uint8_t *>(from),
                                static_cast<const uint8_t *>(from) + bytes);
    give(*queue, [to, staged = std::move(staged)] {
      if (checkReached("copy to the device", to, staged.size()))
        return breakDown(IllegalAddress, lastReason);
      state().memory.write(to, staged.data(), staged.size());
      return Success;
    });
    return Success;
  }
  ++block->pending;
  ++state().counts["pinned copies"];
  uint64_t sum = sumOf(from, bytes);
  give(*queue, [=] {
    --pinnedOf(from, bytes)->pending;
    if (sumOf(from, bytes) != sum)
      return breakDown(IllegalAddress,
                       "pinned memory was changed before its transfer was waited for");
    if (checkReached("copy to the device", to, bytes))
      return breakDown(IllegalAddress, lastReason);
    state().memory.write(to, from, bytes);
    return Success;
  });
  return Success;
}

Code copyToHost(void *to, uint64_t from, uint64_t bytes, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *queue = findStream(stream);
  if (!queue)
    return InvalidHandle;
  if (bytes == 0)
    return Success;
  if (queue->recorded)
    return spoil(*queue, "a copy to the host");
  if (Code code = checkHostPointer("copy to the host", to, bytes))
    return code;
  if (Code code = checkDeviceRange("copy to the host", from, bytes))
    return code;
  ++state().counts["copies to the host"];
  Pinned *block = pinnedOf(to, bytes);
  auto copy = [=] {
    if (checkReached("copy to the host", from, bytes))
      return breakDown(IllegalAddress, lastReason);
    state().memory.read(to, from, bytes);
    return Success;
  };
  if (!block) { // into ordinary memory drivers copy before they return
    give(*queue, copy);
    return drain(*queue, UINT64_MAX);
  }
  ++block->pending;
  ++state().counts["pinned copies"];
  std::memset(to, 0xCD, bytes); // whoever reads before waiting shall see it
  give(*queue, [=] {
    --pinnedOf(to, bytes)->pending;
    return copy();
  });
  return Success;
}

Code copyOnDevice(uint64_t to, uint64_t from, uint64_t bytes, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *queue = findStream(stream);
  if (!queue)
    return InvalidHandle;
  if (bytes == 0)
    return Success;
  if (Code code = checkDeviceRange("copy on the device, to", to, bytes))
    return code;
  if (Code code = checkDeviceRange("copy on the device, from", from, bytes))
    return code;
  if (to < from + bytes && from < to + bytes)
    return refuse(InvalidValue, "copy on the device: the two overlap");
  give(*queue, [=] {
    if (checkReached("copy on the device, to", to, bytes) ||
        checkReached("copy on the device, from", from, bytes))
      return breakDown(IllegalAddress, lastReason);
    state().memory.copy(to, from, bytes);
    return Success;
  });
  return Success;
}

Code fill(uint64_t to, uint8_t value, uint64_t bytes, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *queue = findStream(stream);
  if (!queue)
    return InvalidHandle;
  if (bytes == 0)
    return Success;
  if (Code code = checkDeviceRange("fill", to, bytes))
    return code;
  give(*queue, [=] {
    if (checkReached("fill", to, bytes))
      return breakDown(IllegalAddress, lastReason);
    state().memory.fill(to, value, bytes);
    return Success;
  });
  return Success;
}

uint64_t count(const std::string &what) {
  std::lock_guard lock(state().mutex);
  const State &s = state();
  if (what == "blocks")
    return s.memory.blocks();
  if (what == "pools")
    return s.pools.size();
  if (what == "pinned blocks")
    return s.pinned.size();
  if (what == "streams")
    return s.streams.size() - s.streams.count(0);
  if (what == "events")
    return s.events.size();
  if (what == "graphs")
    return s.graphs.size();
  if (what == "live modules")
    return s.modules.size();
  auto found = s.counts.find(what);
  return found == s.counts.end() ? 0 : found->second;
}

} // namespace simulated
