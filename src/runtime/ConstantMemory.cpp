// SPDX-License-Identifier: Apache-2.0
//
// Blocks are cut off the region one after the other and never given back singly.
#include "runtime/ConstantMemory.h"

#include <algorithm>

namespace dovetail {

ConstantMemory::ConstantMemory(const HostAllocator &allocator, uint64_t bytes)
    : allocator(allocator), region(allocator) {
  // Without the region every block is one of its own.
  if (bytes > 0 && region.reserveZero(bytes))
    regionBytes = bytes;
}

uint64_t ConstantMemory::blockBytes(uint64_t bytes) {
  bytes = std::max<uint64_t>(bytes, 1);
  return bytes > UINT64_MAX - kTensorAlignment
             ? bytes
             : (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

void *ConstantMemory::take(uint64_t bytes) {
  uint64_t block = blockBytes(bytes);
  if (block <= regionBytes - used) {
    void *place = region.data() + used;
    used += block;
    return place;
  }
  HostBuffer &own = others.emplace_back(allocator);
  if (!own.reserveZero(bytes)) {
    others.pop_back();
    return nullptr;
  }
  return own.data();
}

} // namespace dovetail
