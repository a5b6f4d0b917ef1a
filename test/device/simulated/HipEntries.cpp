// SPDX-License-Identifier: Apache-2.0
//
// libamdhip64-sim.so: the entry points of HIP's runtime over the simulated device. The environment
// may say which architecture it has (DOVETAIL_SIMULATED_ARCHITECTURE, gfx942) and how much memory
// (DOVETAIL_SIMULATED_BYTES), and that it has no pools of memory (DOVETAIL_SIMULATED_NO_POOLS).
#include <cstdlib>
#include <cstring>

#include "Simulation.h"

using namespace simulated;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

const int ready = [] {
  const char *architecture = std::getenv("DOVETAIL_SIMULATED_ARCHITECTURE");
  const char *bytes = std::getenv("DOVETAIL_SIMULATED_BYTES");
  Limits limits{};
  limits.name = "Simulated HIP device";
  limits.architecture =
      architecture && std::strncmp(architecture, "gfx", 3) == 0 ? architecture : "gfx942";
  limits.units = 4;
  limits.warp = 64;
  limits.clockKilohertz = 1000000;
  limits.memoryClockKilohertz = 1000000;
  limits.memoryBusBits = 256;
  limits.l2Bytes = 1 << 20;
  limits.sharedBytesWithoutAsking = limits.sharedBytesPerBlock = 64 << 10;
  limits.threadsPerBlock = 1024;
  limits.threadsPerUnit = 2048;
  limits.memoryBytes = bytes ? std::strtoull(bytes, nullptr, 10) : uint64_t(4) << 30;
  describe(limits);
  return 0;
}();

uint64_t address(const void *memory) { return reinterpret_cast<uint64_t>(memory); }

} // namespace

