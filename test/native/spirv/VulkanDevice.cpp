// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "VulkanDevice.h"

#include <array>

#include <dlfcn.h>

namespace dovetail::test {

using namespace vulkan;

/// All functions that are used but vkCmd... give a Result or nothing, and are called as if they
/// gave one; what a void function leaves there is not looked at.
template <typename... Arguments>
Result VulkanDevice::call(const char *name, Arguments... arguments) {
  Function &function = functions[name];
  if (!function)
    function = find(instance, name);
  return function ? reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...) : -1;
}

template <typename... Arguments>
Status VulkanDevice::check(const char *name, Arguments... arguments) {
  if (Result code = call(name, arguments...))
    return unavailable("{} gives {}", name, code);
  return Status::success();
}

Expected<std::unique_ptr<VulkanDevice>> VulkanDevice::open() {
  std::unique_ptr<VulkanDevice> made(new VulkanDevice);
  for (auto step : {&VulkanDevice::openLibrary, &VulkanDevice::openInstance,
                    &VulkanDevice::pickDevice, &VulkanDevice::openDevice, &VulkanDevice::openQueue})
    if (Status status = (made.get()->*step)(); !status)
      return status.takeError();
  return made;
}

Status VulkanDevice::openLibrary() {
  library = ::dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return unavailable("no libvulkan.so.1 (Debian: libvulkan1, mesa-vulkan-drivers)");
  find = reinterpret_cast<decltype(find)>(::dlsym(library, "vkGetInstanceProcAddr"));
  return find ? Status::success() : unavailable("libvulkan.so.1 has no vkGetInstanceProcAddr");
}

Status VulkanDevice::openInstance() {
  ApplicationInfo application;
  InstanceCreateInfo info;
  info.application = &application;
  Handle made = nullptr;
  if (Status status = check("vkCreateInstance", &info, static_cast<const void *>(nullptr), &made);
      !status)
    return status;
  instance = made;
  return Status::success();
}

Status VulkanDevice::pickDevice() {
  std::array<Handle, 16> found{};
  auto count = uint32_t(found.size());
  constexpr int32_t kIncomplete = 5; // VK_INCOMPLETE: there are more
  const int32_t code = call("vkEnumeratePhysicalDevices", instance, &count, found.data());
  if (code != 0 && code != kIncomplete)
    return unavailable("vkEnumeratePhysicalDevices gives {}", code);
  for (uint32_t i = 0; i < count; ++i)
    if (take(found[i]))
      return Status::success();
  return unavailable("none of {} devices of Vulkan has version 1.2, 64-bit integers, 16- and 8-bit "
                     "storage and buffer addresses (Debian's mesa-vulkan-drivers has one)",
                     count);
}

/// Its properties go where those of the last one were.
bool VulkanDevice::take(Handle candidate) {
  DeviceProperties properties;
  call("vkGetPhysicalDeviceProperties", candidate, &properties);
  if (properties.apiVersion < kVersion12)
    return false;
  features11.start.next = &features12;
  features.start.next = &features11;
  call("vkGetPhysicalDeviceFeatures2", candidate, &features);
  std::array<QueueFamily, 16> families{};
  auto count = uint32_t(families.size());
  call("vkGetPhysicalDeviceQueueFamilyProperties", candidate, &count, families.data());
  for (family = 0; family < count && !(families[family].flags & kQueueCompute);)
    ++family;
  if (family == count || !features.features[Features2::kInt64] ||
      !features.features[Features2::kInt16] || !features11.features[Features11::kStorage16] ||
      !features12.features[Features12::kStorage8] || !features12.features[Features12::kInt8] ||
      !features12.features[Features12::kDeviceAddress])
    return false;
  physical = candidate;
  deviceName = properties.name;
  float16 = features12.features[Features12::kFloat16] != 0;
  return true;
}

Status VulkanDevice::openDevice() {
  const float priority = 1;
  DeviceQueueCreateInfo queueInfo;
  queueInfo.family = family;
  queueInfo.priorities = &priority;
  DeviceCreateInfo info;
  info.start.next = &features; // whatever there is
  info.queues = &queueInfo;
  return check("vkCreateDevice", physical, &info, static_cast<const void *>(nullptr), &device);
}

Status VulkanDevice::openQueue() {
  call("vkGetDeviceQueue", device, family, uint32_t(0), &queue);
  PushConstantRange range;
  PipelineLayoutCreateInfo layoutInfo;
  layoutInfo.ranges = &range;
  const void *none = nullptr;
  if (Status status = check("vkCreatePipelineLayout", device, &layoutInfo, none, &layout); !status)
    return status;
  CommandPoolCreateInfo poolInfo;
  poolInfo.family = family;
  if (Status status = check("vkCreateCommandPool", device, &poolInfo, none, &pool); !status)
    return status;
  CommandBufferAllocateInfo info;
  info.pool = pool;
  return check("vkAllocateCommandBuffers", device, &info, &commands);
}

