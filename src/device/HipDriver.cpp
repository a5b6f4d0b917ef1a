// SPDX-License-Identifier: Apache-2.0
//
// HIP's runtime, declared here as far as it is used. Its context is the device that a thread has
// set. The struct of device properties differs between versions and is only searched for the
// architecture's name; the numbers come from attributes, which are stable.
#include "device/HipDriver.h"

#include <string_view>

#include <algorithm>

#include "device/DriverLibrary.h"
#include "device/ReadDescription.h"

namespace dovetail::device {
namespace {

using Code = int; // hipError_t

enum Attribute : int {
  kClockKilohertz = 5,
  kL2Bytes = 19,
  kThreadsPerBlock = 56,
  kThreadsPerUnit = 57,
  kMemoryBusBits = 59,
  kMemoryClockKilohertz = 60,
  kUnits = 63,
  kSharedBytesPerBlock = 74,
  kWarpSize = 87,
  kMemoryPools = 88
};
enum FunctionAttribute : int {
  kFunctionThreads = 0,
  kFunctionShared = 1,
  kFunctionLocal = 3,
  kFunctionRegisters = 4
};

struct Functions {
  Code (*init)(unsigned flags);
  Code (*driverGetVersion)(int *version);
  Code (*deviceGetCount)(int *count);
  Code (*deviceGetName)(char *name, int length, int device);
  Code (*deviceGetAttribute)(int *value, int attribute, int device);
  Code (*deviceTotalMem)(size_t *bytes, int device);
  Code (*getDeviceProperties)(void *properties, int device);
  Code (*setDevice)(int device);
  Code (*memAlloc)(void **address, size_t bytes);
  Code (*memFree)(void *address);
  Code (*memHostAlloc)(void **memory, size_t bytes, unsigned flags);
  Code (*memFreeHost)(void *memory);
  Code (*memGetInfo)(size_t *free, size_t *total);
  Code (*memcpyHtoDAsync)(void *to, void *from, size_t bytes, StreamHandle stream);
  Code (*memcpyDtoHAsync)(void *to, void *from, size_t bytes, StreamHandle stream);
  Code (*memcpyDtoDAsync)(void *to, void *from, size_t bytes, StreamHandle stream);
  Code (*memsetD8Async)(void *to, unsigned char value, size_t bytes, StreamHandle stream);
  Code (*streamCreate)(StreamHandle *stream, unsigned flags);
  Code (*streamDestroy)(StreamHandle stream);
  Code (*streamSynchronize)(StreamHandle stream);
  Code (*streamWaitEvent)(StreamHandle stream, EventHandle event, unsigned flags);
  Code (*eventCreate)(EventHandle *event, unsigned flags);
  Code (*eventDestroy)(EventHandle event);
  Code (*eventRecord)(EventHandle event, StreamHandle stream);
  Code (*eventSynchronize)(EventHandle event);
  Code (*eventElapsedTime)(float *millis, EventHandle from, EventHandle to);
  Code (*moduleLoadData)(ModuleHandle *module, const void *image);
  Code (*moduleUnload)(ModuleHandle module);
  Code (*moduleGetFunction)(FunctionHandle *function, ModuleHandle module, const char *name);
  Code (*funcGetAttribute)(int *value, int attribute, FunctionHandle function);
  Code (*launchKernel)(FunctionHandle function, unsigned gridX, unsigned gridY, unsigned gridZ,
                       unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                       StreamHandle stream, void **arguments, void **extra);
  const char *(*getErrorName)(Code code);
  const char *(*getErrorString)(Code code);
  Code (*graphInstantiate)(GraphHandle *graph, void *recorded, void **node, char *log,
                           size_t bytes);
  /// Of simulated drivers only: images say nowhere how long they are.
  Code (*loadHostKernels)(ModuleHandle *module, const void *image, size_t bytes);
};

Status findFunctions(const DriverLibrary &library, Functions &f) {
  Status status = Status::success();
  auto find = [&](const char *name, auto &function) {
    if (status)
      status = library.find(name, function);
  };
  find("hipInit", f.init);
  find("hipDriverGetVersion", f.driverGetVersion);
  find("hipGetDeviceCount", f.deviceGetCount);
  find("hipDeviceGetName", f.deviceGetName);
  find("hipDeviceGetAttribute", f.deviceGetAttribute);
  find("hipDeviceTotalMem", f.deviceTotalMem);
  // From version 6 on the plain name stands for the older struct.
  find(library.has("hipGetDevicePropertiesR0600") ? "hipGetDevicePropertiesR0600"
                                                  : "hipGetDeviceProperties",
       f.getDeviceProperties);
  find("hipSetDevice", f.setDevice);
  find("hipMalloc", f.memAlloc);
  find("hipFree", f.memFree);
  find("hipHostMalloc", f.memHostAlloc);
  find("hipHostFree", f.memFreeHost);
  find("hipMemGetInfo", f.memGetInfo);
  find("hipMemcpyHtoDAsync", f.memcpyHtoDAsync);
  find("hipMemcpyDtoHAsync", f.memcpyDtoHAsync);
  find("hipMemcpyDtoDAsync", f.memcpyDtoDAsync);
  find("hipMemsetD8Async", f.memsetD8Async);
  find("hipStreamCreateWithFlags", f.streamCreate);
  find("hipStreamDestroy", f.streamDestroy);
  find("hipStreamSynchronize", f.streamSynchronize);
  find("hipStreamWaitEvent", f.streamWaitEvent);
  find("hipEventCreateWithFlags", f.eventCreate);
  find("hipEventDestroy", f.eventDestroy);
  find("hipEventRecord", f.eventRecord);
  find("hipEventSynchronize", f.eventSynchronize);
  find("hipEventElapsedTime", f.eventElapsedTime);
  find("hipModuleLoadData", f.moduleLoadData);
  find("hipModuleUnload", f.moduleUnload);
  find("hipModuleGetFunction", f.moduleGetFunction);
  find("hipFuncGetAttribute", f.funcGetAttribute);
  find("hipModuleLaunchKernel", f.launchKernel);
  find("hipGetErrorName", f.getErrorName);
  find("hipGetErrorString", f.getErrorString);
  f.graphInstantiate = nullptr;
  if (status && library.has("hipGraphInstantiate"))
    find("hipGraphInstantiate", f.graphInstantiate);
  f.loadHostKernels = nullptr;
  if (status && library.has(kHostKernelLoader))
    status = library.find(kHostKernelLoader, f.loadHostKernels);
  return status;
}

void *pointer(DeviceAddress address) { return reinterpret_cast<void *>(address); }

class HipDriver final : public DeviceDriver {
public:
  HipDriver(const DriverLibrary &library, const Functions &functions) : f(functions) {
    libraryPath = library.path();
    simulated = f.loadHostKernels != nullptr;
    if (f.graphInstantiate)
      graphs = GraphCalls::of(library,
                              {"hipStreamBeginCapture", "hipStreamEndCapture", "hipGraphLaunch",
                               "hipGraphExecDestroy", "hipGraphDestroy", "hipStreamIsCapturing"});
    pools = PoolCalls::of(library,
                          {"hipMemPoolCreate", "hipMemPoolSetAttribute", "hipMallocFromPoolAsync",
                           "hipFreeAsync", "hipMemPoolTrimTo", "hipMemPoolDestroy"});
  }

