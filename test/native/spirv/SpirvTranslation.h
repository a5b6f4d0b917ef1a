// SPDX-License-Identifier: Apache-2.0
//
// From the module of a device kernel as its family emitted it (structured loops, what a thread asks
// its device as calls) to shaders in SPIR-V for Vulkan: a third meaning of the same code, beside
// those of devices and of the host, by another compiler. Addresses are numbers of 64 bits, as
// buffer device addresses are; memory that the threads of a block share is one array of words;
// vectors are taken apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/DeviceKernel.h"

namespace dovetail::test {

/// One entry of a kernel. It takes one push constant of eight bytes: the address of its arguments,
/// eight bytes each, behind which stands the address of SpirvKernel::data.
struct SpirvEntry {
  std::vector<uint32_t> words; ///< a module of its own; the entry point has the launch's name
  bool usesFloat16 = false;
};

struct SpirvKernel {
  std::vector<SpirvEntry> entries; ///< in the order of the kernel's launches
  std::vector<char> data;          ///< literals that are part of the kernel
};

/// `emitted` is the text of the module. Unavailable where something in it has no counterpart, which
/// is named; an internal error for anything else.
Expected<SpirvKernel> translateToSpirv(const std::string &emitted, const DeviceKernel &kernel);

} // namespace dovetail::test
