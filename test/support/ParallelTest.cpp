// SPDX-License-Identifier: Apache-2.0
//
// Every index once, workers below the thread count, one item inline.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/Parallel.h"

using namespace dovetail;

TEST(Parallel, CoversEveryIndexOnce) {
  for (uint32_t threads : {0u, 1u, 2u, 3u, 7u})
    for (int64_t count : {0, 1, 2, 5, 100}) {
      ParallelFor parallel(threads);
      struct Context {
        std::vector<std::atomic<int>> hits;
        std::atomic<uint32_t> highest{0};
      } context{std::vector<std::atomic<int>>(count), 0};
      const dvt_parallel *p = parallel.get();
      p->run(
          p->context, count,
          [](void *opaque, int64_t begin, int64_t end, uint32_t worker) {
            auto &c = *static_cast<Context *>(opaque);
            for (int64_t i = begin; i < end; ++i)
              ++c.hits[i];
            uint32_t seen = c.highest;
            while (seen < worker && !c.highest.compare_exchange_weak(seen, worker))
              ;
          },
          &context);
      for (auto &hit : context.hits)
        EXPECT_EQ(hit, 1);
      EXPECT_LT(context.highest, p->threads);
    }
}

TEST(Parallel, OneItemRunsInline) {
  ParallelFor parallel(4);
  std::thread::id where;
  parallel.get()->run(
      parallel.get()->context, 1,
      [](void *out, int64_t, int64_t, uint32_t) {
        *static_cast<std::thread::id *>(out) = std::this_thread::get_id();
      },
      &where);
  EXPECT_EQ(where, std::this_thread::get_id());
}
