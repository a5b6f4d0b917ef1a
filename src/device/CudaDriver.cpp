// SPDX-License-Identifier: Apache-2.0
//
// CUDA's driver API, declared here as far as it is used: the types are those of its stable ABI, and
// functions with a suffix are the ones that its headers map the plain names to.
#include "device/CudaDriver.h"

#include <algorithm>
#include <mutex>

#include "device/DriverLibrary.h"
#include "device/PtxVersion.h"
#include "device/ReadDescription.h"

namespace dovetail::device {
namespace {

using Code = int; // CUresult
using Ordinal = int;
using Context = struct ContextTag *;

enum Attribute : int {
  kThreadsPerBlock = 1,
  kWarpSize = 10,
  kClockKilohertz = 13,
  kUnits = 16,
  kMemoryClockKilohertz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kThreadsPerUnit = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedBytesPerUnit = 81,
  kRegistersPerUnit = 82,
  kSharedBytesPerBlock = 97, // by opting in
  kBlocksPerUnit = 106,
  kMemoryPools = 115
};
enum FunctionAttribute : int {
  kFunctionThreads = 0,
  kFunctionShared = 1,
  kFunctionLocal = 3,
  kFunctionRegisters = 4,
  kFunctionDynamicShared = 8
};

struct Functions {
  Code (*init)(unsigned flags);
  Code (*driverGetVersion)(int *version);
  Code (*deviceGetCount)(int *count);
  Code (*deviceGet)(Ordinal *device, int ordinal);
  Code (*deviceGetName)(char *name, int length, Ordinal device);
  Code (*deviceGetAttribute)(int *value, int attribute, Ordinal device);
  Code (*deviceTotalMem)(size_t *bytes, Ordinal device);
  Code (*primaryCtxRetain)(Context *context, Ordinal device);
  Code (*primaryCtxRelease)(Ordinal device);
  Code (*ctxSetCurrent)(Context context);
  Code (*memAlloc)(DeviceAddress *address, size_t bytes);
  Code (*memFree)(DeviceAddress address);
  Code (*memHostAlloc)(void **memory, size_t bytes, unsigned flags);
  Code (*memFreeHost)(void *memory);
  Code (*memGetInfo)(size_t *free, size_t *total);
  Code (*memcpyHtoDAsync)(DeviceAddress to, const void *from, size_t bytes, StreamHandle stream);
  Code (*memcpyDtoHAsync)(void *to, DeviceAddress from, size_t bytes, StreamHandle stream);
  Code (*memcpyDtoDAsync)(DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream);
  Code (*memsetD8Async)(DeviceAddress to, unsigned char value, size_t bytes, StreamHandle stream);
  Code (*streamCreate)(StreamHandle *stream, unsigned flags);
  Code (*streamDestroy)(StreamHandle stream);
  Code (*streamSynchronize)(StreamHandle stream);
  Code (*streamWaitEvent)(StreamHandle stream, EventHandle event, unsigned flags);
  Code (*eventCreate)(EventHandle *event, unsigned flags);
  Code (*eventDestroy)(EventHandle event);
  Code (*eventRecord)(EventHandle event, StreamHandle stream);
  Code (*eventSynchronize)(EventHandle event);
  Code (*eventElapsedTime)(float *millis, EventHandle from, EventHandle to);
  Code (*moduleLoadDataEx)(ModuleHandle *module, const void *image, unsigned options, int *names,
                           void **values);
  Code (*moduleUnload)(ModuleHandle module);
  Code (*moduleGetFunction)(FunctionHandle *function, ModuleHandle module, const char *name);
  Code (*funcGetAttribute)(int *value, int attribute, FunctionHandle function);
  Code (*funcSetAttribute)(FunctionHandle function, int attribute, int value);
  Code (*launchKernel)(FunctionHandle function, unsigned gridX, unsigned gridY, unsigned gridZ,
                       unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                       StreamHandle stream, void **arguments, void **extra);
  Code (*getErrorName)(Code code, const char **name);
  Code (*getErrorString)(Code code, const char **text);
  Code (*graphInstantiate)(GraphHandle *graph, void *recorded, unsigned long long flags);
  /// Of simulated drivers only: images say nowhere how long they are.
  Code (*loadHostKernels)(ModuleHandle *module, const void *image, size_t bytes);
};

Status findFunctions(const DriverLibrary &library, Functions &f) {
  Status status = Status::success();
  auto find = [&](const char *name, auto &function) {
    if (status)
      status = library.find(name, function);
  };
  find("cuInit", f.init);
  find("cuDriverGetVersion", f.driverGetVersion);
  find("cuDeviceGetCount", f.deviceGetCount);
  find("cuDeviceGet", f.deviceGet);
  find("cuDeviceGetName", f.deviceGetName);
  find("cuDeviceGetAttribute", f.deviceGetAttribute);
  find("cuDeviceTotalMem_v2", f.deviceTotalMem);
  find("cuDevicePrimaryCtxRetain", f.primaryCtxRetain);
  find("cuDevicePrimaryCtxRelease_v2", f.primaryCtxRelease);
  find("cuCtxSetCurrent", f.ctxSetCurrent);
  find("cuMemAlloc_v2", f.memAlloc);
  find("cuMemFree_v2", f.memFree);
  find("cuMemHostAlloc", f.memHostAlloc);
  find("cuMemFreeHost", f.memFreeHost);
  find("cuMemGetInfo_v2", f.memGetInfo);
  find("cuMemcpyHtoDAsync_v2", f.memcpyHtoDAsync);
  find("cuMemcpyDtoHAsync_v2", f.memcpyDtoHAsync);
  find("cuMemcpyDtoDAsync_v2", f.memcpyDtoDAsync);
  find("cuMemsetD8Async", f.memsetD8Async);
  find("cuStreamCreate", f.streamCreate);
  find("cuStreamDestroy_v2", f.streamDestroy);
  find("cuStreamSynchronize", f.streamSynchronize);
  find("cuStreamWaitEvent", f.streamWaitEvent);
  find("cuEventCreate", f.eventCreate);
  find("cuEventDestroy_v2", f.eventDestroy);
  find("cuEventRecord", f.eventRecord);
  find("cuEventSynchronize", f.eventSynchronize);
  find("cuEventElapsedTime", f.eventElapsedTime);
  find("cuModuleLoadDataEx", f.moduleLoadDataEx);
  find("cuModuleUnload", f.moduleUnload);
  find("cuModuleGetFunction", f.moduleGetFunction);
  find("cuFuncGetAttribute", f.funcGetAttribute);
  find("cuFuncSetAttribute", f.funcSetAttribute);
  find("cuLaunchKernel", f.launchKernel);
  find("cuGetErrorName", f.getErrorName);
  find("cuGetErrorString", f.getErrorString);
  f.graphInstantiate = nullptr;
  if (status && library.has("cuGraphInstantiateWithFlags"))
    find("cuGraphInstantiateWithFlags", f.graphInstantiate);
  f.loadHostKernels = nullptr;
  if (status && library.has(kHostKernelLoader))
    status = library.find(kHostKernelLoader, f.loadHostKernels);
  return status;
}

class CudaDriver final : public DeviceDriver {
public:
  CudaDriver(const DriverLibrary &library, const Functions &functions) : f(functions) {
    libraryPath = library.path();
    simulated = f.loadHostKernels != nullptr;
    if (f.graphInstantiate)
      graphs =
          GraphCalls::of(library, {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphLaunch",
                                   "cuGraphExecDestroy", "cuGraphDestroy", "cuStreamIsCapturing"});
    pools = PoolCalls::of(library,
                          {"cuMemPoolCreate", "cuMemPoolSetAttribute", "cuMemAllocFromPoolAsync",
                           "cuMemFreeAsync", "cuMemPoolTrimTo", "cuMemPoolDestroy"});
  }

