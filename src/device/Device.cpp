// SPDX-License-Identifier: Apache-2.0
//
// What is made on a device gives itself back; failures of giving back cannot be helped and are not
// reported. The context may be gone from the thread by then, so it is made current again first.
#include "device/Device.h"

#include <utility>

namespace dovetail::device {

namespace {

/// Small blocks by powers of two, large ones by this: few sizes, so that blocks fit again.
constexpr uint64_t kLeastBlock = 512, kLargeStep = uint64_t(2) << 20;
constexpr uint64_t kMostBytes = uint64_t(1) << 47;

uint64_t blockOf(uint64_t bytes) {
  if (bytes > kLargeStep)
    return (bytes + kLargeStep - 1) / kLargeStep * kLargeStep;
  uint64_t block = kLeastBlock;
  while (block < bytes)
    block *= 2;
  return block;
}

} // namespace

void DeviceMemory::swap(DeviceMemory &other) noexcept {
  std::swap(device, other.device);
  std::swap(begin, other.begin);
  std::swap(size, other.size);
  std::swap(block, other.block);
  std::swap(order, other.order);
}

void DeviceMemory::reset() {
  if (begin && order && device->makeCurrent()) {
    if (block == 0)
      (void)device->driver().free(begin, order->handle());
    else
      (void)order->synchronize();
  }
  if (block > 0)
    device->giveBack(begin, block);
  begin = size = block = 0;
  order = nullptr; // before the device, which it keeps
  device = nullptr;
}

void PinnedMemory::swap(PinnedMemory &other) noexcept {
  std::swap(device, other.device);
  std::swap(memory, other.memory);
  std::swap(size, other.size);
}

void PinnedMemory::reset() {
  if (memory && device->makeCurrent())
    (void)device->driver().freePinned(memory);
  memory = nullptr;
  size = 0;
  device = nullptr;
}

Stream::~Stream() {
  if (stream && device->makeCurrent())
    (void)device->driver().destroyStream(stream);
}

Status Stream::synchronize() { return device->driver().synchronize(stream); }

Event::~Event() {
  if (event && device->makeCurrent())
    (void)device->driver().destroyEvent(event);
}

Graph::~Graph() {
  if (graph && device->makeCurrent())
    (void)device->driver().destroyGraph(graph);
}

Module::~Module() {
  if (module && device->makeCurrent())
    (void)device->driver().unloadModule(module);
}

Expected<FunctionHandle> Module::find(const std::string &name) const {
  return device->driver().findFunction(module, name);
}

Expected<std::shared_ptr<Device>> Device::open(std::shared_ptr<DeviceDriver> driver,
                                               uint32_t number) {
  auto count = driver->count();
  if (!count)
    return count.takeError();
  if (number >= *count)
    return unavailable("{} has {} devices; there is no device {}", driver->path(), *count, number);
  if (Status status = driver->retain(number); !status)
    return status.takeError();
  std::shared_ptr<Device> device(new Device(std::move(driver), number));
  if (Status status = device->makeCurrent(); !status)
    return status.takeError();
  if (device->api->hasPools(number))
    if (auto pool = device->api->createPool(number))
      device->pool = *pool;
  return device;
}

Device::~Device() {
  trim();
  if (pool && makeCurrent())
    (void)api->destroyPool(pool);
  api->release(ordinal);
}

Expected<DeviceMemory> Device::allocate(uint64_t bytes, std::shared_ptr<Stream> stream) {
  if (!pool) {
    auto memory = allocate(bytes);
    if (memory)
      memory->order = std::move(stream);
    return memory;
  }
  bytes = std::max<uint64_t>(bytes, 1);
  if (bytes > kMostBytes)
    return unavailable("{} bytes of device memory were asked for", bytes);
  auto address = api->allocate(bytes, pool, stream->handle());
  if (!address) { // what waits here, and there once the stream has given it back
    trim();
    if (Status status = stream->synchronize(); !status)
      return status.takeError();
    (void)api->trimPool(pool);
    address = api->allocate(bytes, pool, stream->handle());
  }
  if (!address)
    return address.takeError();
  DeviceMemory memory;
  memory.device = shared_from_this();
  memory.begin = *address;
  memory.size = bytes;
  memory.order = std::move(stream);
  return memory;
}

Expected<DeviceMemory> Device::allocate(uint64_t bytes) {
  DeviceMemory memory;
  bytes = std::max<uint64_t>(bytes, 1);
  if (bytes > kMostBytes)
    return unavailable("{} bytes of device memory were asked for", bytes);
  uint64_t block = blockOf(bytes);
  {
    std::lock_guard lock(mutex);
    auto found = waiting.lower_bound(block);
    if (found != waiting.end() && found->first / 2 <= block) {
      memory.begin = found->second;
      block = found->first;
      waiting.erase(found);
    }
  }
  if (!memory.begin) {
    auto address = api->allocate(block);
    if (!address) {
      trim();
      if (pool)
        (void)api->trimPool(pool);
      address = api->allocate(block);
    }
    if (!address)
      return address.takeError();
    memory.begin = *address;
  }
  memory.device = shared_from_this();
  memory.size = bytes;
  memory.block = block;
  return memory;
}

Expected<PinnedMemory> Device::allocatePinned(uint64_t bytes) {
  PinnedMemory memory;
  auto address = api->allocatePinned(std::max<uint64_t>(bytes, 1));
  if (!address)
    return address.takeError();
  memory.device = shared_from_this();
  memory.memory = *address;
  memory.size = bytes;
  return memory;
}

Expected<std::unique_ptr<Stream>> Device::createStream() {
  auto handle = api->createStream();
  if (!handle)
    return handle.takeError();
  std::unique_ptr<Stream> stream(new Stream());
  stream->device = shared_from_this();
  stream->stream = *handle;
  return stream;
}

Expected<std::unique_ptr<Event>> Device::createEvent(bool timed) {
  auto handle = api->createEvent(timed);
  if (!handle)
    return handle.takeError();
  std::unique_ptr<Event> event(new Event());
  event->device = shared_from_this();
  event->event = *handle;
  return event;
}

Expected<std::unique_ptr<Module>> Device::loadModule(const void *image, uint64_t bytes) {
  auto handle = api->loadModule(image, bytes);
  if (!handle)
    return handle.takeError();
  std::unique_ptr<Module> module(new Module());
  module->device = shared_from_this();
  module->module = *handle;
  return module;
}

Expected<std::unique_ptr<Graph>> Device::endCapture(const Stream &stream) {
  auto handle = api->endCapture(stream.handle());
  if (!handle)
    return handle.takeError();
  std::unique_ptr<Graph> graph(new Graph());
  graph->device = shared_from_this();
  graph->graph = *handle;
  return graph;
}

void Device::giveBack(DeviceAddress address, uint64_t block) {
  std::lock_guard lock(mutex);
  waiting.emplace(block, address);
}

void Device::trim() {
  std::multimap<uint64_t, DeviceAddress> given;
  {
    std::lock_guard lock(mutex);
    given.swap(waiting);
  }
  if (given.empty() || !makeCurrent())
    return;
  for (const auto &[bytes, address] : given)
    (void)api->free(address);
}

uint64_t Device::pooledBytes() const {
  std::lock_guard lock(mutex);
  uint64_t sum = 0;
  for (const auto &[bytes, address] : waiting)
    sum += bytes;
  return sum;
}

} // namespace dovetail::device
