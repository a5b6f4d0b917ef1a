// SPDX-License-Identifier: Apache-2.0
//
// Kernels made for this processor, out of an image, and how a grid of their threads is run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace simulated {

/// One thread as kernels see it: see HostThread of support/DeviceKernel.h.
struct Thread {
  uint32_t block, thread;
  void *shared;
  void (*barrier)(void *context);
  void *context;
};
using Entry = void (*)(void *const *arguments, const Thread *thread);

struct HostFunction {
  std::string name;
  Entry entry = nullptr;
  uint32_t arguments = 0;   ///< 8 bytes each
  uint32_t threads = 0;     ///< most of a block; 0: any number
  uint32_t sharedBytes = 0; ///< reserved by the code itself
  bool barriers = true;
};

class HostImage {
public:
  virtual ~HostImage() = default;
  /// False where there is none of that name.
  virtual bool find(const std::string &name, HostFunction &function) const = 0;
  /// A shared object, or host kernels as the compiler of device kernels makes them; null with a
  /// reason.
  static std::unique_ptr<HostImage> load(const void *bytes, uint64_t count, std::string &why);
};

/// Runs all threads, block by block. False where some threads of a block waited for others that had
/// ended.
bool runGrid(const HostFunction &function, void *const *arguments, uint32_t blocks,
             uint32_t threads, uint32_t sharedBytes);

} // namespace simulated
