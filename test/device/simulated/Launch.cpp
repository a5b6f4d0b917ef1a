// SPDX-License-Identifier: Apache-2.0
//
// Modules, functions and launches.
#include "State.h"

#include <cstring>

namespace simulated {

namespace {

FunctionState *findFunctionState(Handle handle) {
  auto found = state().functions.find(numberOf(handle));
  if (found != state().functions.end())
    return &found->second;
  refuse(InvalidHandle, "there is no function {}; its module may have been unloaded", handle);
  return nullptr;
}

/// Arguments are eight bytes each and of unknown kind. What looks like an address must be one of
/// the device's.
std::string checkArgument(uint64_t value) {
  constexpr uint64_t kMapped = uint64_t(0x7e) << 40, kEnd = uint64_t(1) << 47;
  if (state().memory.covers(value))
    return state().memory.check(value, 1);
  if (value >= kMapped && value < kEnd)
    return fmt::format("{:#x} is an address of the host's", value);
  return {};
}

Code checkShape(const FunctionState &kernel, const std::array<uint32_t, 3> &blocks,
                const std::array<uint32_t, 3> &threads, uint32_t sharedBytes) {
  const Limits &limits = state().limits;
  const std::string &name = kernel.function.name;
  if (blocks[0] == 0 || threads[0] == 0 || blocks[1] != 1 || blocks[2] != 1 || threads[1] != 1 ||
      threads[2] != 1 || blocks[0] > INT32_MAX)
    return refuse(InvalidValue,
                  "launch of '{}': {} x {} x {} blocks of {} x {} x {} threads; grids and blocks "
                  "have one dimension of at least 1",
                  name, blocks[0], blocks[1], blocks[2], threads[0], threads[1], threads[2]);
  if (limits.architecture.starts_with("gfx") && uint64_t(blocks[0]) * threads[0] > UINT32_MAX)
    return refuse(
        InvalidValue,
        "launch of '{}': {} blocks of {} threads; HIP counts the threads of a grid with 32 "
        "bits",
        name, blocks[0], threads[0]);
  if (threads[0] > limits.threadsPerBlock)
    return refuse(InvalidValue, "launch of '{}': {} threads in a block of at most {}", name,
                  threads[0], limits.threadsPerBlock);
  if (kernel.function.threads && threads[0] > kernel.function.threads)
    return refuse(LaunchOutOfResources, "launch of '{}': {} threads in a block, made for {}", name,
                  threads[0], kernel.function.threads);
  uint64_t shared = uint64_t(sharedBytes) + kernel.function.sharedBytes;
  if (shared > limits.sharedBytesPerBlock)
    return refuse(InvalidValue, "launch of '{}': {} bytes of shared memory, a block has {}", name,
                  shared, limits.sharedBytesPerBlock);
  if (shared > limits.sharedBytesWithoutAsking && sharedBytes > kernel.allowedShared)
    return refuse(InvalidValue,
                  "launch of '{}': {} bytes of shared memory were not allowed to the function",
                  name, sharedBytes);
  return Success;
}

Code run(const HostFunction &function, const std::vector<uint64_t> &values, uint32_t blocks,
         uint32_t threads, uint32_t sharedBytes) {
  std::vector<const void *> pointers;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::string why = checkArgument(values[i]); !why.empty())
      return breakDown(IllegalAddress, fmt::format("'{}': argument {}: {}", function.name, i, why));
    if (state().memory.covers(values[i]) && checkOrdered(function.name.c_str(), values[i]))
      return breakDown(IllegalAddress, lastReason);
    pointers.push_back(&values[i]);
  }
  bool isThrough = false;
  {
    DeviceMemory::Opened opened(state().memory);
    isThrough = runGrid(function, const_cast<void *const *>(pointers.data()), blocks, threads,
                        sharedBytes + function.sharedBytes);
  }
  if (!isThrough)
    return breakDown(
        IllegalAddress,
        fmt::format("'{}': threads of a block wait for others that have ended", function.name));
  if (std::string strays = state().memory.findStrays(); !strays.empty())
    return breakDown(IllegalAddress, fmt::format("'{}' {}", function.name, strays));
  return Success;
}

} // namespace

