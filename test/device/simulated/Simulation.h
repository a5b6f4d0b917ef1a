// SPDX-License-Identifier: Apache-2.0
//
// A device that is not there. It keeps what a driver keeps (contexts, memory, streams, events,
// modules), holds every call against it, and runs kernels on this processor. Stricter than
// hardware: work waits until somebody synchronises, so that whoever reads too early reads nonsense;
// device memory cannot be touched by the host at all; what a kernel writes beside its memory is
// found; and sources of transfers must not change before they are read.
//
// The entry points of both drivers (CudaEntries.cpp, HipEntries.cpp) call it. Codes are those that
// both number alike. All functions may be called by any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace simulated {

enum Code : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  CaptureUnsupported = 900,
  CaptureInvalidated = 901,
};

struct Limits {
  std::string name, architecture;
  uint32_t units, warp, clockKilohertz, memoryClockKilohertz, memoryBusBits, l2Bytes;
  uint32_t sharedBytesWithoutAsking, sharedBytesPerBlock, sharedBytesPerUnit, registersPerUnit;
  uint32_t threadsPerBlock, threadsPerUnit, blocksPerUnit;
  uint64_t memoryBytes;
};
/// Set once, by the entry points, before anything else.
void describe(const Limits &limits);
const Limits &limits();

/// What the last failed call of this thread was about; the plain name of the code where it was
/// another one.
const char *explain(int code);
const char *nameOf(int code);

Code init();
Code checkDevice(int device);
Code retain(int device);
Code releaseContext(int device);
Code setCurrent(bool current);

Code allocate(uint64_t bytes, uint64_t *address);
Code freeMemory(uint64_t address);
Code allocatePinned(uint64_t bytes, void **memory);
Code freePinned(void *memory);
Code memoryInfo(uint64_t *free, uint64_t *total);
/// How much pinned memory there is at once: DOVETAIL_SIMULATED_PINNED_BYTES, where it is set.
uint64_t pinnedLimit();

// Handles are numbers in disguise, never used again; null stands for the driver's own stream.
using Handle = void *;
Code copyToDevice(uint64_t to, const void *from, uint64_t bytes, Handle stream);
Code copyToHost(void *to, uint64_t from, uint64_t bytes, Handle stream);
Code copyOnDevice(uint64_t to, uint64_t from, uint64_t bytes, Handle stream);
Code fill(uint64_t to, uint8_t value, uint64_t bytes, Handle stream);

// Memory in the order of a stream: there once the stream has come to the allocation, for other
// streams when they have waited for that, and gone when the stream comes to the freeing.
struct PoolProperties {
  int32_t allocation, handles, location, device;
  uint64_t rest[9];
};
Code createPool(Handle *pool, const PoolProperties *properties);
Code destroyPool(Handle pool);
Code setPoolAttribute(Handle pool, int attribute, const void *value);
Code trimPool(Handle pool);
Code allocateFromPool(uint64_t *address, uint64_t bytes, Handle pool, Handle stream);
Code freeInOrder(uint64_t address, Handle stream);

Code createStream(Handle *stream);
Code destroyStream(Handle stream);
Code synchronizeStream(Handle stream);
Code createEvent(bool timed, Handle *event);
Code destroyEvent(Handle event);
Code recordEvent(Handle event, Handle stream);
Code waitForEvent(Handle stream, Handle event);
Code synchronizeEvent(Handle event);
Code elapsedMillis(Handle from, Handle to, float *millis);

// Recorded work: what ends a recording is launched after it was made ready. What cannot be recorded
// is refused to all threads, to the one that records, or to nobody.
enum RecordingMode : int { OfAll = 0, OfThread = 1, Relaxed = 2 };
Code beginCapture(Handle stream, int mode);
Code endCapture(Handle stream, Handle *recorded);
/// Status: 0 where it does not record, 1 where it does, 2 where that was spoilt.
Code isCapturing(Handle stream, int *status);
Code makeGraph(Handle recorded, Handle *graph);
Code launchGraph(Handle graph, Handle stream);
/// `ready`: whether it is one that was made ready, or what ended a recording.
Code destroyGraph(Handle graph, bool ready);

Code loadModule(const void *image, uint64_t bytes, Handle *module);
Code unloadModule(Handle module);
Code findFunction(Handle module, const char *name, Handle *function);
Code functionAttribute(Handle function, int attribute, int *value);
Code allowShared(Handle function, int bytes);
Code launch(Handle function, std::array<uint32_t, 3> blocks, std::array<uint32_t, 3> threads,
            uint32_t sharedBytes, Handle stream, void **arguments, void **extra);

/// What tests ask for: "allocations", "pool allocations", "copies to the device", "bytes to the
/// device", "copies to the host", "pinned copies", "launches", "library calls", "modules",
/// "synchronisations", "graph launches", "calls" and "refusals" since the beginning; "blocks",
/// "pools", "pinned blocks", "streams", "events", "graphs" and "live modules" that are there now.
/// Where the environment names a file (DOVETAIL_SIMULATED_REPORT), a process that used the device
/// adds the former to it.
uint64_t count(const std::string &what);

} // namespace simulated
