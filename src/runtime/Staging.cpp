// SPDX-License-Identifier: Apache-2.0
//
// Large transfers go in parts, so that the first travels while the next is copied.
#include "runtime/Staging.h"

#include <algorithm>
#include <cstring>

namespace dovetail {

namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kPart = uint64_t(2) << 20;

} // namespace

uint64_t Staging::place(uint64_t bytes, uint64_t &taken) {
  uint64_t span = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (span > kMostBytes - taken)
    return kNoPlace;
  uint64_t begin = taken;
  taken += span;
  return begin;
}

Expected<std::unique_ptr<Staging>> Staging::create(std::shared_ptr<device::Device> device,
                                                   std::shared_ptr<device::Stream> stream) {
  auto event = device->createEvent(false);
  if (!event)
    return event.takeError();
  std::unique_ptr<Staging> made(new Staging(std::move(device), std::move(stream)));
  made->arrived = std::move(*event);
  return made;
}

void Staging::reserve(uint64_t bytes, const Log &log) {
  if (bytes <= memory.bytes() || isRefused)
    return;
  memory.reset();
  auto pinned = device->allocatePinned(bytes);
  if (pinned) {
    memory = std::move(*pinned);
    return;
  }
  isRefused = true;
  log(LogLevel::Warning,
      "transfers go through ordinary memory, which takes longer: the driver has no {} bytes of "
      "page-locked memory: {}",
      bytes, pinned.error().message);
}

uint8_t *Staging::at(uint64_t place, uint64_t bytes) const {
  bool isInside = place <= memory.bytes() && bytes <= memory.bytes() - place;
  return isInside ? memory.data() + place : nullptr;
}

Status Staging::toDevice(device::DeviceAddress to, const void *from, uint64_t bytes,
                         uint64_t place) {
  device::DeviceDriver &driver = device->driver();
  uint8_t *staged = at(place, bytes);
  if (!staged) {
    // Drivers copy ordinary memory before they return; the host's allocator may give pinned one.
    Status copied = driver.copyToDevice(to, from, bytes, stream->handle());
    return copied ? stream->synchronize() : copied;
  }
  const auto *source = static_cast<const uint8_t *>(from);
  Status status = Status::success();
  for (uint64_t begin = 0; begin < bytes && status; begin += kPart) {
    uint64_t part = std::min(kPart, bytes - begin);
    std::memcpy(staged + begin, source + begin, part);
    status = driver.copyToDevice(to + begin, staged + begin, part, stream->handle());
  }
  return status;
}

Status Staging::toHost(void *to, device::DeviceAddress from, uint64_t bytes, uint64_t place,
                       uint32_t step) {
  device::DeviceDriver &driver = device->driver();
  uint8_t *staged = at(place, bytes);
  Status status = driver.copyToHost(staged ? staged : to, from, bytes, stream->handle());
  if (status)
    status = driver.record(arrived->handle(), stream->handle());
  if (status)
    awaited.push_back({to, staged, bytes, step});
  return status;
}

Status Staging::arrive() {
  if (awaited.empty())
    return Status::success();
  Status status = device->driver().synchronize(arrived->handle());
  for (const Awaited &one : awaited)
    if (status && one.from)
      std::memcpy(one.to, one.from, one.bytes);
  awaited.clear();
  return status;
}

Expected<std::unique_ptr<Upload>> Upload::create(std::shared_ptr<device::Device> device,
                                                 const Log &log) {
  std::unique_ptr<Upload> made(new Upload(device));
  auto stream = device->createStream();
  if (!stream)
    return stream.takeError();
  made->stream = std::move(*stream);
  for (Half &half : made->halves) {
    auto event = device->createEvent(false);
    if (!event)
      return event.takeError();
    half.done = std::move(*event);
    auto pinned = device->allocatePinned(kPart);
    if (pinned)
      half.memory = std::move(*pinned);
    else
      log(LogLevel::Debug, "constants travel through ordinary memory: {}", pinned.error().message);
  }
  return made;
}

Status Upload::bring(device::DeviceAddress to, const void *from, uint64_t bytes) {
  device::DeviceDriver &driver = device->driver();
  if (halves[0].memory.bytes() == 0 || halves[1].memory.bytes() == 0) {
    Status status = driver.copyToDevice(to, from, bytes, stream->handle());
    return status ? stream->synchronize() : status;
  }
  Status status = Status::success();
  for (uint64_t begin = 0, i = 0; begin < bytes && status; begin += kPart, ++i) {
    Half &half = halves[i % 2];
    uint64_t part = std::min(kPart, bytes - begin);
    if (half.travels)
      status = driver.synchronize(half.done->handle());
    if (!status)
      break;
    half.travels = false;
    std::memcpy(half.memory.data(), static_cast<const uint8_t *>(from) + begin, part);
    status = driver.copyToDevice(to + begin, half.memory.data(), part, stream->handle());
    if (status)
      status = driver.record(half.done->handle(), stream->handle());
    half.travels = true;
  }
  Status last = stream->synchronize();
  for (Half &half : halves)
    half.travels = false;
  return status ? std::move(last) : std::move(status);
}

} // namespace dovetail
