// SPDX-License-Identifier: Apache-2.0
//
// Code objects, the shared ELF files that ROCm loads, linked by LLD within this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/Expected.h"

namespace llvm {
class Module;
} // namespace llvm

namespace dovetail::codegen {

/// Optimises the module, whose kernels are bound to their threads, and links its code for
/// "gfx90a" or another level of schedule/Machine.h. Unavailable where LLD was not there when
/// Dovetail was built.
Expected<std::vector<uint8_t>> lowerToCodeObject(llvm::Module &module, const char *architecture,
                                                 std::string *assembly);

} // namespace dovetail::codegen