  std::string version() const override {
    uint32_t number = versionNumber();
    return number ? cudaVersionText(number) : "unknown";
  }
  uint32_t versionNumber() const override {
    int number = 0;
    return f.driverGetVersion(&number) == 0 ? uint32_t(std::max(number, 0)) : 0;
  }

  Expected<uint32_t> count() const override {
    int number = 0;
    if (Code code = f.deviceGetCount(&number))
      return failure(code, "cuDeviceGetCount");
    return static_cast<uint32_t>(std::max(number, 0));
  }

  Expected<std::string> architecture(uint32_t device) const override {
    auto major = attribute(device, kMajor), minor = attribute(device, kMinor);
    if (!major || !minor)
      return (major ? minor : major).takeError();
    return fmt::format("sm_{}{}", *major, *minor);
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
    get(kSharedBytesPerUnit, read.sharedBytesPerUnit);
    get(kRegistersPerUnit, read.registersPerUnit);
    get(kThreadsPerBlock, read.threadsPerBlock);
    get(kThreadsPerUnit, read.threadsPerUnit);
    get(kBlocksPerUnit, read.blocksPerUnit);
    if (!status)
      return status.takeError();
    char text[256] = {};
    size_t bytes = 0;
    if (Code code = f.deviceGetName(text, sizeof text - 1, Ordinal(device)))
      return failure(code, "cuDeviceGetName");
    if (Code code = f.deviceTotalMem(&bytes, Ordinal(device)))
      return failure(code, "cuDeviceTotalMem");
    read.name = text;
    read.memoryBytes = bytes;
    return describeFrom(read, *name, like, "cuda driver " + version());
  }

