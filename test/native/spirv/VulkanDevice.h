// SPDX-License-Identifier: Apache-2.0
//
// A device of Vulkan, opened at run time, as far as tests need one: memory that the host sees, and
// shaders that are given one address. Meant for lavapipe, Mesa's driver on the processor (Debian's
// mesa-vulkan-drivers), and content with any other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "VulkanApi.h"
#include "support/Expected.h"

namespace dovetail::test {

class VulkanDevice {
public:
  /// The first device that has what shaders of SpirvTranslation.h need. Unavailable, with what is
  /// missing, where there is none.
  static Expected<std::unique_ptr<VulkanDevice>> open();
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice &) = delete;

  const std::string &name() const { return deviceName; }
  bool hasFloat16() const { return float16; }

  /// A block of memory, there until the device is closed or its memory released.
  struct Memory {
    char *host = nullptr;
    uint64_t address = 0; ///< for shaders
  };
  Expected<Memory> allocate(uint64_t bytes);
  void releaseMemory();

  /// Runs the entry point of a module in so many blocks, with one push constant, to the end.
  Status run(const std::vector<uint32_t> &words, const std::string &entry, uint32_t blocks,
             uint64_t constant);

private:
  VulkanDevice() = default;
  Status openLibrary();
  Status openInstance();
  Status pickDevice();
  bool take(vulkan::Handle candidate);
  Status openDevice();
  Status openQueue();
  Expected<vulkan::Object> makePipeline(const std::vector<uint32_t> &words,
                                        const std::string &entry);
  Status submit(vulkan::Object pipeline, uint32_t blocks, uint64_t constant);
  /// Calls the function of this name; its result where it has one.
  template <typename... Arguments> vulkan::Result call(const char *name, Arguments... arguments);
  template <typename... Arguments> Status check(const char *name, Arguments... arguments);

  void *library = nullptr;
  vulkan::Function (*find)(vulkan::Handle instance, const char *name) = nullptr;
  std::map<std::string, vulkan::Function> functions;
  vulkan::Handle instance = nullptr, physical = nullptr, device = nullptr, queue = nullptr,
                 commands = nullptr;
  vulkan::Object pool = 0, layout = 0;
  uint32_t family = 0;
  vulkan::Features2 features;
  vulkan::Features11 features11;
  vulkan::Features12 features12;
  std::string deviceName;
  bool float16 = false;
  std::vector<std::pair<vulkan::Object, vulkan::Object>> blocks; ///< buffers and their memory
};

} // namespace dovetail::test
