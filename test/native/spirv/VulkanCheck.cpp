// SPDX-License-Identifier: Apache-2.0
//
// Compares VulkanApi.h with Vulkan's own header; compiled only where there is one.
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "VulkanApi.h"

namespace dovetail::test::vulkan {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_PLACE(ours, our, theirs, their)                                                       \
  static_assert(offsetof(ours, our) == offsetof(theirs, their))
#define SAME(ours, theirs)                                                                         \
  static_assert(static_cast<uint32_t>(ours) == static_cast<uint32_t>(theirs))

SAME(StructureType::ApplicationInfo, VK_STRUCTURE_TYPE_APPLICATION_INFO);
SAME(StructureType::InstanceCreateInfo, VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
SAME(StructureType::DeviceQueueCreateInfo, VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
SAME(StructureType::DeviceCreateInfo, VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
SAME(StructureType::SubmitInfo, VK_STRUCTURE_TYPE_SUBMIT_INFO);
SAME(StructureType::MemoryAllocateInfo, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
SAME(StructureType::BufferCreateInfo, VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
SAME(StructureType::ShaderModuleCreateInfo, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
SAME(StructureType::PipelineShaderStageCreateInfo,
     VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
SAME(StructureType::ComputePipelineCreateInfo, VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
SAME(StructureType::PipelineLayoutCreateInfo, VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
SAME(StructureType::CommandPoolCreateInfo, VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
SAME(StructureType::CommandBufferAllocateInfo, VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
SAME(StructureType::CommandBufferBeginInfo, VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
SAME(StructureType::Vulkan11Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
SAME(StructureType::Vulkan12Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
SAME(StructureType::Features2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
SAME(StructureType::MemoryAllocateFlagsInfo, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
SAME(StructureType::BufferDeviceAddressInfo, VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
SAME(kVersion12, VK_API_VERSION_1_2);
SAME(kQueueCompute, VK_QUEUE_COMPUTE_BIT);
SAME(kHostVisible, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
SAME(kHostCoherent, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
SAME(kUsageStorageBuffer, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
SAME(kUsageDeviceAddress, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
SAME(kAllocateDeviceAddress, VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT);
SAME(kStageCompute, VK_SHADER_STAGE_COMPUTE_BIT);
SAME(kBindPointCompute, VK_PIPELINE_BIND_POINT_COMPUTE);

SAME_SIZE(ApplicationInfo, VkApplicationInfo);
SAME_SIZE(InstanceCreateInfo, VkInstanceCreateInfo);
SAME_SIZE(QueueFamily, VkQueueFamilyProperties);
SAME_SIZE(MemoryProperties, VkPhysicalDeviceMemoryProperties);
SAME_SIZE(Features2, VkPhysicalDeviceFeatures2);
SAME_SIZE(Features11, VkPhysicalDeviceVulkan11Features);
SAME_SIZE(Features12, VkPhysicalDeviceVulkan12Features);
SAME_SIZE(DeviceQueueCreateInfo, VkDeviceQueueCreateInfo);
SAME_SIZE(DeviceCreateInfo, VkDeviceCreateInfo);
SAME_SIZE(BufferCreateInfo, VkBufferCreateInfo);
SAME_SIZE(MemoryRequirements, VkMemoryRequirements);
SAME_SIZE(MemoryAllocateFlagsInfo, VkMemoryAllocateFlagsInfo);
SAME_SIZE(MemoryAllocateInfo, VkMemoryAllocateInfo);
SAME_SIZE(BufferDeviceAddressInfo, VkBufferDeviceAddressInfo);
SAME_SIZE(ShaderModuleCreateInfo, VkShaderModuleCreateInfo);
SAME_SIZE(PushConstantRange, VkPushConstantRange);
SAME_SIZE(PipelineLayoutCreateInfo, VkPipelineLayoutCreateInfo);
SAME_SIZE(PipelineShaderStageCreateInfo, VkPipelineShaderStageCreateInfo);
SAME_SIZE(ComputePipelineCreateInfo, VkComputePipelineCreateInfo);
SAME_SIZE(CommandPoolCreateInfo, VkCommandPoolCreateInfo);
SAME_SIZE(CommandBufferAllocateInfo, VkCommandBufferAllocateInfo);
SAME_SIZE(CommandBufferBeginInfo, VkCommandBufferBeginInfo);
SAME_SIZE(SubmitInfo, VkSubmitInfo);
static_assert(sizeof(DeviceProperties) >= sizeof(VkPhysicalDeviceProperties));
SAME_PLACE(DeviceProperties, name, VkPhysicalDeviceProperties, deviceName);
SAME_PLACE(MemoryProperties, types, VkPhysicalDeviceMemoryProperties, memoryTypes);

static_assert(offsetof(Features2, features) == offsetof(VkPhysicalDeviceFeatures2, features));
static_assert(4 * Features2::kInt64 == offsetof(VkPhysicalDeviceFeatures, shaderInt64));
static_assert(4 * Features2::kInt16 == offsetof(VkPhysicalDeviceFeatures, shaderInt16));
static_assert(offsetof(Features11, features) + 4 * Features11::kStorage16 ==
              offsetof(VkPhysicalDeviceVulkan11Features, storageBuffer16BitAccess));
static_assert(offsetof(Features12, features) + 4 * Features12::kStorage8 ==
              offsetof(VkPhysicalDeviceVulkan12Features, storageBuffer8BitAccess));
static_assert(offsetof(Features12, features) + 4 * Features12::kFloat16 ==
              offsetof(VkPhysicalDeviceVulkan12Features, shaderFloat16));
static_assert(offsetof(Features12, features) + 4 * Features12::kInt8 ==
              offsetof(VkPhysicalDeviceVulkan12Features, shaderInt8));
static_assert(offsetof(Features12, features) + 4 * Features12::kDeviceAddress ==
              offsetof(VkPhysicalDeviceVulkan12Features, bufferDeviceAddress));

} // namespace dovetail::test::vulkan