EXPORT int hipInit(unsigned) { return init(); }
EXPORT int hipDriverGetVersion(int *version) {
  *version = 60000000 + ready;
  return Success;
}
EXPORT int hipGetDeviceCount(int *number) {
  *number = 1;
  return Success;
}
EXPORT int hipDeviceGetName(char *name, int length, int device) {
  std::strncpy(name, limits().name.c_str(), static_cast<size_t>(length));
  return checkDevice(device);
}
/// The fields that a program looks for as in version 6.
EXPORT int hipGetDevicePropertiesR0600(void *properties, int device) {
  constexpr size_t kBytes = 1472, kName = 256, kArchitecture = 1160;
  auto *to = static_cast<char *>(properties);
  std::memset(to, 0, kBytes);
  std::strncpy(to, limits().name.c_str(), kName - 1);
  std::string features = limits().architecture + ":sramecc+:xnack-";
  std::strncpy(to + kArchitecture, features.c_str(), 255);
  return checkDevice(device);
}
EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device) {
  const Limits &l = limits();
  switch (attribute) {
  case 5:
    *value = int(l.clockKilohertz);
    break;
  case 19:
    *value = int(l.l2Bytes);
    break;
  case 56:
    *value = int(l.threadsPerBlock);
    break;
  case 57:
    *value = int(l.threadsPerUnit);
    break;
  case 59:
    *value = int(l.memoryBusBits);
    break;
  case 60:
    *value = int(l.memoryClockKilohertz);
    break;
  case 63:
    *value = int(l.units);
    break;
  case 74:
    *value = int(l.sharedBytesPerBlock);
    break;
  case 87:
    *value = int(l.warp);
    break;
  case 88:
    *value = std::getenv("DOVETAIL_SIMULATED_NO_POOLS") ? 0 : 1;
    break;
  default:
    return InvalidValue;
  }
  return checkDevice(device);
}
EXPORT int hipDeviceTotalMem(size_t *bytes, int device) {
  *bytes = limits().memoryBytes;
  return checkDevice(device);
}
/// The context comes with the first device that is set, and stays.
EXPORT int hipSetDevice(int device) {
  static const int retained = retain(0);
  if (int code = checkDevice(device))
    return code;
  return retained ? retained : setCurrent(true);
}
EXPORT int hipMalloc(void **memory, size_t bytes) {
  uint64_t begin = 0;
  int code = allocate(bytes, &begin);
  *memory = reinterpret_cast<void *>(begin);
  return code;
}
EXPORT int hipFree(void *memory) { return freeMemory(address(memory)); }
EXPORT int hipHostMalloc(void **memory, size_t bytes, unsigned) {
  return allocatePinned(bytes, memory);
}
EXPORT int hipHostFree(void *memory) { return freePinned(memory); }
EXPORT int hipMemPoolCreate(Handle *pool, const PoolProperties *properties) {
  return createPool(pool, properties);
}
EXPORT int hipMemPoolDestroy(Handle pool) { return destroyPool(pool); }
EXPORT int hipMemPoolSetAttribute(Handle pool, int attribute, void *value) {
  return setPoolAttribute(pool, attribute, value);
}
EXPORT int hipMemPoolTrimTo(Handle pool, size_t) { return trimPool(pool); }
EXPORT int hipMallocFromPoolAsync(void **memory, size_t bytes, Handle pool, Handle stream) {
  uint64_t begin = 0;
  int code = allocateFromPool(&begin, bytes, pool, stream);
  *memory = reinterpret_cast<void *>(begin);
  return code;
}
EXPORT int hipFreeAsync(void *memory, Handle stream) {
  return freeInOrder(address(memory), stream);
}
EXPORT int hipMemGetInfo(size_t *free, size_t *total) {
  uint64_t left = 0, all = 0;
  int code = memoryInfo(&left, &all);
  *free = left;
  *total = all;
  return code;
}
EXPORT int hipMemcpyHtoDAsync(void *to, void *from, size_t bytes, Handle stream) {
  return copyToDevice(address(to), from, bytes, stream);
}
EXPORT int hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, Handle stream) {
  return copyToHost(to, address(from), bytes, stream);
}
EXPORT int hipMemcpyDtoDAsync(void *to, void *from, size_t bytes, Handle stream) {
  return copyOnDevice(address(to), address(from), bytes, stream);
}
EXPORT int hipMemsetD8Async(void *to, unsigned char value, size_t bytes, Handle stream) {
  return fill(address(to), value, bytes, stream);
}
EXPORT int hipStreamCreateWithFlags(Handle *stream, unsigned) { return createStream(stream); }
EXPORT int hipStreamDestroy(Handle stream) { return destroyStream(stream); }
EXPORT int hipStreamSynchronize(Handle stream) { return synchronizeStream(stream); }
EXPORT int hipStreamWaitEvent(Handle stream, Handle event, unsigned) {
  return waitForEvent(stream, event);
}
EXPORT int hipEventCreateWithFlags(Handle *event, unsigned flags) {
  constexpr unsigned kDisableTiming = 2;
  return createEvent(!(flags & kDisableTiming), event);
}
EXPORT int hipEventDestroy(Handle event) { return destroyEvent(event); }
EXPORT int hipEventRecord(Handle event, Handle stream) { return recordEvent(event, stream); }
EXPORT int hipEventSynchronize(Handle event) { return synchronizeEvent(event); }
EXPORT int hipEventElapsedTime(float *millis, Handle from, Handle to) {
  return elapsedMillis(from, to, millis);
}
/// Real images are for real devices.
EXPORT int hipModuleLoadData(Handle *, const void *) { return InvalidImage; }
EXPORT int hipModuleUnload(Handle module) { return unloadModule(module); }
EXPORT int hipModuleGetFunction(Handle *function, Handle module, const char *name) {
  return findFunction(module, name, function);
}
EXPORT int hipFuncGetAttribute(int *value, int attribute, Handle function) {
  return functionAttribute(function, attribute, value);
}
EXPORT int hipModuleLaunchKernel(Handle function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                 unsigned blockX, unsigned blockY, unsigned blockZ,
                                 unsigned sharedBytes, Handle stream, void **arguments,
                                 void **extra) {
  return launch(function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream,
                arguments, extra);
}
EXPORT int hipStreamBeginCapture(Handle stream, int mode) { return beginCapture(stream, mode); }
EXPORT int hipStreamEndCapture(Handle stream, Handle *recorded) {
  return endCapture(stream, recorded);
}
EXPORT int hipStreamIsCapturing(Handle stream, int *status) { return isCapturing(stream, status); }
EXPORT int hipGraphInstantiate(Handle *graph, Handle recorded, Handle *, char *, size_t) {
  return makeGraph(recorded, graph);
}
EXPORT int hipGraphLaunch(Handle graph, Handle stream) { return launchGraph(graph, stream); }
EXPORT int hipGraphExecDestroy(Handle graph) { return destroyGraph(graph, true); }
EXPORT int hipGraphDestroy(Handle recorded) { return destroyGraph(recorded, false); }
EXPORT const char *hipGetErrorName(int code) { return nameOf(code); }
EXPORT const char *hipGetErrorString(int code) { return explain(code); }

EXPORT uint64_t dvtSimulatedCount(const char *what) { return count(what); }
EXPORT int dvtSimulatedModuleLoad(Handle *module, const void *image, size_t bytes) {
  return loadModule(image, bytes, module);
}
