// SPDX-License-Identifier: Apache-2.0
//
// Aligned host memory from the host program's allocator, or from the system where it names none.
#pragma once

#include <cstdint>

namespace dovetail {

struct HostAllocator {
  void *context = nullptr;
  /// Memory of `bytes` bytes aligned to `alignment`, or null.
  void *(*allocate)(void *context, uint64_t bytes, uint64_t alignment) = nullptr;
  void (*release)(void *context, void *memory, uint64_t bytes) = nullptr;
};

constexpr uint64_t kTensorAlignment = 64;

/// Memory that grows and never shrinks. Growing loses the content.
class HostBuffer {
public:
  HostBuffer() = default;
  explicit HostBuffer(const HostAllocator &allocator) : allocator(allocator) {}
  ~HostBuffer() { reset(); }
  HostBuffer(HostBuffer &&other) noexcept { swap(other); }
  HostBuffer &operator=(HostBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  /// At least `bytes` bytes, at least one; false where there is no memory.
  [[nodiscard]] bool reserve(uint64_t bytes);
  /// The same in new memory, all of it zero.
  [[nodiscard]] bool reserveZero(uint64_t bytes);
  /// Gives back to the system what lies beyond `used` bytes, where it came from there. It stays
  /// usable and reads as zero.
  void discardFrom(uint64_t used);
  void reset();
  void swap(HostBuffer &other) noexcept;
  uint8_t *data() const { return static_cast<uint8_t *>(memory); }
  uint64_t size() const { return capacity; }

private:
  HostAllocator allocator;
  void *memory = nullptr;
  uint64_t capacity = 0;
  bool isMapped = false; ///< straight from the system, from the border of a huge page on
};

} // namespace dovetail
