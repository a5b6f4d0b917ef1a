// SPDX-License-Identifier: Apache-2.0
//
// Thread counts that vendor libraries take from process- or thread-wide state. Set around a run and
// put back after it, in this one place.
#pragma once

#include <cstdint>

#include <omp.h>

namespace dovetail {

/// OpenMP teams started by this thread have `threads` members while this lives.
class ThreadScope {
public:
  ThreadScope(bool needed, uint32_t threads)
      : before(needed ? omp_get_max_threads() : 0), active(needed && before != int(threads)) {
    if (active)
      omp_set_num_threads(int(threads));
  }
  ~ThreadScope() {
    if (active)
      omp_set_num_threads(before);
  }
  ThreadScope(const ThreadScope &) = delete;
  ThreadScope &operator=(const ThreadScope &) = delete;

private:
  int before;
  bool active;
};

} // namespace dovetail
