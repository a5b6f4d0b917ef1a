// SPDX-License-Identifier: Apache-2.0
//
// What is used of Vulkan 1.2, declared here because its headers may be missing. Names are those of
// the interface without its prefixes; VulkanCheck.cpp compares sizes, places and numbers with the
// headers where there are any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dovetail::test::vulkan {

using Result = int32_t; ///< 0: success
using Bool32 = uint32_t;
using DeviceSize = uint64_t;
using Handle = void *;   ///< of what can be given work: instance, device, queue, ...
using Object = uint64_t; ///< of everything else
using Function = void (*)();

enum class StructureType : uint32_t {
  ApplicationInfo = 0,
  InstanceCreateInfo = 1,
  DeviceQueueCreateInfo = 2,
  DeviceCreateInfo = 3,
  SubmitInfo = 4,
  MemoryAllocateInfo = 5,
  BufferCreateInfo = 12,
  ShaderModuleCreateInfo = 16,
  PipelineShaderStageCreateInfo = 18,
  ComputePipelineCreateInfo = 29,
  PipelineLayoutCreateInfo = 30,
  CommandPoolCreateInfo = 39,
  CommandBufferAllocateInfo = 40,
  CommandBufferBeginInfo = 42,
  Vulkan11Features = 49,
  Vulkan12Features = 51,
  Features2 = 1000059000,
  MemoryAllocateFlagsInfo = 1000060000,
  BufferDeviceAddressInfo = 1000244001,
};

inline constexpr uint32_t kVersion12 = (1u << 22) | (2u << 12);
inline constexpr uint32_t kQueueCompute = 2;
inline constexpr uint32_t kHostVisible = 2, kHostCoherent = 4; ///< of memory types
inline constexpr uint32_t kUsageStorageBuffer = 0x20, kUsageDeviceAddress = 0x20000;
inline constexpr uint32_t kAllocateDeviceAddress = 2;
inline constexpr uint32_t kStageCompute = 0x20;
inline constexpr uint32_t kBindPointCompute = 1;

struct Start {
  StructureType type;
  const void *next = nullptr;
};

struct ApplicationInfo {
  Start start{StructureType::ApplicationInfo};
  const char *name = nullptr;
  uint32_t version = 0;
  const char *engine = nullptr;
  uint32_t engineVersion = 0, apiVersion = kVersion12;
};
struct InstanceCreateInfo {
  Start start{StructureType::InstanceCreateInfo};
  uint32_t flags = 0;
  const ApplicationInfo *application = nullptr;
  uint32_t layerCount = 0;
  const char *const *layers = nullptr;
  uint32_t extensionCount = 0;
  const char *const *extensions = nullptr;
};

/// Limits and what follows are not looked at.
struct DeviceProperties {
  uint32_t apiVersion, driverVersion, vendor, device, type;
  char name[256];
  alignas(8) char rest[1024];
};
struct QueueFamily {
  uint32_t flags, count, timestampBits, granularity[3];
};
struct MemoryProperties {
  uint32_t typeCount;
  struct {
    uint32_t flags, heap;
  } types[32];
  uint32_t heapCount;
  struct {
    DeviceSize bytes;
    uint32_t flags;
  } heaps[16];
};

/// Features by number, in the order of the interface.
struct Features2 {
  Start start{StructureType::Features2};
  Bool32 features[55] = {};
  static constexpr size_t kInt64 = 40, kInt16 = 41;
};
struct Features11 {
  Start start{StructureType::Vulkan11Features};
  Bool32 features[12] = {};
  static constexpr size_t kStorage16 = 0;
};
struct Features12 {
  Start start{StructureType::Vulkan12Features};
  Bool32 features[47] = {};
  static constexpr size_t kStorage8 = 2, kFloat16 = 7, kInt8 = 8, kDeviceAddress = 38;
};

struct DeviceQueueCreateInfo {
  Start start{StructureType::DeviceQueueCreateInfo};
  uint32_t flags = 0, family = 0, count = 1;
  const float *priorities = nullptr;
};
struct DeviceCreateInfo {
  Start start{StructureType::DeviceCreateInfo};
  uint32_t flags = 0, queueCount = 1;
  const DeviceQueueCreateInfo *queues = nullptr;
  uint32_t layerCount = 0;
  const char *const *layers = nullptr;
  uint32_t extensionCount = 0;
  const char *const *extensions = nullptr;
  const void *features = nullptr;
};

struct BufferCreateInfo {
  Start start{StructureType::BufferCreateInfo};
  uint32_t flags = 0;
  DeviceSize bytes = 0;
  uint32_t usage = kUsageStorageBuffer | kUsageDeviceAddress, sharing = 0, familyCount = 0;
  const uint32_t *families = nullptr;
};
struct MemoryRequirements {
  DeviceSize bytes, alignment;
  uint32_t types;
};
struct MemoryAllocateFlagsInfo {
  Start start{StructureType::MemoryAllocateFlagsInfo};
  uint32_t flags = kAllocateDeviceAddress, deviceMask = 0;
};
struct MemoryAllocateInfo {
  Start start{StructureType::MemoryAllocateInfo};
  DeviceSize bytes = 0;
  uint32_t type = 0;
};
struct BufferDeviceAddressInfo {
  Start start{StructureType::BufferDeviceAddressInfo};
  Object buffer = 0;
};

struct ShaderModuleCreateInfo {
  Start start{StructureType::ShaderModuleCreateInfo};
  uint32_t flags = 0;
  size_t bytes = 0;
  const uint32_t *words = nullptr;
};
struct PushConstantRange {
  uint32_t stages = kStageCompute, offset = 0, bytes = 8;
};
struct PipelineLayoutCreateInfo {
  Start start{StructureType::PipelineLayoutCreateInfo};
  uint32_t flags = 0, setCount = 0;
  const Object *sets = nullptr;
  uint32_t rangeCount = 1;
  const PushConstantRange *ranges = nullptr;
};
struct PipelineShaderStageCreateInfo {
  Start start{StructureType::PipelineShaderStageCreateInfo};
  uint32_t flags = 0, stage = kStageCompute;
  Object module = 0;
  const char *name = nullptr;
  const void *specialization = nullptr;
};
struct ComputePipelineCreateInfo {
  Start start{StructureType::ComputePipelineCreateInfo};
  uint32_t flags = 0;
  PipelineShaderStageCreateInfo stage;
  Object layout = 0, base = 0;
  int32_t baseIndex = -1;
};

struct CommandPoolCreateInfo {
  Start start{StructureType::CommandPoolCreateInfo};
  uint32_t flags = 0, family = 0;
};
struct CommandBufferAllocateInfo {
  Start start{StructureType::CommandBufferAllocateInfo};
  Object pool = 0;
  uint32_t level = 0, count = 1;
};
struct CommandBufferBeginInfo {
  Start start{StructureType::CommandBufferBeginInfo};
  uint32_t flags = 0;
  const void *inheritance = nullptr;
};
struct SubmitInfo {
  Start start{StructureType::SubmitInfo};
  uint32_t waitCount = 0;
  const Object *waits = nullptr;
  const uint32_t *waitStages = nullptr;
  uint32_t bufferCount = 1;
  const Handle *buffers = nullptr;
  uint32_t signalCount = 0;
  const Object *signals = nullptr;
};

} // namespace dovetail::test::vulkan
