// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "plan/KernelResources.h"

#include <algorithm>

#include "support/DeviceKernel.h"

namespace dovetail::plan {

void takeResources(std::span<const uint8_t> kernel, Candidate &candidate) {
  if (!DeviceKernel::recognises(kernel))
    return;
  auto parsed = DeviceKernel::parse(kernel);
  if (!parsed)
    return; // whoever loads it says so
  for (const DeviceImage &image : parsed->images)
    for (const DeviceResources &one : image.resources) {
      candidate.registers = std::max(candidate.registers, one.registers);
      candidate.sharedBytes = std::max(candidate.sharedBytes, one.sharedBytes);
      candidate.scratchBytes = std::max(candidate.scratchBytes, one.spillBytes);
    }
}

} // namespace dovetail::plan
