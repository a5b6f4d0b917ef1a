// SPDX-License-Identifier: Apache-2.0
//
// What kernels whose blocks of threads share tiles will take on a device that nobody has asked: a
// roofline that knows their blocks.
#pragma once

#include <optional>

#include "codegen/schedule/contraction/DeviceProduct.h"
#include "device/DeviceDescription.h"

namespace dovetail::codegen {

/// What a device is given: equal blocks, each a tile of the result.
struct BlockWork {
  double blocks = 0, threads = 0; ///< threads of a block
  double sharedBytes = 0;         ///< of a block
  double registers = 0;           ///< of a thread, a guess
  double multiplyAdds = 0;        ///< of a block, what lies outside of the result included
  double tileBytes = 0;           ///< that a block brings in, mostly out of the level-2 cache
  double bytes = 0;               ///< of all operands and results, once
  const char *peak = "f32";       ///< see DeviceDescription::peakTeraops
  double efficiency = 1;          ///< part of that peak, with enough threads
  double threadsForPeak = 0;      ///< of a compute unit, that hide latency
};

/// Microseconds, launch included: the largest of three rooflines (Williams, Waterman, Patterson
/// 2009). Compute units take their blocks in turns, so that the busiest one decides; the blocks
/// that it has at once hide latency in proportion to their threads (Little's law). -1 where the
/// description has no such peak.
double blockMicros(const device::DeviceDescription &device, const BlockWork &work);

/// The product or convolution of a problem; nothing where it has none that native serves.
std::optional<DeviceProductSizes> deviceProductSizes(const ProblemReader &problem);
/// Of all operands and results.
double deviceOperandBytes(const ProblemReader &problem);

/// For a schedule of tiles or of attention; nothing for others, and where the peak is not known.
std::optional<double> deviceMicros(const ProblemReader &problem, const Machine &machine,
                                   const device::DeviceDescription &device,
                                   const Schedule &schedule);

} // namespace dovetail::codegen
