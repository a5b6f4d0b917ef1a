// SPDX-License-Identifier: Apache-2.0
//
// Where a kernel's packed constants lie: in memory that the host lends to prepare, so that those of
// a whole model stand side by side, or else in the kernel's own. Also tells the host how long
// packing took. Shared by providers, header-only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "dovetail/provider.h"

namespace dovetail::providers {

/// Whether a host that may be older filled in the field that ends at byte `end`.
inline bool states(const dvt_prepare_args *args, size_t end) {
  return args && args->struct_size >= end;
}

/// Owns what the host does not.
class PackedMemory {
public:
  /// `bytes` zero bytes aligned to 64, which live as long as this and the kernel; null where there
  /// are none. `args` are those of the prepare under way.
  void *take(const dvt_prepare_args *args, uint64_t bytes) {
    constexpr size_t end = offsetof(dvt_prepare_args, allocate) + sizeof(args->allocate);
    if (states(args, end) && args->allocate)
      return args->allocate(args->memory_context, bytes);
    if (bytes > UINT64_MAX / 2)
      return nullptr;
    const uint64_t rounded = bytes ? (bytes + 63) / 64 * 64 : 64;
    void *memory = std::aligned_alloc(64, rounded);
    if (!memory)
      return nullptr;
    std::memset(memory, 0, rounded);
    owned.emplace_back(memory, std::free);
    return memory;
  }

private:
  std::vector<std::unique_ptr<void, void (*)(void *)>> owned;
};

/// Adds the time it lives to what the host wants to know about packing.
class PackingClock {
public:
  explicit PackingClock(const dvt_prepare_args *args) {
    constexpr size_t end = offsetof(dvt_prepare_args, packing_micros) + sizeof(double *);
    if (states(args, end))
      micros = args->packing_micros;
    if (micros)
      start = std::chrono::steady_clock::now();
  }
  ~PackingClock() {
    if (micros)
      *micros += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                     .count();
  }
  PackingClock(const PackingClock &) = delete;
  PackingClock &operator=(const PackingClock &) = delete;

private:
  double *micros = nullptr;
  std::chrono::steady_clock::time_point start;
};

} // namespace dovetail::providers
