// SPDX-License-Identifier: Apache-2.0
//
// The driver of devices as the runtime needs it, over CUDA's driver API or HIP's runtime, which is
// opened when it is first asked for. One device of it is used through its primary context, which
// vendor libraries of the same process use, too. All calls but open(), count() and describe() work
// on the device that the calling thread has made current.
//
// A transfer or a launch returns before it is done; its memory, host memory included, must stay
// until its stream was synchronised. Errors of kernels show at the next call that waits. Errors
// carry the driver's own words.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "device/DeviceDescription.h"
#include "device/GraphCalls.h"
#include "device/PoolCalls.h"
#include "support/Expected.h"

namespace dovetail::device {

using DeviceAddress = uint64_t; ///< 0: none

// Handles of the driver; null: none. A null stream is the driver's own, which waits for all others.
struct StreamTag;
struct EventTag;
struct ModuleTag;
struct FunctionTag;
struct GraphTag;
struct PoolTag;
using StreamHandle = StreamTag *;
using EventHandle = EventTag *;
using ModuleHandle = ModuleTag *;
using FunctionHandle = FunctionTag *;
using GraphHandle = GraphTag *;
using PoolHandle = PoolTag *;

struct LaunchShape {
  std::array<uint32_t, 3> blocks{1, 1, 1}, threads{1, 1, 1};
  uint32_t sharedBytes = 0; ///< beyond those that the code reserves itself
};

/// What a function takes, as the driver says.
struct FunctionResources {
  uint32_t registers = 0, sharedBytes = 0, localBytes = 0, threadsPerBlock = 0;
};

class DeviceDriver {
public:
  /// From a text as dvt_host.device_drivers has it: the path for an api, or an empty one.
  static std::string pathFor(std::string_view drivers, std::string_view api);
  /// `api` is "cuda" or "rocm"; `path` names a library in place of the system's, or is empty.
  /// Unavailable where there is none, it lacks a function, or it does not start.
  static Expected<std::shared_ptr<DeviceDriver>> open(const std::string &api,
                                                      const std::string &path);
  virtual ~DeviceDriver();
  DeviceDriver(const DeviceDriver &) = delete;

  const std::string &path() const { return libraryPath; } ///< of the library
  /// Whether it runs kernels of images made for this processor (DeviceImage::Kind::Host) instead of
  /// a device's.
  bool isSimulated() const { return simulated; }
  virtual std::string version() const = 0;
  /// As the driver numbers them (of CUDA 12080 for 12.8); 0 where it does not say.
  virtual uint32_t versionNumber() const = 0;
  virtual Expected<uint32_t> count() const = 0;
  /// "sm_90", "gfx942"
  virtual Expected<std::string> architecture(uint32_t device) const = 0;
  /// What the driver says of a device; what it does not say (peaks, the link) is that of `like`, a
  /// description of the same architecture, peaks scaled by units and clock.
  virtual Expected<DeviceDescription> describe(uint32_t device,
                                               const DeviceDescription &like) const = 0;

  /// Retains the device's context until release().
  virtual Status retain(uint32_t device) = 0;
  virtual void release(uint32_t device) = 0;
  virtual Status makeCurrent(uint32_t device) = 0;

  virtual Expected<DeviceAddress> allocate(uint64_t bytes) = 0; ///< 256-byte aligned
  virtual Status free(DeviceAddress address) = 0;
  virtual Expected<void *> allocatePinned(uint64_t bytes) = 0; ///< host memory
  virtual Status freePinned(void *memory) = 0;
  virtual Expected<uint64_t> freeBytes() = 0;

  /// Whether the device gives memory in the order of a stream's work.
  bool hasPools(uint32_t device) const { return pools.create && offersPools(device); }
  /// Keeps what is freed into it until trimPool().
  Expected<PoolHandle> createPool(uint32_t device);
  Status destroyPool(PoolHandle pool); ///< all its memory was freed
  Status trimPool(PoolHandle pool);
  /// For work given to the stream from now on; for that of other streams once they waited for it.
  Expected<DeviceAddress> allocate(uint64_t bytes, PoolHandle pool, StreamHandle stream);
  /// Once what was given to the stream is done. Memory of allocate() from a pool only.
  Status free(DeviceAddress address, StreamHandle stream);

  virtual Status copyToDevice(DeviceAddress to, const void *from, uint64_t bytes,
                              StreamHandle stream) = 0;
  virtual Status copyToHost(void *to, DeviceAddress from, uint64_t bytes, StreamHandle stream) = 0;
  virtual Status copyOnDevice(DeviceAddress to, DeviceAddress from, uint64_t bytes,
                              StreamHandle stream) = 0;
  virtual Status fill(DeviceAddress to, uint8_t value, uint64_t bytes, StreamHandle stream) = 0;

  virtual Expected<StreamHandle> createStream() = 0;
  virtual Status destroyStream(StreamHandle stream) = 0;
  virtual Status synchronize(StreamHandle stream) = 0;
  virtual Expected<EventHandle> createEvent(bool timed) = 0;
  virtual Status destroyEvent(EventHandle event) = 0;
  virtual Status record(EventHandle event, StreamHandle stream) = 0;
  virtual Status wait(StreamHandle stream, EventHandle event) = 0;
  virtual Status synchronize(EventHandle event) = 0;
  /// Between two recorded and finished timed events.
  virtual Expected<double> microsBetween(EventHandle from, EventHandle to) = 0;

  /// `image`: PTX text with its final zero, a cubin, a code object, or, simulated, host kernels.
  virtual Expected<ModuleHandle> loadModule(const void *image, uint64_t bytes) = 0;
  virtual Status unloadModule(ModuleHandle module) = 0;
  virtual Expected<FunctionHandle> findFunction(ModuleHandle module, const std::string &name) = 0;
  virtual Expected<FunctionResources> resources(FunctionHandle function) const = 0;
  /// Lets launches of the function ask for so many bytes of shared memory.
  virtual Status allowSharedBytes(FunctionHandle function, uint32_t bytes) = 0;
  /// `arguments`: the address of each argument's value, which is read before this returns.
  virtual Status launch(FunctionHandle function, const LaunchShape &shape, void **arguments,
                        StreamHandle stream) = 0;

  /// Whether work can be recorded, to be given to a stream as one.
  bool hasGraphs() const { return graphs.beginCapture != nullptr; }
  /// What the calling thread gives to the stream is recorded instead of done, until endCapture().
  /// Nothing may be waited for, allocated, or copied from or to the host meanwhile.
  Status beginCapture(StreamHandle stream);
  Expected<bool> isRecording(StreamHandle stream);
  /// What was recorded, to be launched as often as wanted. An error where something was given that
  /// cannot be recorded; in any case the stream works again as before.
  Expected<GraphHandle> endCapture(StreamHandle stream);
  Status launchGraph(GraphHandle graph, StreamHandle stream);
  Status destroyGraph(GraphHandle graph);

protected:
  DeviceDriver() = default;
  std::string libraryPath;
  bool simulated = false;
  GraphCalls graphs;
  PoolCalls pools;

private:
  virtual bool offersPools(uint32_t device) const = 0;
  /// Makes what was recorded ready to be launched; the driver's code, 0 where it went well.
  virtual int instantiate(GraphHandle *graph, void *recorded) = 0;
  virtual Error failure(int code, const std::string &call) const = 0;
};

} // namespace dovetail::device