  uint32_t versionNumber() const override {
    int number = 0;
    return f.driverGetVersion(&number) == 0 ? uint32_t(std::max(number, 0)) : 0;
  }
  std::string version() const override {
    uint32_t number = versionNumber();
    if (number == 0)
      return "unknown";
    return fmt::format("{}.{}", number / 10000000, number / 100000 % 100);
  }

  Expected<uint32_t> count() const override {
    int number = 0;
    if (Code code = f.deviceGetCount(&number))
      return failure(code, "hipGetDeviceCount");
    return static_cast<uint32_t>(std::max(number, 0));
  }

  Expected<std::string> architecture(uint32_t device) const override {
    // As text it begins "gfx", with features behind a colon.
    std::string properties(16384, '\0');
    if (Code code = f.getDeviceProperties(properties.data(), int(device)))
      return failure(code, "hipGetDeviceProperties");
    size_t at = properties.find("gfx", 256); // behind the device's name
    if (at == std::string::npos)
      return unavailable("{} does not say which architecture device {} has", libraryPath, device);
    std::string_view name = properties.c_str() + at;
    return std::string(name.substr(0, name.find(':')));
  }

  Expected<DeviceDescription> describe(uint32_t device,
                                       const DeviceDescription &like) const override {
    auto name = architecture(device);
    if (!name)
      return name.takeError();
    ReadDescription read;
    Status status = Status::success();
    auto get = [&](int number, uint64_t &value) {
      auto got = status ? attribute(device, number) : Expected<int>(0);
      if (!got)
        status = got.takeError();
      else
        value = static_cast<uint64_t>(std::max(*got, 0));
    };
    get(kUnits, read.computeUnits);
    get(kWarpSize, read.warpSize);
    get(kClockKilohertz, read.clockKilohertz);
    get(kMemoryClockKilohertz, read.memoryClockKilohertz);
    get(kMemoryBusBits, read.memoryBusBits);
    get(kL2Bytes, read.l2Bytes);
    get(kSharedBytesPerBlock, read.sharedBytesPerBlock);
    get(kThreadsPerBlock, read.threadsPerBlock);
    get(kThreadsPerUnit, read.threadsPerUnit);
    if (!status)
      return status.takeError();
    char text[256] = {};
    size_t bytes = 0;
    if (Code code = f.deviceGetName(text, sizeof text - 1, int(device)))
      return failure(code, "hipDeviceGetName");
    if (Code code = f.deviceTotalMem(&bytes, int(device)))
      return failure(code, "hipDeviceTotalMem");
    read.name = text;
    read.memoryBytes = bytes;
    if (name->starts_with("gfx94")) // HBM3, of which half the clock is told
      read.memoryClockKilohertz *= 2;
    return describeFrom(read, *name, like, "HIP driver " + version());
  }

