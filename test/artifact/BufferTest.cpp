// SPDX-License-Identifier: Apache-2.0
//
// Placing buffers: apart when alive together, aligned, repeatable, and small where the best answer
// is known.
#include <random>

#include <gtest/gtest.h>

#include "artifact/BlockMemory.h"
#include "artifact/BufferAssignment.h"

using namespace dovetail;

namespace {

TEST(Buffers, ApartWhenAliveTogether) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<BufferRequest> requests(random() % 60);
    uint64_t most = 0, total = 0;
    for (BufferRequest &r : requests) {
      r.bytes = random() % 5000;
      r.first = random() % 30;
      r.last = r.first + random() % 6;
      total += (r.bytes + 63) / 64 * 64;
    }
    BufferAssignment a = assignBuffers(requests);
    ASSERT_EQ(a.offsets.size(), requests.size());
    for (uint32_t step = 0; step < 40; ++step) {
      uint64_t alive = 0;
      for (const BufferRequest &r : requests)
        if (r.first <= step && step <= r.last)
          alive += (r.bytes + 63) / 64 * 64;
      most = std::max(most, alive);
    }
    EXPECT_GE(a.arenaBytes, most);
    EXPECT_LE(a.arenaBytes, total);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(a.offsets[i] % 64, 0u);
      EXPECT_LE(a.offsets[i] + requests[i].bytes, a.arenaBytes);
      for (size_t k = 0; k < i; ++k)
        if (requests[i].first <= requests[k].last && requests[k].first <= requests[i].last &&
            requests[i].bytes && requests[k].bytes) {
          EXPECT_TRUE(a.offsets[i] + requests[i].bytes <= a.offsets[k] ||
                      a.offsets[k] + requests[k].bytes <= a.offsets[i]);
        }
    }
    EXPECT_EQ(assignBuffers(requests).offsets, a.offsets);
  }
}

TEST(Buffers, AChainNeedsTwo) {
  std::vector<BufferRequest> requests;
  for (uint32_t i = 0; i < 50; ++i)
    requests.push_back({1000, i, i + 1});
  EXPECT_EQ(assignBuffers(requests).arenaBytes, 2 * 1024u);
  EXPECT_EQ(assignBuffers({}).arenaBytes, 0u);
}

TEST(Buffers, ViewsLengthenLives) {
  PlanBlock block;
  block.values.resize(3);
  block.values[1].storage = Storage::Alias;
  block.values[1].index = 0;
  block.steps.resize(3);
  block.steps[0].outputs = {0};
  block.steps[1].outputs = {2};
  block.steps[2].inputs = {1};
  auto lives = arenaLifetimes(block);
  EXPECT_EQ(lives[0].first, 0u);
  EXPECT_EQ(lives[0].last, 2u);
  EXPECT_GT(lives[1].first, lives[1].last);
  block.outputs = {1};
  EXPECT_EQ(arenaLifetimes(block)[0].last, 3u);
}

TEST(Buffers, PhysicalBytes) {
  PlanValue value;
  value.extents = {2, 20, 3};
  EXPECT_EQ(physicalBytes(value), 480u);
  value.layout = "aBc16b";
  EXPECT_EQ(physicalBytes(value), 2u * 32 * 3 * 4);
  EXPECT_EQ(checkedBytes(DVT_F32, {int64_t(1) << 40, int64_t(1) << 40}, Layout()), std::nullopt);
  EXPECT_EQ(checkedBytes(DVT_F32, {-1}, Layout()), std::nullopt);
}

} // namespace
