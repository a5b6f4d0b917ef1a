// SPDX-License-Identifier: Apache-2.0
//
// The parallel-for that kernels use where the host program brings none of its own: an OpenMP team
// with a static split.
#pragma once

#include <cstdint>

#include "dovetail/provider.h"

namespace dovetail {

/// Lends a dvt_parallel; must outlive its users and stay where it is.
class ParallelFor {
public:
  /// `threads` 0 is taken as 1.
  explicit ParallelFor(uint32_t threads);
  ParallelFor(const ParallelFor &) = delete;
  ParallelFor &operator=(const ParallelFor &) = delete;
  const dvt_parallel *get() const { return &parallel; }

private:
  dvt_parallel parallel;
};

} // namespace dovetail
