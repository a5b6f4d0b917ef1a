// SPDX-License-Identifier: Apache-2.0
//
// What the notes of a code object, the shared ELF file that ROCm loads, say of each kernel.
#pragma once

#include <map>
#include <span>
#include <string>

#include "support/DeviceKernel.h"

namespace dovetail::toolchain {

/// By kernel, from the notes of a code object of version 3 or later (AMDGPU user guide, "Code
/// Object Metadata"). BadInput for bytes that are none.
Expected<std::map<std::string, DeviceResources>>
codeObjectResources(std::span<const uint8_t> codeObject);

} // namespace dovetail::toolchain
