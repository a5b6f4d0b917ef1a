// SPDX-License-Identifier: Apache-2.0
//
// Host memory: borders of huge pages, what is touched, zeroes, and the region of packed constants.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/ConstantMemory.h"

using namespace dovetail;

namespace {

constexpr uint64_t kMegabyte = uint64_t(1) << 20;

/// Bytes of [memory, memory + bytes), both whole pages, that occupy memory.
uint64_t residentBytes(void *memory, uint64_t bytes) {
  uint64_t page = ::sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages(bytes / page);
  EXPECT_EQ(::mincore(memory, bytes, pages.data()), 0);
  return page * std::count_if(pages.begin(), pages.end(), [](auto flags) { return flags & 1; });
}

TEST(HostMemory, LargeBuffersBeginAtHugePagesAndEndAtSmallOnes) {
  HostBuffer buffer;
  ASSERT_TRUE(buffer.reserve(5 * kMegabyte + 100));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2 * kMegabyte), 0u);
  EXPECT_EQ(buffer.size(), 5 * kMegabyte + 4096);
  buffer.data()[5 * kMegabyte] = 1;
  EXPECT_EQ(residentBytes(buffer.data(), buffer.size()), 4096u);
  std::memset(buffer.data(), 1, buffer.size());
  buffer.discardFrom(4 * kMegabyte + 1);
  EXPECT_EQ(residentBytes(buffer.data(), buffer.size()), 4 * kMegabyte + 4096);
  EXPECT_EQ(buffer.data()[5 * kMegabyte], 0);
  EXPECT_EQ(buffer.data()[4 * kMegabyte], 1);
}

TEST(HostMemory, SmallBuffersAreNotRoundedUp) {
  HostBuffer buffer;
  ASSERT_TRUE(buffer.reserve(300000));
  EXPECT_LT(buffer.size(), 300000 + kTensorAlignment);
  EXPECT_FALSE(buffer.reserve(UINT64_MAX));
}

TEST(ConstantMemory, SharesKeepTheirOrderWhoeverTakesFirst) {
  ConstantMemory memory({}, 4 * kMegabyte);
  ConstantMemory::Share first = memory.reserve(kMegabyte), second = memory.reserve(1000),
                        none = memory.reserve(4 * kMegabyte);
  auto *later = static_cast<uint8_t *>(memory.take(1000, second));
  auto *earlier = static_cast<uint8_t *>(memory.take(kMegabyte, first));
  ASSERT_TRUE(earlier && later);
  EXPECT_EQ(later - earlier, int64_t(kMegabyte));
  // What a share lacks comes from behind all shares, and then from elsewhere.
  auto *behind = static_cast<uint8_t *>(memory.take(100, second));
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind - later, 1024);
  auto *beyond = static_cast<uint8_t *>(memory.take(4 * kMegabyte, none));
  ASSERT_TRUE(beyond);
  EXPECT_TRUE(beyond + 4 * kMegabyte <= earlier || beyond >= earlier + 4 * kMegabyte);
  EXPECT_EQ(beyond[0] + beyond[4 * kMegabyte - 1] + later[999] + behind[99], 0);
}

TEST(ConstantMemory, BlocksOfTheRegionLieSideBySide) {
  ConstantMemory memory({},
                        ConstantMemory::blockBytes(100) + ConstantMemory::blockBytes(kMegabyte));
  auto *first = static_cast<uint8_t *>(memory.take(100));
  auto *second = static_cast<uint8_t *>(memory.take(kMegabyte));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second - first, 128);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kTensorAlignment, 0u);
  auto *beyond = static_cast<uint8_t *>(memory.take(1));
  ASSERT_TRUE(beyond);
  EXPECT_TRUE(beyond < first || beyond >= second + kMegabyte);
  memory.trim();
  EXPECT_EQ(memory.take(UINT64_MAX), nullptr);
}

TEST(ConstantMemory, ComesZeroFromTheHostsAllocatorAndGoesBack) {
  int64_t held = 0;
  HostAllocator allocator{&held,
                          [](void *context, uint64_t bytes, uint64_t alignment) {
                            *static_cast<int64_t *>(context) += int64_t(bytes);
                            uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
                            return std::memset(std::aligned_alloc(alignment, rounded), 7, rounded);
                          },
                          [](void *context, void *memory, uint64_t bytes) {
                            *static_cast<int64_t *>(context) -= int64_t(bytes);
                            std::free(memory);
                          }};
  {
    ConstantMemory memory(allocator, 1000);
    for (uint64_t bytes : {500, 3000}) {
      auto *block = static_cast<uint8_t *>(memory.take(bytes));
      ASSERT_TRUE(block);
      EXPECT_TRUE(std::all_of(block, block + bytes, [](uint8_t byte) { return byte == 0; }));
    }
    EXPECT_GE(held, 4000);
  }
  EXPECT_EQ(held, 0);
}

} // namespace