  Status retain(uint32_t device) override {
    Context context = nullptr;
    if (Code code = f.primaryCtxRetain(&context, Ordinal(device)))
      return failure(code, "cuDevicePrimaryCtxRetain");
    std::lock_guard lock(mutex);
    if (contexts.size() <= device)
      contexts.resize(device + 1, nullptr);
    contexts[device] = context;
    return Status::success();
  }
  void release(uint32_t device) override { f.primaryCtxRelease(Ordinal(device)); }
  Status makeCurrent(uint32_t device) override {
    Context context = nullptr;
    {
      std::lock_guard lock(mutex);
      context = device < contexts.size() ? contexts[device] : nullptr;
    }
    return context ? done(f.ctxSetCurrent(context), "cuCtxSetCurrent")
                   : Status(internalError("device {} was made current and never retained", device));
  }

  Expected<DeviceAddress> allocate(uint64_t bytes) override {
    DeviceAddress address = 0;
    if (Code code = f.memAlloc(&address, bytes))
      return failure(code, fmt::format("cuMemAlloc of {} bytes", bytes));
    return address;
  }
  Status free(DeviceAddress address) override { return done(f.memFree(address), "cuMemFree"); }
  Expected<void *> allocatePinned(uint64_t bytes) override {
    void *memory = nullptr;
    if (Code code = f.memHostAlloc(&memory, bytes, 0))
      return failure(code, fmt::format("cuMemHostAlloc of {} bytes", bytes));
    return memory;
  }
  Status freePinned(void *memory) override { return done(f.memFreeHost(memory), "cuMemFreeHost"); }
  Expected<uint64_t> freeBytes() override {
    size_t unused = 0, total = 0;
    if (Code code = f.memGetInfo(&unused, &total))
      return failure(code, "cuMemGetInfo");
    return uint64_t(unused);
  }

  Status copyToDevice(DeviceAddress to, const void *from, uint64_t bytes,
                      StreamHandle stream) override {
    return done(f.memcpyHtoDAsync(to, from, bytes, stream), "cuMemcpyHtoDAsync");
  }
  Status copyToHost(void *to, DeviceAddress from, uint64_t bytes, StreamHandle stream) override {
    return done(f.memcpyDtoHAsync(to, from, bytes, stream), "cuMemcpyDtoHAsync");
  }
  Status copyOnDevice(DeviceAddress to, DeviceAddress from, uint64_t bytes,
                      StreamHandle stream) override {
    return done(f.memcpyDtoDAsync(to, from, bytes, stream), "cuMemcpyDtoDAsync");
  }
  Status fill(DeviceAddress to, uint8_t value, uint64_t bytes, StreamHandle stream) override {
    return done(f.memsetD8Async(to, value, bytes, stream), "cuMemsetD8Async");
  }

