// SPDX-License-Identifier: Apache-2.0
//
// The calls for recorded work, which both drivers have alike. Drivers may lack them.
#pragma once

#include <array>

#include "device/DriverLibrary.h"

namespace dovetail::device {

struct StreamTag;
struct GraphTag;

struct GraphCalls {
  static constexpr int kOfThread = 1; ///< mode: other threads work on, and are not recorded
  int (*beginCapture)(StreamTag *stream, int mode) = nullptr;
  int (*endCapture)(StreamTag *stream, void **recorded) = nullptr;
  int (*launch)(GraphTag *graph, StreamTag *stream) = nullptr;
  int (*destroy)(GraphTag *graph) = nullptr;
  int (*destroyRecorded)(void *recorded) = nullptr;
  int (*isCapturing)(StreamTag *stream, int *status) = nullptr; ///< 0: it is not

  /// By their names in the library, in this order; all null where it lacks one.
  static GraphCalls of(const DriverLibrary &library, const std::array<const char *, 6> &names);
};

} // namespace dovetail::device
