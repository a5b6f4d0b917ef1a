// SPDX-License-Identifier: Apache-2.0
//
// Bounds on memory as people write them, and what they come to for a plan.
#include <gtest/gtest.h>

#include "plan/Planner.h"

namespace dovetail::plan {
namespace {

TEST(MemoryBound, readsSizes) {
  using Kind = MemoryBound::Kind;
  for (auto [text, bytes] :
       {std::pair{"1", uint64_t(1)}, std::pair{"200MiB", uint64_t(200) << 20},
        std::pair{"3KiB", uint64_t(3) << 10}, std::pair{"1048576GiB", uint64_t(1) << 50}}) {
    auto bound = MemoryBound::parse(text);
    ASSERT_TRUE(bound) << text;
    EXPECT_EQ(bound->kind, Kind::Bytes) << text;
    EXPECT_EQ(bound->bytes, bytes) << text;
  }
  auto none = MemoryBound::parse("none");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->of({}), UINT64_MAX);
  for (const char *text : {"", "0", "-1", "1.5MiB", "MiB", "12 MiB", "12MB", "1048577GiB", "all",
                           "18446744073709551616", "99999999999999999GiB"}) {
    auto bound = MemoryBound::parse(text);
    ASSERT_FALSE(bound) << text;
    EXPECT_EQ(bound.error().kind, ErrorKind::BadInput) << text;
    EXPECT_NE(bound.error().message.find("200MiB"), std::string::npos) << text;
  }
}

TEST(MemoryBound, isAShareOfWeightsAndArena) {
  PlanMemory memory;
  memory.weights = 100 << 20;
  memory.arena = 10 << 20;
  EXPECT_EQ(MemoryBound{}.of(memory), (uint64_t(143) << 20) - MemoryBound::kOwnBytes);
  EXPECT_EQ(MemoryBound{}.of({}), MemoryBound::kLeastShare);
}

} // namespace
} // namespace dovetail::plan
