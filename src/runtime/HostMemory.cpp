// SPDX-License-Identifier: Apache-2.0
//
// Large buffers start at a huge page and ask for huge pages: activations are walked linearly, again
// and again.
#include "runtime/HostMemory.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <sys/mman.h>

namespace dovetail {

namespace {

constexpr uint64_t kHugePage = uint64_t(1) << 21;

uint64_t alignmentFor(uint64_t bytes) { return bytes >= kHugePage ? kHugePage : kTensorAlignment; }

} // namespace

bool HostBuffer::reserve(uint64_t bytes) {
  bytes = std::max<uint64_t>(bytes, 1);
  if (memory && bytes <= capacity)
    return true;
  if (bytes > (uint64_t(1) << 47))
    return false;
  reset();
  uint64_t alignment = alignmentFor(bytes);
  uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (allocator.allocate)
    memory = allocator.allocate(allocator.context, rounded, alignment);
  else
    memory = std::aligned_alloc(alignment, rounded);
  if (!memory || reinterpret_cast<uintptr_t>(memory) % kTensorAlignment != 0) {
    capacity = rounded;
    reset();
    return false;
  }
  capacity = rounded;
  if (!allocator.allocate && alignment == kHugePage)
    ::madvise(memory, rounded, MADV_HUGEPAGE);
  return true;
}

void HostBuffer::reset() {
  if (memory) {
    if (!allocator.allocate)
      std::free(memory);
    else if (allocator.release)
      allocator.release(allocator.context, memory, capacity);
  }
  memory = nullptr;
  capacity = 0;
}

void HostBuffer::swap(HostBuffer &other) noexcept {
  std::swap(allocator, other.allocator);
  std::swap(memory, other.memory);
  std::swap(capacity, other.capacity);
}

} // namespace dovetail