  Status retain(uint32_t device) override { return makeCurrent(device); }
  void release(uint32_t) override {}
  Status makeCurrent(uint32_t device) override {
    return done(f.setDevice(int(device)), "hipSetDevice");
  }

  Expected<DeviceAddress> allocate(uint64_t bytes) override {
    void *memory = nullptr;
    if (Code code = f.memAlloc(&memory, bytes))
      return failure(code, fmt::format("hipMalloc of {} bytes", bytes));
    return reinterpret_cast<DeviceAddress>(memory);
  }
  Status free(DeviceAddress address) override {
    return done(f.memFree(pointer(address)), "hipFree");
  }
  Expected<void *> allocatePinned(uint64_t bytes) override {
    void *memory = nullptr;
    if (Code code = f.memHostAlloc(&memory, bytes, 0))
      return failure(code, fmt::format("hipHostMalloc of {} bytes", bytes));
    return memory;
  }
  Status freePinned(void *memory) override { return done(f.memFreeHost(memory), "hipHostFree"); }
  Expected<uint64_t> freeBytes() override {
    size_t unused = 0, total = 0;
    if (Code code = f.memGetInfo(&unused, &total))
      return failure(code, "hipMemGetInfo");
    return uint64_t(unused);
  }

  Status copyToDevice(DeviceAddress to, const void *from, uint64_t bytes,
                      StreamHandle stream) override {
    return done(f.memcpyHtoDAsync(pointer(to), const_cast<void *>(from), bytes, stream),
                "hipMemcpyHtoDAsync");
  }
  Status copyToHost(void *to, DeviceAddress from, uint64_t bytes, StreamHandle stream) override {
    return done(f.memcpyDtoHAsync(to, pointer(from), bytes, stream), "hipMemcpyDtoHAsync");
  }
  Status copyOnDevice(DeviceAddress to, DeviceAddress from, uint64_t bytes,
                      StreamHandle stream) override {
    return done(f.memcpyDtoDAsync(pointer(to), pointer(from), bytes, stream), "hipMemcpyDtoDAsync");
  }
  Status fill(DeviceAddress to, uint8_t value, uint64_t bytes, StreamHandle stream) override {
    return done(f.memsetD8Async(pointer(to), value, bytes, stream), "hipMemsetD8Async");
  }

