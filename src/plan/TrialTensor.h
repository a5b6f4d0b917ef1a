// SPDX-License-Identifier: Apache-2.0
//
// Memory of a trial: aligned buffers between guard zones, seeded noise, and comparison with the
// truth.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/Layout.h"
#include "support/Problem.h"

namespace dovetail::plan {

/// 64-byte aligned memory with a page of a known pattern before and behind it.
class GuardedBuffer {
public:
  explicit GuardedBuffer(uint64_t bytes);
  uint8_t *data() const { return start; }
  uint64_t size() const { return bytes; }
  /// Whether nobody wrote beside the buffer.
  bool intact() const;
  /// The buffer with what guards it, to be copied elsewhere and back.
  uint8_t *whole() const { return memory.get(); }
  uint64_t wholeBytes() const { return (bytes + 63) / 64 * 64 + 2 * kGuardBytes; }
  static constexpr uint64_t kGuardBytes = 4096; ///< before the buffer and behind it

private:
  uint64_t bytes;
  std::unique_ptr<uint8_t, void (*)(void *)> memory;
  uint8_t *start;
};

/// Zero-filled memory for the packed constants of one kernel. In huge pages where it is large, as a
/// session's is: reading it once takes half again as long in small ones.
class PackedBlocks {
public:
  /// 64-byte aligned; null where there is none left.
  void *take(uint64_t bytes);

private:
  struct Unmap {
    uint64_t bytes;
    void operator()(void *memory) const;
  };
  std::vector<std::unique_ptr<void, Unmap>> blocks;
};

/// Elements from the first to the last one of a tensor with strides, none of them negative.
int64_t stridedSpan(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides);
/// Copies between dense row-major memory and memory with strides, to the latter or from it.
void scatter(dvt_type type, const std::vector<int64_t> &extents,
             const std::vector<int64_t> &strides, const void *dense, void *strided);
void gather(dvt_type type, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides,
            const void *strided, void *dense);

/// Noise for a value, row-major, the same for the same seed: floats in [-1, 1), integers 0 or 1
/// (valid as indices of any extent above one; those of 4 bits, which are no indices, of any value),
/// booleans.
std::vector<uint8_t> noise(dvt_type type, int64_t elements, uint64_t seed);

/// Multiplies elements of f32 or f64; others stay as they are.
void scaleNoise(dvt_type type, std::vector<uint8_t> &bytes, double factor);

/// Sets the lowest bit of integers of whole bytes, so that none is zero; others stay as they are.
void makeIntegersOdd(dvt_type type, std::vector<uint8_t> &bytes);

/// Largest absolute difference over the largest finite magnitude of `truth`; infinity where one is
/// NaN or infinite and the other is not alike. Integers and booleans: 0 when equal, infinity
/// otherwise.
double relativeDifference(dvt_type type, const void *truth, const void *found, int64_t elements);

/// Extents under values of symbols; nothing where one is not known.
std::optional<std::vector<int64_t>> extentsUnder(const ProblemValue &value,
                                                 const SymbolValues &symbols);

} // namespace dovetail::plan
