// SPDX-License-Identifier: Apache-2.0
//
// One parallel region for each call; a single item or a single thread runs inline, without a team.
#include "support/Parallel.h"

#include <algorithm>

#include <omp.h>

namespace dovetail {

namespace {

void run(void *context, int64_t count,
         void (*body)(void *argument, int64_t begin, int64_t end, uint32_t worker),
         void *argument) {
  if (count <= 0)
    return;
  int64_t threads = std::min<int64_t>(static_cast<const dvt_parallel *>(context)->threads, count);
  if (threads <= 1) {
    body(argument, 0, count, 0);
    return;
  }
#pragma omp parallel num_threads(int(threads))
  {
    // The team may be smaller than asked for, inside another region for instance.
    int64_t team = omp_get_num_threads(), worker = omp_get_thread_num();
    int64_t share = count / team, rest = count % team;
    int64_t begin = worker * share + std::min(worker, rest);
    int64_t end = begin + share + (worker < rest);
    if (begin < end)
      body(argument, begin, end, uint32_t(worker));
  }
}

} // namespace

ParallelFor::ParallelFor(uint32_t threads)
    : parallel{sizeof(dvt_parallel), std::max(threads, 1u), &parallel, run} {}

} // namespace dovetail
