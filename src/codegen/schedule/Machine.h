// SPDX-License-Identifier: Apache-2.0
//
// What schedules and emission need to know of a dvt_target: the instruction set as a level with its
// vector width and register count, the number of threads and the cache sizes. Only levels that
// native code is written for exist; the target's further features change nothing, so that kernels
// and candidates are the same across such machines. On a device a task is what one thread does, or
// one block of threads, and vectors have a single lane.
#pragma once

#include <cstdint>
#include <string>

#include "dovetail/provider.h"
#include "support/Expected.h"

namespace dovetail::codegen {

struct Isa {
  enum Level : uint32_t {
    Avx2 = 1,
    Avx512 = 2,
    Neon = 16,
    Sm80 = 32,
    Sm90,
    Sm100,
    Gfx90a = 48,
    Gfx942,
  };
  Level level = Avx2;
  unsigned f32Lanes = 8; ///< of the widest vectors used
  unsigned vectorRegisters = 16;
  bool vnni = false; ///< sums of four products of bytes by one instruction, at vectors of any width
  double leftCycles = 0.5;  ///< to bring an element of a tile's left side into all lanes
  const char *name() const; ///< "avx2", "avx512", "neon", "sm_90", "gfx942"
  bool isCuda() const { return level >= Sm80 && level <= Sm100; }
  bool isRocm() const { return level >= Gfx90a && level <= Gfx942; }
  bool isDevice() const { return isCuda() || isRocm(); }
};

struct Machine {
  Isa isa;
  unsigned threads = 1; ///< of a device: cores of a CPU that multiply and add as much
  uint64_t l1Bytes = 32 << 10, l2Bytes = 1 << 20, l3Bytes = 16 << 20;

  bool isDevice() const { return isa.isDevice(); }
  unsigned blockThreads = 256; ///< of a device, where a kernel has no reason for another number
  double bytesPerMicro = 0;    ///< of a device's memory
  double launchMicros = 0;     ///< of a device
  /// What starting a kernel takes: handing out tasks, or a launch.
  double startMicros() const { return isDevice() ? launchMicros : 0.5; }
  /// Elements of a task, and what chunks are multiples of: those of a CPU, or 1.
  double grain(double elements) const { return isDevice() ? 1 : elements; }
  int64_t chunkStep(int64_t elements) const { return isDevice() ? 1 : elements; }

  /// A guess of the time to move so many bytes through whichever cache holds them.
  double memoryMicros(double bytes) const;

  /// Unavailable, with the reason, for a device or processor that native code cannot serve.
  static Expected<Machine> of(const dvt_target &target);
};

/// Whether the processor this runs on has the instructions of `level`, and with `vnni` those, too.
bool hostSupports(Isa::Level level, bool vnni = false);

} // namespace dovetail::codegen
