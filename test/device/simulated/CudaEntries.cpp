// SPDX-License-Identifier: Apache-2.0
//
// libcuda-sim.so: the entry points of CUDA's driver API over the simulated device. The environment
// may say which architecture it has (DOVETAIL_SIMULATED_ARCHITECTURE, sm_90) and how much memory
// (DOVETAIL_SIMULATED_BYTES), which version the driver has (DOVETAIL_SIMULATED_DRIVER_VERSION, as
// cuDriverGetVersion has it), and that it has no pools of memory (DOVETAIL_SIMULATED_NO_POOLS).
#include <cstdlib>
#include <cstring>

#include "Simulation.h"

using namespace simulated;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

int capability() {
  const char *name = std::getenv("DOVETAIL_SIMULATED_ARCHITECTURE");
  return name && std::strncmp(name, "sm_", 3) == 0 ? std::atoi(name + 3) : 90;
}

uint64_t memoryBytes() {
  const char *bytes = std::getenv("DOVETAIL_SIMULATED_BYTES");
  return bytes ? std::strtoull(bytes, nullptr, 10) : uint64_t(4) << 30;
}

const int ready = [] {
  Limits limits{};
  limits.name = "Simulated CUDA device";
  limits.architecture = "sm_" + std::to_string(capability());
  limits.units = 4;
  limits.warp = 32;
  limits.clockKilohertz = 1000000;
  limits.memoryClockKilohertz = 1000000;
  limits.memoryBusBits = 256;
  limits.l2Bytes = 1 << 20;
  limits.sharedBytesWithoutAsking = 48 << 10;
  limits.sharedBytesPerBlock = 227 << 10;
  limits.sharedBytesPerUnit = 228 << 10;
  limits.registersPerUnit = 65536;
  limits.threadsPerBlock = 1024;
  limits.threadsPerUnit = 2048;
  limits.blocksPerUnit = 32;
  limits.memoryBytes = memoryBytes();
  describe(limits);
  return 0;
}();

} // namespace