  Expected<StreamHandle> createStream() override {
    constexpr unsigned kNonBlocking = 1;
    StreamHandle stream = nullptr;
    if (Code code = f.streamCreate(&stream, kNonBlocking))
      return failure(code, "hipStreamCreateWithFlags");
    return stream;
  }
  Status destroyStream(StreamHandle stream) override {
    return done(f.streamDestroy(stream), "hipStreamDestroy");
  }
  Status synchronize(StreamHandle stream) override {
    return done(f.streamSynchronize(stream), "hipStreamSynchronize");
  }
  Expected<EventHandle> createEvent(bool timed) override {
    constexpr unsigned kDisableTiming = 2;
    EventHandle event = nullptr;
    if (Code code = f.eventCreate(&event, timed ? 0 : kDisableTiming))
      return failure(code, "hipEventCreateWithFlags");
    return event;
  }
  Status destroyEvent(EventHandle event) override {
    return done(f.eventDestroy(event), "hipEventDestroy");
  }
  Status record(EventHandle event, StreamHandle stream) override {
    return done(f.eventRecord(event, stream), "hipEventRecord");
  }
  Status wait(StreamHandle stream, EventHandle event) override {
    return done(f.streamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
  }
  Status synchronize(EventHandle event) override {
    return done(f.eventSynchronize(event), "hipEventSynchronize");
  }
  Expected<double> microsBetween(EventHandle from, EventHandle to) override {
    float millis = 0;
    if (Code code = f.eventElapsedTime(&millis, from, to))
      return failure(code, "hipEventElapsedTime");
    return double(millis) * 1e3;
  }

  Expected<ModuleHandle> loadModule(const void *image, uint64_t bytes) override {
    ModuleHandle module = nullptr;
    if (f.loadHostKernels) {
      if (Code code = f.loadHostKernels(&module, image, bytes))
        return failure(code, kHostKernelLoader);
      return module;
    }
    if (Code code = f.moduleLoadData(&module, image))
      return failure(code, "hipModuleLoadData");
    return module;
  }
  Status unloadModule(ModuleHandle module) override {
    return done(f.moduleUnload(module), "hipModuleUnload");
  }
  Expected<FunctionHandle> findFunction(ModuleHandle module, const std::string &name) override {
    FunctionHandle function = nullptr;
    if (Code code = f.moduleGetFunction(&function, module, name.c_str()))
      return failure(code, fmt::format("hipModuleGetFunction of '{}'", name));
    return function;
  }
  Expected<FunctionResources> resources(FunctionHandle function) const override {
    int values[4] = {};
    const int attributes[] = {kFunctionRegisters, kFunctionShared, kFunctionLocal,
                              kFunctionThreads};
    for (int i = 0; i < 4; ++i)
      if (Code code = f.funcGetAttribute(&values[i], attributes[i], function))
        return failure(code, "hipFuncGetAttribute");
    return FunctionResources{uint32_t(values[0]), uint32_t(values[1]), uint32_t(values[2]),
                             uint32_t(values[3])};
  }
  /// All that a block may have, it may have without being asked.
  Status allowSharedBytes(FunctionHandle, uint32_t) override { return Status::success(); }
  Status launch(FunctionHandle function, const LaunchShape &shape, void **arguments,
                StreamHandle stream) override {
    Code code = f.launchKernel(function, shape.blocks[0], shape.blocks[1], shape.blocks[2],
                               shape.threads[0], shape.threads[1], shape.threads[2],
                               shape.sharedBytes, stream, arguments, nullptr);
    return done(code, "hipModuleLaunchKernel");
  }

  Error failure(Code code, const std::string &call) const override {
    return driverFailure(code, call, f.getErrorName(code), f.getErrorString(code));
  }

private:
  Code instantiate(GraphHandle *graph, void *recorded) override {
    return f.graphInstantiate(graph, recorded, nullptr, nullptr, 0);
  }
  bool offersPools(uint32_t device) const override {
    auto offered = attribute(device, kMemoryPools);
    return offered && *offered != 0;
  }
  Status done(Code code, const char *call) const {
    return code == 0 ? Status::success() : Status(failure(code, call));
  }
  Expected<int> attribute(uint32_t device, int number) const {
    int value = 0;
    if (Code code = f.deviceGetAttribute(&value, number, int(device)))
      return failure(code, fmt::format("hipDeviceGetAttribute {}", number));
    return value;
  }

  Functions f;
};

} // namespace

Expected<std::shared_ptr<DeviceDriver>> openHipDriver(const std::string &path) {
  auto library = DriverLibrary::open(
      path, {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"});
  if (!library)
    return library.takeError();
  Functions functions{};
  if (Status status = findFunctions(*library, functions); !status)
    return status.takeError();
  auto driver = std::make_shared<HipDriver>(*library, functions);
  if (Code code = functions.init(0))
    return driver->failure(code, "hipInit of " + library->path());
  return std::shared_ptr<DeviceDriver>(std::move(driver));
}

} // namespace dovetail::device
