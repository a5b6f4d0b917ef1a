// SPDX-License-Identifier: Apache-2.0
//
// The device of a plan: opened when the plan is loaded, and given the constants that its steps
// read.
#include "runtime/Model.h"

#include "artifact/BlockMemory.h"

namespace dovetail {

Status Model::openDevice() {
  if (!plan().device)
    return Status::success();
  const Target &wanted = *plan().device;
  auto driver = device::DeviceDriver::open(
      wanted.device, device::DeviceDriver::pathFor(options.deviceDrivers, wanted.device));
  if (!driver)
    return unavailable("compiled for {}, which cannot run here: {}", wanted.name(),
                       driver.error().message);
  auto found = (*driver)->architecture(0);
  if (!found)
    return found.takeError();
  if (*found != wanted.architecture)
    return unavailable("compiled for {}, the device here is {}:{}; compile the model for it with "
                       "--target={}:{}",
                       wanted.name(), wanted.device, *found, wanted.device, *found);
  auto opened = device::Device::open(*driver, 0);
  if (!opened)
    return opened.takeError();
  planDevice = std::move(*opened);
  return Status::success();
}

Expected<device::DeviceAddress> Model::deviceConstant(uint32_t index,
                                                      const std::vector<int64_t> &extents,
                                                      const std::string &layoutText) {
  std::lock_guard guard(mutex);
  std::string key = fmt::format("{} {}", index, layoutText);
  for (int64_t extent : extents)
    key += fmt::format(",{}", extent);
  if (auto known = deviceConstants.find(key); known != deviceConstants.end())
    return known->second.address();
  const PlanConstant &constant = plan().constants[index];
  auto layout = Layout::parse(layoutText);
  auto bytes = layout ? checkedBytes(constant.type, extents, *layout) : std::nullopt;
  if (!bytes)
    return badInput("constant '{}' in layout {} has no size", constant.name, layoutText);
  auto data = constantData(index, extents, layoutText);
  if (!data)
    return data.takeError();
  auto memory = planDevice->allocate(*bytes);
  if (!memory)
    return unavailable("constant '{}': {}", constant.name, memory.error().message);
  device::DeviceDriver &driver = planDevice->driver();
  Status status = driver.copyToDevice(memory->address(), *data, *bytes, nullptr);
  if (status)
    status = driver.synchronize(device::StreamHandle());
  if (!status)
    return unavailable("constant '{}': {}", constant.name, status.error().message);
  return deviceConstants.emplace(std::move(key), std::move(*memory)).first->second.address();
}

} // namespace dovetail