EXPORT int cuInit(unsigned) { return init(); }
EXPORT int cuDriverGetVersion(int *version) {
  const char *given = std::getenv("DOVETAIL_SIMULATED_DRIVER_VERSION");
  *version = (given ? std::atoi(given) : 13000) + ready;
  return Success;
}
EXPORT int cuDeviceGetCount(int *number) {
  *number = 1;
  return Success;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return checkDevice(ordinal);
}
EXPORT int cuDeviceGetName(char *name, int length, int device) {
  std::strncpy(name, limits().name.c_str(), static_cast<size_t>(length));
  return checkDevice(device);
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const Limits &l = limits();
  switch (attribute) {
  case 1:
    *value = int(l.threadsPerBlock);
    break;
  case 8:
    *value = int(l.sharedBytesWithoutAsking);
    break;
  case 10:
    *value = int(l.warp);
    break;
  case 13:
    *value = int(l.clockKilohertz);
    break;
  case 16:
    *value = int(l.units);
    break;
  case 36:
    *value = int(l.memoryClockKilohertz);
    break;
  case 37:
    *value = int(l.memoryBusBits);
    break;
  case 38:
    *value = int(l.l2Bytes);
    break;
  case 39:
    *value = int(l.threadsPerUnit);
    break;
  case 75:
    *value = capability() / 10;
    break;
  case 76:
    *value = capability() % 10;
    break;
  case 81:
    *value = int(l.sharedBytesPerUnit);
    break;
  case 82:
    *value = int(l.registersPerUnit);
    break;
  case 97:
    *value = int(l.sharedBytesPerBlock);
    break;
  case 106:
    *value = int(l.blocksPerUnit);
    break;
  case 115:
    *value = std::getenv("DOVETAIL_SIMULATED_NO_POOLS") ? 0 : 1;
    break;
  default:
    return InvalidValue;
  }
  return checkDevice(device);
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  *bytes = limits().memoryBytes;
  return checkDevice(device);
}
EXPORT int cuDevicePrimaryCtxRetain(Handle *context, int device) {
  *context = reinterpret_cast<Handle>(uintptr_t(0x51));
  return retain(device);
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) { return releaseContext(device); }
EXPORT int cuCtxSetCurrent(Handle context) { return setCurrent(context != nullptr); }
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) { return allocate(bytes, address); }
EXPORT int cuMemFree_v2(uint64_t address) { return freeMemory(address); }
EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  return allocatePinned(bytes, memory);
}
EXPORT int cuMemFreeHost(void *memory) { return freePinned(memory); }
EXPORT int cuMemPoolCreate(Handle *pool, const PoolProperties *properties) {
  return createPool(pool, properties);
}
EXPORT int cuMemPoolDestroy(Handle pool) { return destroyPool(pool); }
EXPORT int cuMemPoolSetAttribute(Handle pool, int attribute, void *value) {
  return setPoolAttribute(pool, attribute, value);
}
EXPORT int cuMemPoolTrimTo(Handle pool, size_t) { return trimPool(pool); }
EXPORT int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, Handle pool, Handle stream) {
  return allocateFromPool(address, bytes, pool, stream);
}
EXPORT int cuMemFreeAsync(uint64_t address, Handle stream) { return freeInOrder(address, stream); }
EXPORT int cuMemGetInfo_v2(size_t *free, size_t *total) {
  uint64_t left = 0, all = 0;
  int code = memoryInfo(&left, &all);
  *free = left;
  *total = all;
  return code;
}
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Handle stream) {
  return copyToDevice(to, from, bytes, stream);
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Handle stream) {
  return copyToHost(to, from, bytes, stream);
}
EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Handle stream) {
  return copyOnDevice(to, from, bytes, stream);
}
EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, Handle stream) {
  return fill(to, value, bytes, stream);
}
EXPORT int cuStreamCreate(Handle *stream, unsigned) { return createStream(stream); }
EXPORT int cuStreamDestroy_v2(Handle stream) { return destroyStream(stream); }
EXPORT int cuStreamSynchronize(Handle stream) { return synchronizeStream(stream); }
EXPORT int cuStreamWaitEvent(Handle stream, Handle event, unsigned) {
  return waitForEvent(stream, event);
}
EXPORT int cuEventCreate(Handle *event, unsigned flags) {
  constexpr unsigned kDisableTiming = 2;
  return createEvent(!(flags & kDisableTiming), event);
}
EXPORT int cuEventDestroy_v2(Handle event) { return destroyEvent(event); }
EXPORT int cuEventRecord(Handle event, Handle stream) { return recordEvent(event, stream); }
EXPORT int cuEventSynchronize(Handle event) { return synchronizeEvent(event); }
EXPORT int cuEventElapsedTime(float *millis, Handle from, Handle to) {
  return elapsedMillis(from, to, millis);
}
/// Real images are for real devices.
EXPORT int cuModuleLoadDataEx(Handle *, const void *, unsigned, int *, void **) {
  return InvalidImage;
}
EXPORT int cuModuleUnload(Handle module) { return unloadModule(module); }
EXPORT int cuModuleGetFunction(Handle *function, Handle module, const char *name) {
  return findFunction(module, name, function);
}
EXPORT int cuFuncGetAttribute(int *value, int attribute, Handle function) {
  return functionAttribute(function, attribute, value);
}
EXPORT int cuFuncSetAttribute(Handle function, int attribute, int value) {
  constexpr int kDynamicShared = 8;
  return attribute == kDynamicShared ? allowShared(function, value) : InvalidValue;
}
EXPORT int cuLaunchKernel(Handle function, unsigned gridX, unsigned gridY, unsigned gridZ,
                          unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                          Handle stream, void **arguments, void **extra) {
  return launch(function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream,
                arguments, extra);
}
EXPORT int cuStreamBeginCapture_v2(Handle stream, int mode) { return beginCapture(stream, mode); }
EXPORT int cuStreamEndCapture(Handle stream, Handle *recorded) {
  return endCapture(stream, recorded);
}
EXPORT int cuStreamIsCapturing(Handle stream, int *status) { return isCapturing(stream, status); }
EXPORT int cuGraphInstantiateWithFlags(Handle *graph, Handle recorded, unsigned long long) {
  return makeGraph(recorded, graph);
}
EXPORT int cuGraphLaunch(Handle graph, Handle stream) { return launchGraph(graph, stream); }
EXPORT int cuGraphExecDestroy(Handle graph) { return destroyGraph(graph, true); }
EXPORT int cuGraphDestroy(Handle recorded) { return destroyGraph(recorded, false); }
EXPORT int cuGetErrorName(int code, const char **name) {
  *name = nameOf(code);
  return Success;
}
EXPORT int cuGetErrorString(int code, const char **text) {
  *text = explain(code);
  return Success;
}

EXPORT uint64_t dvtSimulatedCount(const char *what) { return count(what); }
EXPORT int dvtSimulatedModuleLoad(Handle *module, const void *image, size_t bytes) {
  return loadModule(image, bytes, module);
}
