// SPDX-License-Identifier: Apache-2.0
//
// One device in use: its context, its memory, and what is made on it. Everything made on a device
// keeps it, and gives itself back when it goes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/DeviceDriver.h"

namespace dovetail::device {

class Device;
class Stream;

/// Memory on a device, from its pool. Moves only.
class DeviceMemory {
public:
  DeviceMemory() = default;
  ~DeviceMemory() { reset(); }
  DeviceMemory(DeviceMemory &&other) noexcept { swap(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    swap(other);
    return *this;
  }
  void swap(DeviceMemory &other) noexcept;
  /// Back to the pool. Nothing on any stream may use it any more, but for memory that was allocated
  /// in the order of a stream: that goes back when the stream is done with it.
  void reset();
  DeviceAddress address() const { return begin; } ///< 256-byte aligned; 0 where there is none
  uint64_t bytes() const { return size; }

private:
  friend class Device;
  std::shared_ptr<Device> device;
  DeviceAddress begin = 0;
  uint64_t size = 0, block = 0;  ///< asked for; of the pool's block, 0: of the driver's pool
  std::shared_ptr<Stream> order; ///< null: for all streams
};

/// Host memory that the device reads and writes without a copy in between. Moves only.
class PinnedMemory {
public:
  PinnedMemory() = default;
  ~PinnedMemory() { reset(); }
  PinnedMemory(PinnedMemory &&other) noexcept { swap(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept {
    swap(other);
    return *this;
  }
  void swap(PinnedMemory &other) noexcept;
  void reset();
  uint8_t *data() const { return static_cast<uint8_t *>(memory); }
  uint64_t bytes() const { return size; }

private:
  friend class Device;
  std::shared_ptr<Device> device;
  void *memory = nullptr;
  uint64_t size = 0;
};

/// Work in order, beside that of other streams.
class Stream {
public:
  ~Stream();
  Stream(const Stream &) = delete;
  StreamHandle handle() const { return stream; }
  /// Waits for all that was given to it; the first error of that work.
  Status synchronize();

private:
  friend class Device;
  Stream() = default;
  std::shared_ptr<Device> device;
  StreamHandle stream = nullptr;
};

class Event {
public:
  ~Event();
  Event(const Event &) = delete;
  EventHandle handle() const { return event; }

private:
  friend class Device;
  Event() = default;
  std::shared_ptr<Device> device;
  EventHandle event = nullptr;
};

/// Work that was recorded, see DeviceDriver::beginCapture.
class Graph {
public:
  ~Graph();
  Graph(const Graph &) = delete;
  GraphHandle handle() const { return graph; }

private:
  friend class Device;
  Graph() = default;
  std::shared_ptr<Device> device;
  GraphHandle graph = nullptr;
};

/// Code on a device.
class Module {
public:
  ~Module();
  Module(const Module &) = delete;
  Expected<FunctionHandle> find(const std::string &name) const;

private:
  friend class Device;
  Module() = default;
  std::shared_ptr<Device> device;
  ModuleHandle module = nullptr;
};

/// Any thread may use it, after it has called makeCurrent().
class Device : public std::enable_shared_from_this<Device> {
public:
  /// Retains the device's context and makes it current for the calling thread. Unavailable where
  /// there is no device of that number.
  static Expected<std::shared_ptr<Device>> open(std::shared_ptr<DeviceDriver> driver,
                                                uint32_t number);
  ~Device();
  Device(const Device &) = delete;

  DeviceDriver &driver() const { return *api; }
  uint32_t number() const { return ordinal; }
  Status makeCurrent() const { return api->makeCurrent(ordinal); }

  /// At least one byte. Blocks that were given back are used again; where memory runs out, those
  /// that wait are given back to the driver first.
  Expected<DeviceMemory> allocate(uint64_t bytes);
  /// For work on this stream alone, and given back in its order, without waiting where the driver
  /// has pools for that.
  Expected<DeviceMemory> allocate(uint64_t bytes, std::shared_ptr<Stream> stream);
  Expected<PinnedMemory> allocatePinned(uint64_t bytes);
  Expected<std::unique_ptr<Stream>> createStream();
  Expected<std::unique_ptr<Event>> createEvent(bool timed);
  Expected<std::unique_ptr<Module>> loadModule(const void *image, uint64_t bytes);
  /// As DeviceDriver::endCapture.
  Expected<std::unique_ptr<Graph>> endCapture(const Stream &stream);
  /// Gives the blocks that wait in the pool back to the driver.
  void trim();
  /// Of the blocks that wait in the pool.
  uint64_t pooledBytes() const;

private:
  friend class DeviceMemory;
  Device(std::shared_ptr<DeviceDriver> driver, uint32_t number)
      : api(std::move(driver)), ordinal(number) {}
  void giveBack(DeviceAddress address, uint64_t block);

  std::shared_ptr<DeviceDriver> api;
  uint32_t ordinal;
  PoolHandle pool = nullptr; ///< the driver's; null where it has none
  mutable std::mutex mutex;
  std::multimap<uint64_t, DeviceAddress> waiting; ///< by bytes
};

} // namespace dovetail::device
