// SPDX-License-Identifier: Apache-2.0
//
// Large buffers start at a huge page and ask for huge pages: activations and weights are walked
// linearly, again and again. Only whole huge pages ask, so that the end of a buffer costs small
// ones.
#include "runtime/HostMemory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace dovetail {

namespace {

constexpr uint64_t kHugePage = uint64_t(1) << 21, kPage = 4096;

uint64_t roundUp(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// `bytes`, a multiple of a page, from the border of a huge page on; null where there are none.
void *mapAligned(uint64_t bytes) {
  uint64_t reserved = bytes + kHugePage - kPage;
  void *begin = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED)
    return nullptr;
  auto *first = static_cast<uint8_t *>(begin);
  auto *memory =
      reinterpret_cast<uint8_t *>(roundUp(reinterpret_cast<uintptr_t>(first), kHugePage));
  if (memory > first)
    ::munmap(first, memory - first);
  if (uint64_t rest = first + reserved - (memory + bytes))
    ::munmap(memory + bytes, rest);
  ::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

} // namespace

bool HostBuffer::reserve(uint64_t bytes) {
  bytes = std::max<uint64_t>(bytes, 1);
  if (memory && bytes <= capacity)
    return true;
  if (bytes > (uint64_t(1) << 47))
    return false;
  reset();
  isMapped = !allocator.allocate && bytes >= kHugePage;
  uint64_t rounded = roundUp(bytes, isMapped ? kPage : kTensorAlignment);
  if (allocator.allocate)
    memory = allocator.allocate(allocator.context, rounded,
                                bytes >= kHugePage ? kHugePage : kTensorAlignment);
  else
    memory = isMapped ? mapAligned(rounded) : std::aligned_alloc(kTensorAlignment, rounded);
  capacity = rounded;
  if (memory && reinterpret_cast<uintptr_t>(memory) % kTensorAlignment == 0)
    return true;
  reset();
  return false;
}

bool HostBuffer::reserveZero(uint64_t bytes) {
  reset();
  if (!reserve(bytes))
    return false;
  if (!isMapped) // what is mapped anew is zero, and stays unoccupied until it is touched
    std::memset(memory, 0, capacity);
  return true;
}

void HostBuffer::discardFrom(uint64_t used) {
  uint64_t begin = roundUp(used, kPage);
  if (isMapped && begin < capacity)
    ::madvise(data() + begin, capacity - begin, MADV_DONTNEED);
}

void HostBuffer::reset() {
  if (memory) {
    if (isMapped)
      ::munmap(memory, capacity);
    else if (!allocator.allocate)
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
  std::swap(isMapped, other.isMapped);
}

} // namespace dovetail
