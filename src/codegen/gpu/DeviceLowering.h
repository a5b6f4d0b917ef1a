// SPDX-License-Identifier: Apache-2.0
//
// From the functions of a device kernel's phases to the images in which it travels.
#pragma once

#include <vector>

#include "mlir/IR/BuiltinOps.h"

#include "codegen/Lowering.h"
#include "codegen/schedule/Machine.h"
#include "support/DeviceKernel.h"

namespace dovetail::codegen {

/// Rewrites `module` in place and fills kernel.images for its launches: for CUDA the PTX and, where
/// an assembler is found, a cubin; for ROCm a code object; and for both the host's form.
Status lowerForDevice(mlir::ModuleOp module, const Isa &isa, DeviceKernel &kernel,
                      LoweringTexts *texts);

} // namespace dovetail::codegen
