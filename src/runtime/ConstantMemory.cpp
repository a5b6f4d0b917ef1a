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

ConstantMemory::Share ConstantMemory::reserve(uint64_t bytes) {
  std::lock_guard guard(mutex);
  Share share;
  uint64_t block = bytes ? blockBytes(bytes) : 0;
  if (block > regionBytes - used)
    return share;
  share.place = region.data() + used;
  share.left = block;
  used += block;
  return share;
}

void *ConstantMemory::take(uint64_t bytes, Share &share) {
  uint64_t block = blockBytes(bytes);
  if (block > share.left)
    return take(bytes);
  void *place = share.place;
  share.place += block;
  share.left -= block;
  return place;
}

void *ConstantMemory::take(uint64_t bytes) {
  std::lock_guard guard(mutex);
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