Code loadModule(const void *image, uint64_t bytes, Handle *module) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (!image || bytes == 0)
    return refuse(InvalidValue, "there is no image");
  std::string why;
  ModuleState loaded{HostImage::load(image, bytes, why)};
  if (!loaded.image)
    return refuse(InvalidImage, "{}", why);
  uint64_t number = state().nextHandle++;
  state().modules[number] = std::move(loaded);
  ++state().counts["modules"];
  *module = handleOf(number);
  return Success;
}

Code unloadModule(Handle module) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (!state().modules.contains(numberOf(module)))
    return refuse(InvalidHandle, "there is no module {}", module);
  Code code = drainAll(); // its code may still be about to run
  std::erase_if(state().functions,
                [&](const auto &entry) { return entry.second.module == numberOf(module); });
  state().modules.erase(numberOf(module));
  return code;
}

Code findFunction(Handle module, const char *name, Handle *function) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  auto found = state().modules.find(numberOf(module));
  if (found == state().modules.end())
    return refuse(InvalidHandle, "there is no module {}", module);
  FunctionState entry;
  if (!name || !found->second.image->find(name, entry.function))
    return refuse(NotFound, "the module has no function '{}'", name ? name : "");
  entry.module = numberOf(module);
  uint64_t number = state().nextHandle++;
  state().functions[number] = std::move(entry);
  *function = handleOf(number);
  return Success;
}

Code functionAttribute(Handle function, int attribute, int *value) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  FunctionState *found = findFunctionState(function);
  if (!found)
    return InvalidHandle;
  switch (attribute) {
  case 0:
    *value =
        int(found->function.threads ? found->function.threads : state().limits.threadsPerBlock);
    return Success;
  case 1:
    *value = int(found->function.sharedBytes);
    return Success;
  case 3:
  case 4:
    *value = 0;
    return Success;
  default:
    return refuse(InvalidValue, "functions have no attribute {}", attribute);
  }
}

Code allowShared(Handle function, int bytes) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  FunctionState *found = findFunctionState(function);
  if (!found)
    return InvalidHandle;
  if (bytes < 0 || uint32_t(bytes) > state().limits.sharedBytesPerBlock)
    return refuse(InvalidValue, "{} bytes of shared memory, a block has {}", bytes,
                  state().limits.sharedBytesPerBlock);
  found->allowedShared = uint32_t(bytes);
  return Success;
}

Code launch(Handle function, std::array<uint32_t, 3> blocks, std::array<uint32_t, 3> threads,
            uint32_t sharedBytes, Handle stream, void **arguments, void **extra) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  FunctionState *found = findFunctionState(function);
  if (!found)
    return InvalidHandle;
  StreamState *queue = findStream(stream);
  if (!queue)
    return InvalidHandle;
  if (Code code = checkShape(*found, blocks, threads, sharedBytes))
    return code;
  if (extra || (!arguments && found->function.arguments > 0))
    return refuse(InvalidValue, "launch of '{}': there are no arguments", found->function.name);
  std::vector<uint64_t> values(found->function.arguments);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!arguments[i])
      return refuse(InvalidValue, "launch of '{}': argument {} is null", found->function.name, i);
    std::memcpy(&values[i], arguments[i], sizeof(uint64_t));
    if (std::string why = checkArgument(values[i]); !why.empty())
      return refuse(InvalidValue, "launch of '{}': argument {}: {}", found->function.name, i, why);
  }
  // Recorded work may be launched after its module went.
  give(*queue, [entry = found->function, number = numberOf(function), values = std::move(values),
                blocks = blocks[0], threads = threads[0], sharedBytes] {
    if (!state().functions.contains(number))
      return breakDown(InvalidHandle, fmt::format("the module of '{}' is gone", entry.name));
    ++state().counts["launches"];
    return run(entry, values, blocks, threads, sharedBytes);
  });
  return Success;
}

} // namespace simulated
