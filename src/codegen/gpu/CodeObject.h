// SPDX-License-Identifier: Apache-2.0
//
// Code objects, the shared ELF files that ROCm loads: linked by LLD within this process, and what
// their notes say of each kernel's registers and memory.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/DeviceKernel.h"

namespace llvm {
class Module;
} // namespace llvm

namespace dovetail::codegen {

/// Optimises the module, whose kernels are bound to their threads, and links its code for
/// "gfx90a" or another level of schedule/Machine.h. Unavailable where LLD was not there when
/// Dovetail was built.
Expected<std::vector<uint8_t>> lowerToCodeObject(llvm::Module &module, const char *architecture,
                                                 std::string *assembly);

/// By kernel, from the notes of a code object of version 3 or later (AMDGPU user guide, "Code
/// Object Metadata"). BadInput for bytes that are none.
Expected<std::map<std::string, DeviceResources>>
codeObjectResources(std::span<const uint8_t> codeObject);

} // namespace dovetail::codegen
