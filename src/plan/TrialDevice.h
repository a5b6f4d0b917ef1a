// SPDX-License-Identifier: Apache-2.0
//
// What trials of a device's kernels need of the device: copies of the host's buffers there, one
// stream, and times taken by the device's own clock.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/Device.h"
#include "plan/TrialTensor.h"

namespace dovetail::plan {

class TrialDevice {
public:
  /// The first device of the target's driver. Unavailable where there is none, or it has another
  /// architecture than the target.
  static Expected<std::unique_ptr<TrialDevice>> open(const Target &target,
                                                     const std::string &drivers);
  ~TrialDevice();
  TrialDevice(const TrialDevice &) = delete;

  void *stream() const { return work->handle(); }
  /// Waits for all work; the first error of it.
  Status synchronize() { return noted(work->synchronize()); }
  /// The text of the first error that work on the device gave, whichever call told of it: the
  /// device is of no more use to this process then. Empty while there was none.
  const std::string &failure() const { return lost; }
  /// Gives the device a copy of the buffer and its guards.
  Expected<device::DeviceMemory> copy(const GuardedBuffer &buffer);
  /// Brings such a copy back, guards included; waits for it.
  Status fetch(const device::DeviceMemory &from, GuardedBuffer &to);
  /// Where a copy's buffer begins.
  static void *dataOf(const device::DeviceMemory &copy);

  /// Writes so much memory that what kernels left in the caches is displaced.
  Status displaceCaches(uint64_t bytes);
  /// Reads a copy, as if the step before had just written it.
  Status touch(const device::DeviceMemory &copy);
  /// Microseconds on the device between the begin and the end of what `work` gives to the stream.
  Expected<double> time(const std::function<void()> &work);

private:
  TrialDevice() = default;
  Status noted(Status status);
  std::shared_ptr<device::Device> device;
  std::unique_ptr<device::Stream> work;
  std::unique_ptr<device::Event> begin, end;
  device::DeviceMemory sweep;
  std::string lost;
};

} // namespace dovetail::plan
