// SPDX-License-Identifier: Apache-2.0
//
// What schedules and emission need to know of a dvt_target: the instruction set as a level with its
// vector width and register count, the number of threads and the cache sizes. Only levels that
// native code is written for exist; the target's further features change nothing, so that kernels
// and candidates are the same across such machines.
#pragma once

#include <cstdint>
#include <string>

#include "dovetail/provider.h"
#include "support/Expected.h"

namespace dovetail::codegen {

struct Isa {
  enum Level : uint32_t { Avx2 = 1, Avx512 = 2, Neon = 16 };
  Level level = Avx2;
  unsigned f32Lanes = 8; ///< of the widest vectors used
  unsigned vectorRegisters = 16;
  bool vnni = false; ///< sums of four products of bytes by one instruction, at vectors of any width
  double leftCycles = 0.5;  ///< to bring an element of a tile's left side into all lanes
  const char *name() const; ///< "avx2", "avx512", "neon"
};

struct Machine {
  Isa isa;
  unsigned threads = 1;
  uint64_t l1Bytes = 32 << 10, l2Bytes = 1 << 20, l3Bytes = 16 << 20;

  /// A guess of the time to move so many bytes through whichever cache holds them.
  double memoryMicros(double bytes) const;

  /// Unavailable, with the reason, for a device or processor that native code cannot serve.
  static Expected<Machine> of(const dvt_target &target);
};

/// Whether the processor this runs on has the instructions of `level`, and with `vnni` those, too.
bool hostSupports(Isa::Level level, bool vnni = false);

} // namespace dovetail::codegen