VulkanDevice::~VulkanDevice() {
  const void *none = nullptr;
  if (device) {
    releaseMemory();
    call("vkDestroyCommandPool", device, pool, none);
    call("vkDestroyPipelineLayout", device, layout, none);
    call("vkDestroyDevice", device, none);
  }
  if (instance)
    call("vkDestroyInstance", instance, none);
  // The library stays: drivers leave threads behind.
}

Expected<VulkanDevice::Memory> VulkanDevice::allocate(uint64_t bytes) {
  const void *none = nullptr;
  BufferCreateInfo bufferInfo;
  bufferInfo.bytes = bytes;
  Object buffer = 0, memory = 0;
  if (Status status = check("vkCreateBuffer", device, &bufferInfo, none, &buffer); !status)
    return status.takeError();
  blocks.emplace_back(buffer, 0);
  MemoryRequirements needs{};
  call("vkGetBufferMemoryRequirements", device, buffer, &needs);
  MemoryProperties properties;
  call("vkGetPhysicalDeviceMemoryProperties", physical, &properties);
  MemoryAllocateFlagsInfo flags;
  MemoryAllocateInfo info;
  info.start.next = &flags;
  info.bytes = needs.bytes;
  constexpr uint32_t kWanted = kHostVisible | kHostCoherent;
  for (info.type = 0; info.type < properties.typeCount; ++info.type)
    if ((needs.types >> info.type & 1) && (properties.types[info.type].flags & kWanted) == kWanted)
      break;
  if (Status status = check("vkAllocateMemory", device, &info, none, &memory); !status)
    return status.takeError();
  blocks.back().second = memory;
  if (Status status = check("vkBindBufferMemory", device, buffer, memory, DeviceSize(0)); !status)
    return status.takeError();
  Memory made;
  void *host = nullptr;
  if (Status status =
          check("vkMapMemory", device, memory, DeviceSize(0), ~DeviceSize(0), uint32_t(0), &host);
      !status)
    return status.takeError();
  made.host = static_cast<char *>(host);
  BufferDeviceAddressInfo addressInfo;
  addressInfo.buffer = buffer;
  auto address = reinterpret_cast<uint64_t (*)(Handle, const BufferDeviceAddressInfo *)>(
      find(instance, "vkGetBufferDeviceAddress"));
  if (!address)
    return unavailable("no vkGetBufferDeviceAddress");
  made.address = address(device, &addressInfo);
  return made;
}

void VulkanDevice::releaseMemory() {
  const void *none = nullptr;
  for (auto [buffer, memory] : blocks) {
    call("vkDestroyBuffer", device, buffer, none);
    call("vkFreeMemory", device, memory, none);
  }
  blocks.clear();
}

Expected<Object> VulkanDevice::makePipeline(const std::vector<uint32_t> &words,
                                            const std::string &entry) {
  const void *none = nullptr;
  ShaderModuleCreateInfo moduleInfo;
  moduleInfo.bytes = 4 * words.size();
  moduleInfo.words = words.data();
  Object module = 0, pipeline = 0;
  if (Status status = check("vkCreateShaderModule", device, &moduleInfo, none, &module); !status)
    return status.takeError();
  ComputePipelineCreateInfo info;
  info.stage.module = module;
  info.stage.name = entry.c_str();
  info.layout = layout;
  Status status =
      check("vkCreateComputePipelines", device, Object(0), uint32_t(1), &info, none, &pipeline);
  call("vkDestroyShaderModule", device, module, none);
  if (!status)
    return status.takeError();
  return pipeline;
}

Status VulkanDevice::submit(Object pipeline, uint32_t blockCount, uint64_t constant) {
  CommandBufferBeginInfo begin;
  if (Status status = check("vkBeginCommandBuffer", commands, &begin); !status)
    return status;
  call("vkCmdBindPipeline", commands, kBindPointCompute, pipeline);
  call("vkCmdPushConstants", commands, layout, kStageCompute, uint32_t(0),
       uint32_t(sizeof constant), static_cast<const void *>(&constant));
  call("vkCmdDispatch", commands, blockCount, uint32_t(1), uint32_t(1));
  if (Status status = check("vkEndCommandBuffer", commands); !status)
    return status;
  SubmitInfo info;
  info.buffers = &commands;
  if (Status status = check("vkQueueSubmit", queue, uint32_t(1), &info, Object(0)); !status)
    return status;
  if (Status status = check("vkQueueWaitIdle", queue); !status)
    return status;
  return check("vkResetCommandPool", device, pool, uint32_t(0));
}

Status VulkanDevice::run(const std::vector<uint32_t> &words, const std::string &entry,
                         uint32_t blockCount, uint64_t constant) {
  auto pipeline = makePipeline(words, entry);
  if (!pipeline)
    return pipeline.takeError();
  Status status = submit(*pipeline, blockCount, constant);
  call("vkDestroyPipeline", device, *pipeline, static_cast<const void *>(nullptr));
  return status;
}

} // namespace dovetail::test
