// SPDX-License-Identifier: Apache-2.0
//
// LLVM's code for devices: PTX text for those of CUDA, relocatable objects for AMDGPU. Needs
// nothing but LLVM.
#pragma once

#include <string>

#include "llvm/ADT/SmallVector.h"

#include "support/Expected.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace dovetail::codegen {

/// Optimises the module, whose kernels are bound to their threads, and gives its PTX for "sm_90" or
/// another level of schedule/Machine.h.
Expected<std::string> lowerToPtx(llvm::Module &module, const char *architecture);

/// The same for AMDGPU ("gfx90a"): an ELF object, and where asked for its assembly.
Expected<llvm::SmallVector<char, 0>> lowerToAmdgpu(llvm::Module &module, const char *architecture,
                                                   std::string *assembly);

} // namespace dovetail::codegen
