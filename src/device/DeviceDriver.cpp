// SPDX-License-Identifier: Apache-2.0
//
// Picks the driver, and does what both have in common.
#include "device/DeviceDriver.h"

#include <algorithm>

#include "device/CudaDriver.h"
#include "device/HipDriver.h"
#include "device/ReadDescription.h"

namespace dovetail::device {

DeviceDriver::~DeviceDriver() = default;

std::string DeviceDriver::pathFor(std::string_view drivers, std::string_view api) {
  while (!drivers.empty()) {
    std::string_view entry = drivers.substr(0, drivers.find(':'));
    size_t equals = entry.find('=');
    if (equals != entry.npos && entry.substr(0, equals) == api)
      return std::string(entry.substr(equals + 1));
    drivers.remove_prefix(std::min(entry.size() + 1, drivers.size()));
  }
  return {};
}

Expected<std::shared_ptr<DeviceDriver>> DeviceDriver::open(const std::string &api,
                                                           const std::string &path) {
  if (api == "cuda")
    return openCudaDriver(path);
  if (api == "rocm")
    return openHipDriver(path);
  return badInput("there is no driver for devices of kind '{}'; cuda and rocm are known", api);
}

GraphCalls GraphCalls::of(const DriverLibrary &library, const std::array<const char *, 6> &names) {
  GraphCalls calls;
  bool all =
      library.find(names[0], calls.beginCapture) && library.find(names[1], calls.endCapture) &&
      library.find(names[2], calls.launch) && library.find(names[3], calls.destroy) &&
      library.find(names[4], calls.destroyRecorded) && library.find(names[5], calls.isCapturing);
  return all ? calls : GraphCalls();
}

PoolCalls PoolCalls::of(const DriverLibrary &library, const std::array<const char *, 6> &names) {
  PoolCalls calls;
  bool all = library.find(names[0], calls.create) && library.find(names[1], calls.setAttribute) &&
             library.find(names[2], calls.allocate) && library.find(names[3], calls.free) &&
             library.find(names[4], calls.trim) && library.find(names[5], calls.destroy);
  return all ? calls : PoolCalls();
}

Expected<PoolHandle> DeviceDriver::createPool(uint32_t device) {
  PoolProperties properties;
  properties.device = int32_t(device);
  PoolHandle pool = nullptr;
  if (int code = pools.create(&pool, &properties))
    return failure(code, "making a pool of device memory");
  uint64_t all = UINT64_MAX;
  if (int code = pools.setAttribute(pool, PoolCalls::kKeptBytes, &all)) {
    (void)pools.destroy(pool);
    return failure(code, "telling a pool of device memory what to keep");
  }
  return pool;
}

Status DeviceDriver::destroyPool(PoolHandle pool) {
  int code = pools.destroy(pool);
  return code == 0 ? Status::success() : Status(failure(code, "giving a pool of memory back"));
}

Status DeviceDriver::trimPool(PoolHandle pool) {
  int code = pools.trim(pool, 0);
  return code == 0 ? Status::success() : Status(failure(code, "trimming a pool of memory"));
}

Expected<DeviceAddress> DeviceDriver::allocate(uint64_t bytes, PoolHandle pool,
                                               StreamHandle stream) {
  DeviceAddress address = 0;
  if (int code = pools.allocate(&address, bytes, pool, stream))
    return failure(code, fmt::format("allocation of {} bytes from a pool", bytes));
  return address;
}

Status DeviceDriver::free(DeviceAddress address, StreamHandle stream) {
  int code = pools.free(address, stream);
  return code == 0 ? Status::success() : Status(failure(code, "giving memory back to a pool"));
}

Status DeviceDriver::beginCapture(StreamHandle stream) {
  int code = graphs.beginCapture(stream, GraphCalls::kOfThread);
  return code == 0 ? Status::success() : Status(failure(code, "recording on a stream"));
}

Expected<bool> DeviceDriver::isRecording(StreamHandle stream) {
  int status = 0;
  if (!hasGraphs())
    return false;
  if (int code = graphs.isCapturing(stream, &status))
    return failure(code, "asking a stream whether it records");
  return status != 0;
}

Expected<GraphHandle> DeviceDriver::endCapture(StreamHandle stream) {
  void *recorded = nullptr;
  if (int code = graphs.endCapture(stream, &recorded))
    return failure(code, "the end of recording on a stream");
  GraphHandle graph = nullptr;
  int code = instantiate(&graph, recorded);
  (void)graphs.destroyRecorded(recorded);
  if (code)
    return failure(code, "making recorded work ready");
  return graph;
}

Status DeviceDriver::launchGraph(GraphHandle graph, StreamHandle stream) {
  int code = graphs.launch(graph, stream);
  return code == 0 ? Status::success() : Status(failure(code, "launch of recorded work"));
}

Status DeviceDriver::destroyGraph(GraphHandle graph) {
  int code = graphs.destroy(graph);
  return code == 0 ? Status::success() : Status(failure(code, "giving recorded work back"));
}

DeviceDescription describeFrom(const ReadDescription &read, const std::string &architecture,
                               const DeviceDescription &like, const std::string &driver) {
  DeviceDescription to = like;
  auto take = [](auto &field, uint64_t value) {
    if (value > 0)
      field = static_cast<std::remove_reference_t<decltype(field)>>(value);
  };
  double speedBefore = like.computeUnits * like.clockMegahertz;
  to.name = read.name;
  to.architecture = architecture;
  to.source = fmt::format("read from the {}; peaks, the link and launches as described for {}",
                          driver, like.name);
  take(to.computeUnits, read.computeUnits);
  take(to.warpSize, read.warpSize);
  if (read.clockKilohertz > 0)
    to.clockMegahertz = double(read.clockKilohertz) / 1e3;
  // Two transfers per clock and line, eight bits to a byte.
  if (read.memoryClockKilohertz > 0 && read.memoryBusBits > 0)
    to.memoryGigabytesPerSecond =
        2.0 * double(read.memoryClockKilohertz) * double(read.memoryBusBits) / 8e6;
  take(to.memoryBytes, read.memoryBytes);
  take(to.l2Bytes, read.l2Bytes);
  take(to.sharedBytesPerBlock, read.sharedBytesPerBlock);
  take(to.sharedBytesPerUnit, read.sharedBytesPerUnit);
  take(to.registersPerUnit, read.registersPerUnit);
  take(to.threadsPerBlock, read.threadsPerBlock);
  take(to.threadsPerUnit, read.threadsPerUnit);
  take(to.blocksPerUnit, read.blocksPerUnit);
  for (auto &[kind, peak] : to.peakTeraops)
    peak *= to.computeUnits * to.clockMegahertz / speedBefore;
  return to;
}

Error driverFailure(int code, const std::string &call, const char *name, const char *text) {
  constexpr int kOutOfMemory = 2;
  std::string message = fmt::format("{}: {} ({})", call, text ? text : "no reason given",
                                    name ? name : fmt::format("code {}", code));
  if (code == kOutOfMemory)
    message += "; the device's memory does not suffice for what runs on it now";
  return {ErrorKind::Unavailable, message};
}

} // namespace dovetail::device