  Expected<StreamHandle> createStream() override {
    constexpr unsigned kNonBlocking = 1;
    StreamHandle stream = nullptr;
    if (Code code = f.streamCreate(&stream, kNonBlocking))
      return failure(code, "cuStreamCreate");
    return stream;
  }
  Status destroyStream(StreamHandle stream) override {
    return done(f.streamDestroy(stream), "cuStreamDestroy");
  }
  Status synchronize(StreamHandle stream) override {
    return done(f.streamSynchronize(stream), "cuStreamSynchronize");
  }
  Expected<EventHandle> createEvent(bool timed) override {
    constexpr unsigned kDisableTiming = 2;
    EventHandle event = nullptr;
    if (Code code = f.eventCreate(&event, timed ? 0 : kDisableTiming))
      return failure(code, "cuEventCreate");
    return event;
  }
  Status destroyEvent(EventHandle event) override {
    return done(f.eventDestroy(event), "cuEventDestroy");
  }
  Status record(EventHandle event, StreamHandle stream) override {
    return done(f.eventRecord(event, stream), "cuEventRecord");
  }
  Status wait(StreamHandle stream, EventHandle event) override {
    return done(f.streamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
  }
  Status synchronize(EventHandle event) override {
    return done(f.eventSynchronize(event), "cuEventSynchronize");
  }
  Expected<double> microsBetween(EventHandle from, EventHandle to) override {
    float millis = 0;
    if (Code code = f.eventElapsedTime(&millis, from, to))
      return failure(code, "cuEventElapsedTime");
    return double(millis) * 1e3;
  }

  Expected<ModuleHandle> loadModule(const void *image, uint64_t bytes) override {
    ModuleHandle module = nullptr;
    if (f.loadHostKernels) {
      if (Code code = f.loadHostKernels(&module, image, bytes))
        return failure(code, kHostKernelLoader);
      return module;
    }
    // What the assembler inside the driver says stands in a buffer of ours.
    constexpr int kErrorLog = 5, kErrorLogBytes = 6;
    std::string log(4096, '\0');
    int names[] = {kErrorLog, kErrorLogBytes};
    void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
    if (Code code = f.moduleLoadDataEx(&module, image, 2, names, values)) {
      Error error = failure(code, "cuModuleLoadDataEx");
      log.resize(log.find('\0'));
      if (!log.empty())
        error.message += ": " + log;
      return error;
    }
    return module;
  }
  Status unloadModule(ModuleHandle module) override {
    return done(f.moduleUnload(module), "cuModuleUnload");
  }
  Expected<FunctionHandle> findFunction(ModuleHandle module, const std::string &name) override {
    FunctionHandle function = nullptr;
    if (Code code = f.moduleGetFunction(&function, module, name.c_str()))
      return failure(code, fmt::format("cuModuleGetFunction of '{}'", name));
    return function;
  }
  Expected<FunctionResources> resources(FunctionHandle function) const override {
    int values[4] = {};
    const int attributes[] = {kFunctionRegisters, kFunctionShared, kFunctionLocal,
                              kFunctionThreads};
    for (int i = 0; i < 4; ++i)
      if (Code code = f.funcGetAttribute(&values[i], attributes[i], function))
        return failure(code, "cuFuncGetAttribute");
    return FunctionResources{uint32_t(values[0]), uint32_t(values[1]), uint32_t(values[2]),
                             uint32_t(values[3])};
  }
  Status allowSharedBytes(FunctionHandle function, uint32_t bytes) override {
    return done(f.funcSetAttribute(function, kFunctionDynamicShared, int(bytes)),
                "cuFuncSetAttribute");
  }
  Status launch(FunctionHandle function, const LaunchShape &shape, void **arguments,
                StreamHandle stream) override {
    Code code = f.launchKernel(function, shape.blocks[0], shape.blocks[1], shape.blocks[2],
                               shape.threads[0], shape.threads[1], shape.threads[2],
                               shape.sharedBytes, stream, arguments, nullptr);
    return done(code, "cuLaunchKernel");
  }

  Error failure(Code code, const std::string &call) const override {
    const char *name = nullptr, *text = nullptr;
    f.getErrorName(code, &name);
    f.getErrorString(code, &text);
    return driverFailure(code, call, name, text);
  }

private:
  Code instantiate(GraphHandle *graph, void *recorded) override {
    return f.graphInstantiate(graph, recorded, 0);
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
    if (Code code = f.deviceGetAttribute(&value, number, Ordinal(device)))
      return failure(code, fmt::format("cuDeviceGetAttribute {}", number));
    return value;
  }

  Functions f;
  mutable std::mutex mutex; ///< guards the contexts
  std::vector<Context> contexts;
};

} // namespace

Expected<std::shared_ptr<DeviceDriver>> openCudaDriver(const std::string &path) {
  auto library = DriverLibrary::open(path, {"libcuda.so.1"});
  if (!library)
    return library.takeError();
  Functions functions{};
  if (Status status = findFunctions(*library, functions); !status)
    return status.takeError();
  auto driver = std::make_shared<CudaDriver>(*library, functions);
  if (Code code = functions.init(0))
    return driver->failure(code, "cuInit of " + library->path());
  return std::shared_ptr<DeviceDriver>(std::move(driver));
}

} // namespace dovetail::device
