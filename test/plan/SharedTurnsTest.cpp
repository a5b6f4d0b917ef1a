// SPDX-License-Identifier: Apache-2.0
//
// Fair turns, against orders worked out by hand.
#include "plan/SharedTurns.h"

#include <gtest/gtest.h>

namespace dovetail::plan {
namespace {

/// Takes what is left; each work takes as long as it was said to.
std::vector<size_t> orderOf(SharedTurns &turns, const std::vector<double> &costs) {
  std::vector<size_t> order;
  while (auto work = turns.next()) {
    order.push_back(*work);
    turns.spend(*work, costs[*work]);
  }
  return order;
}

TEST(SharedTurns, NothingToDo) { EXPECT_FALSE(SharedTurns().next()); }

TEST(SharedTurns, OnePartyGoesByCost) {
  SharedTurns turns;
  const std::vector<double> costs{3, 1, 2, 1};
  for (double cost : costs)
    turns.add(cost, {0});
  EXPECT_EQ(orderOf(turns, costs), (std::vector<size_t>{1, 3, 2, 0}));
}

TEST(SharedTurns, CheapWorkOfOneDoesNotHoldUpAnother) {
  SharedTurns turns;
  const std::vector<double> costs{1, 1, 1, 1, 1, 5, 6};
  for (double cost : costs)
    turns.add(cost, {cost > 1 ? size_t(1) : size_t(0)});
  // After its first piece of five, party 1 waits until party 0 has had as much.
  EXPECT_EQ(orderOf(turns, costs), (std::vector<size_t>{0, 5, 1, 2, 3, 4, 6}));
}

TEST(SharedTurns, SharedWorkIsDoneOnceAndPaidByAll) {
  SharedTurns turns;
  const std::vector<double> costs{4, 3, 3};
  turns.add(costs[0], {0, 1});
  turns.add(costs[1], {0});
  turns.add(costs[2], {2});
  EXPECT_EQ(orderOf(turns, costs), (std::vector<size_t>{1, 2, 0}));
}

TEST(SharedTurns, WhatItTookCountsNotWhatWasSaid) {
  SharedTurns turns;
  for (size_t i = 0; i < 4; ++i)
    turns.add(1, {i / 2});
  EXPECT_EQ(turns.next(), 0u);
  turns.spend(0, 100);
  EXPECT_EQ(turns.next(), 2u);
  turns.spend(2, 1);
  EXPECT_EQ(turns.next(), 3u);
}

TEST(SharedTurns, WorkUnderWayCountsAsItGoes) {
  SharedTurns turns;
  for (size_t i = 0; i < 6; ++i)
    turns.add(i < 3 ? 100 : 1, {i / 3});
  EXPECT_EQ(turns.next(0), 3u); // the cheapest
  turns.spend(3, 1);
  EXPECT_EQ(turns.next(1), 0u);
  EXPECT_EQ(turns.next(1.5), 1u); // party 0 has had half a second so far
  EXPECT_EQ(turns.next(2), 4u);   // and now more than the other
}

} // namespace
} // namespace dovetail::plan
