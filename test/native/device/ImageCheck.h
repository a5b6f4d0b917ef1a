// SPDX-License-Identifier: Apache-2.0
//
// Holds the images of device kernels against the vendors' own tools, as far as they go without a
// device: PTX is assembled with warnings as errors, code objects are disassembled, and kernels on
// matrix units must have the instructions they are named for. Everything that passed is counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "support/DeviceKernel.h"

namespace dovetail::test {

/// What was gone through for one architecture.
struct ImageCounts {
  uint64_t kernels = 0;       ///< of a problem each, with one or more entries
  uint64_t entries = 0;       ///< functions that a grid of threads runs
  uint64_t assembled = 0;     ///< PTX of a kernel that an assembler took without a warning
  uint64_t disassembled = 0;  ///< code objects that were read back, instruction by instruction
  uint64_t matrixKernels = 0; ///< whose instructions of matrix units were found
};

/// By architecture, since the process began.
std::map<std::string, ImageCounts> &imageCounts();

/// What is wrong with the images of a kernel for "sm_90" or "gfx942"; counts what is right. PTX is
/// assembled by ptxas, by nvJitLink where that is not there, and by nothing where neither is.
Status checkImages(const DeviceKernel &kernel, const std::string &architecture,
                   const std::string &algorithm);

/// The first characters of the instruction of a matrix unit in PTX, or in what disassembles a code
/// object, by the class of rounding of products ("tf32"). Empty where the vendor has no such unit.
std::string matrixInstruction(const std::string &architecture, const std::string &numerics);

/// The instructions of a code object's kernels, a line each.
Expected<std::string> disassemble(const DeviceImage &image);

} // namespace dovetail::test
