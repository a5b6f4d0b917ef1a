// SPDX-License-Identifier: Apache-2.0
//
// The calls for memory that is given and taken back in the order of a stream's work, which both
// drivers have alike. Drivers may lack them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/DriverLibrary.h"

namespace dovetail::device {

struct StreamTag;
struct PoolTag;

/// As both drivers take them; what follows the location must be zero.
struct PoolProperties {
  int32_t allocation = 1; ///< memory that stays where it is
  int32_t handles = 0;    ///< none to share it with other processes
  int32_t location = 1;   ///< a device
  int32_t device = 0;
  uint64_t rest[9] = {};
};

struct PoolCalls {
  static constexpr int kKeptBytes = 4; ///< attribute, of 64 bits: what is not given back at once
  int (*create)(PoolTag **pool, const PoolProperties *properties) = nullptr;
  int (*setAttribute)(PoolTag *pool, int attribute, void *value) = nullptr;
  int (*allocate)(uint64_t *address, size_t bytes, PoolTag *pool, StreamTag *stream) = nullptr;
  int (*free)(uint64_t address, StreamTag *stream) = nullptr;
  int (*trim)(PoolTag *pool, size_t leastBytes) = nullptr;
  int (*destroy)(PoolTag *pool) = nullptr;

  /// By their names in the library, in this order; all null where it lacks one.
  static PoolCalls of(const DriverLibrary &library, const std::array<const char *, 6> &names);
};

} // namespace dovetail::device
