// SPDX-License-Identifier: Apache-2.0
//
// What compiled kernels and the code that runs them agree on: the arguments of a kernel's phases,
// and the bytes in which a kernel travels from the compiler through plan caches and artifacts to
// the loader. A kernel is a sequence of phases; the tasks of one phase run in any order and in
// parallel, and all end before the next phase starts.
#pragma once

#include <cstdint>
#include <cstring>

namespace dovetail::codegen {

/// Handed to every phase. Emitted code reads these fields by offset, so their order is part of the
/// format.
struct KernelArgs {
  void *const
      *data; ///< problem inputs, then outputs; packed bytes stand in place of packed constants
  const int64_t
      *extents;    ///< all extents of the inputs, then of the outputs, one tensor after the other
  char *workspace; ///< shared by all workers, 64-byte aligned
  char *scratch;   ///< that of worker 0, 64-byte aligned
  int64_t scratchStride; ///< bytes from one worker's scratch to the next one's, a multiple of 64
};

/// Runs tasks [begin, end).
using PhaseFunction = void (*)(const KernelArgs *args, int64_t begin, int64_t end, int64_t worker);
/// Number of tasks of a phase whose count depends on run-time extents.
using CountFunction = int64_t (*)(const KernelArgs *args);

constexpr uint64_t kImageMagic = 0x4c4e52454b545644; // "DVTKERNL"
constexpr uint32_t kImageVersion = 1;
constexpr uint32_t kNoOffset = UINT32_MAX;
constexpr uint32_t kImageAlignment = 64;
constexpr uint32_t kImageVnni = 0x100; ///< beside the level in ImageHeader::isa

/// Kernel bytes: ImageHeader, phaseCount times ImagePhase, zeros up to codeOffset, then codeBytes
/// of position- independent code and read-only data that refer to nothing outside themselves.
struct ImageHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t isa; ///< see Isa::Level, and kImageVnni; the processor must have at least this
  uint32_t phaseCount;
  uint32_t codeOffset; ///< a multiple of kImageAlignment
  uint64_t codeBytes;
  uint64_t workspaceBytes; ///< shared by all workers
  uint64_t scratchBytes;   ///< for each worker
  uint64_t checksum;       ///< imageChecksum() of everything else
};

struct ImagePhase {
  uint32_t function;   ///< offset of a PhaseFunction in the code
  uint32_t count;      ///< offset of a CountFunction in the code, or kNoOffset
  int64_t staticCount; ///< number of tasks where `count` is kNoOffset
};

/// Of the header, its checksum taken as 0, and the `size` bytes after it. Finds damage, not malice.
inline uint64_t imageChecksum(const uint8_t *bytes, uint64_t size, uint64_t start) {
  uint64_t sum = start + size * 0x9e3779b97f4a7c15;
  for (uint64_t i = 0; i < size; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
    sum = (sum ^ word) * 0xff51afd7ed558ccd;
    sum ^= sum >> 32;
  }
  return sum;
}
inline uint64_t imageChecksum(ImageHeader header, const uint8_t *rest, uint64_t size) {
  header.checksum = 0;
  return imageChecksum(
      rest, size, imageChecksum(reinterpret_cast<const uint8_t *>(&header), sizeof(header), 0));
}

} // namespace dovetail::codegen
