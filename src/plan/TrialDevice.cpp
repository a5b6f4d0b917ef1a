// SPDX-License-Identifier: Apache-2.0
//
// Everything goes through the one stream, in order. A time is that between two events around the
// work; displacing the caches before them keeps the device busy for so long that the host has given
// it all by then, so that no time of the host's is in it.
#include "plan/TrialDevice.h"

#include <algorithm>

namespace dovetail::plan {

Expected<std::unique_ptr<TrialDevice>> TrialDevice::open(const Target &target,
                                                         const std::string &drivers) {
  auto driver = device::DeviceDriver::open(target.device,
                                           device::DeviceDriver::pathFor(drivers, target.device));
  if (!driver)
    return driver.takeError();
  auto architecture = (*driver)->architecture(0);
  if (!architecture)
    return architecture.takeError();
  if (*architecture != target.architecture)
    return unavailable("the kernels are for {}, the device here is {}:{}", target.name(),
                       target.device, *architecture);
  auto opened = device::Device::open(*driver, 0);
  if (!opened)
    return opened.takeError();
  std::unique_ptr<TrialDevice> made(new TrialDevice);
  made->device = std::move(*opened);
  auto stream = made->device->createStream();
  if (!stream)
    return stream.takeError();
  made->work = std::move(*stream);
  for (std::unique_ptr<device::Event> *event : {&made->begin, &made->end}) {
    auto created = made->device->createEvent(true);
    if (!created)
      return created.takeError();
    *event = std::move(*created);
  }
  return made;
}

TrialDevice::~TrialDevice() {
  if (work)
    (void)work->synchronize(); // the memory that it still uses is about to go
}

Status TrialDevice::noted(Status status) {
  if (!status && lost.empty())
    lost = status.error().message;
  return status;
}

void *TrialDevice::dataOf(const device::DeviceMemory &copy) {
  return reinterpret_cast<void *>(copy.address() + GuardedBuffer::kGuardBytes);
}

Expected<device::DeviceMemory> TrialDevice::copy(const GuardedBuffer &buffer) {
  auto memory = device->allocate(buffer.wholeBytes());
  if (!memory)
    return memory;
  Status status = noted(device->driver().copyToDevice(memory->address(), buffer.whole(),
                                                      buffer.wholeBytes(), work->handle()));
  if (status)
    status = synchronize();
  if (!status)
    return status.takeError();
  return memory;
}

Status TrialDevice::fetch(const device::DeviceMemory &from, GuardedBuffer &to) {
  Status status = noted(
      device->driver().copyToHost(to.whole(), from.address(), to.wholeBytes(), work->handle()));
  return status ? synchronize() : status;
}

Status TrialDevice::displaceCaches(uint64_t bytes) {
  if (bytes == 0)
    return Status::success();
  if (sweep.bytes() < bytes) {
    if (Status status = synchronize(); !status)
      return status;
    sweep.reset();
    auto memory = device->allocate(bytes);
    if (!memory)
      return memory.takeError();
    sweep = std::move(*memory);
  }
  return noted(device->driver().fill(sweep.address(), 1, bytes, work->handle()));
}

Status TrialDevice::touch(const device::DeviceMemory &copy) {
  uint64_t bytes = std::min(copy.bytes(), sweep.bytes());
  if (bytes == 0)
    return Status::success();
  return noted(
      device->driver().copyOnDevice(sweep.address(), copy.address(), bytes, work->handle()));
}

Expected<double> TrialDevice::time(const std::function<void()> &body) {
  device::DeviceDriver &driver = device->driver();
  if (Status status = noted(driver.record(begin->handle(), work->handle())); !status)
    return status.takeError();
  body();
  Status status = noted(driver.record(end->handle(), work->handle()));
  if (status)
    status = synchronize();
  if (!status)
    return status.takeError();
  return driver.microsBetween(begin->handle(), end->handle());
}

} // namespace dovetail::plan
