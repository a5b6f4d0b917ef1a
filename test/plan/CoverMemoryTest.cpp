// SPDX-License-Identifier: Apache-2.0
//
// Covers within a bound on memory against trying every subset of options.
#include <random>

#include <gtest/gtest.h>

#include "CoverCases.h"
#include "plan/CoverMemory.h"

namespace dovetail::plan {
namespace {

constexpr double kSlack = 0.051; // the program's gap, in microseconds

/// Memory for a graph's options: packed constants, code that some share, two providers.
void addMemory(CoverProblem &problem, std::mt19937 &random) {
  auto upTo = [&](uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(0, most)(random);
  };
  auto memory = [&] {
    CoverMemory made;
    made.bytes = 100 * uint64_t(upTo(5));
    if (upTo(1) == 0)
      made.code = {upTo(2), 50};
    if (upTo(2) == 0)
      made.process = {upTo(1), upTo(1) == 0 ? 100u : 400u};
    return made;
  };
  for (CoverOption &option : problem.options)
    option.memory = memory();
}

TEST(CoverMemory, sharedPartsCountOnceAndTheLargest) {
  CoverProblem problem;
  problem.options.resize(3);
  problem.options[0].memory = {10, {7, 100}, {0, 1000}};
  problem.options[1].memory = {20, {7, 100}, {0, 4000}};
  problem.options[2].memory = {40, {8, 200}, {1, 8000}};
  CoverSolution solution;
  solution.options = {0, 1};
  EXPECT_EQ(memoryOf(problem, solution), 10u + 20 + 100 + 4000);
  solution.options = {0, 1, 2};
  EXPECT_EQ(memoryOf(problem, solution), 10u + 20 + 40 + 300 + 12000);
}

TEST(CoverMemory, equalsExhaustiveSearch) {
  std::mt19937 random(41);
  unsigned bounded = 0;
  for (int i = 0; i < 60; ++i) {
    CoverProblem problem = randomGraph(random);
    if (problem.options.size() > 14)
      continue;
    addMemory(problem, random);
    struct Cover {
      std::pair<uint64_t, double> weight;
      uint64_t bytes;
    };
    std::vector<Cover> covers;
    for (unsigned mask = 0; mask < 1u << problem.options.size(); ++mask) {
      CoverSolution solution;
      auto weight = weightOfSubset(problem, mask, &solution);
      if (weight.first != UINT64_MAX)
        covers.push_back({weight, memoryOf(problem, solution)});
    }
    uint64_t least = UINT64_MAX, most = 0, lastResorts = UINT64_MAX;
    for (const Cover &cover : covers) {
      least = std::min(least, cover.bytes);
      most = std::max(most, cover.bytes);
      lastResorts = std::min(lastResorts, cover.weight.first);
    }
    for (uint64_t bytes = least; !covers.empty() && bytes <= most;
         bytes += (most - least) / 4 + 1) {
      std::pair<uint64_t, double> best{UINT64_MAX, 0};
      for (const Cover &cover : covers)
        if (cover.bytes <= bytes)
          best = std::min(best, cover.weight);
      auto found = solveCoverWithin(problem, {}, bytes);
      ASSERT_TRUE(found) << "case " << i << ": " << found.error().message;
      EXPECT_EQ(found->fits, best.first == lastResorts) << "case " << i << ", " << bytes;
      if (!found->fits)
        continue;
      ++bounded;
      EXPECT_LE(memoryOf(problem, found->solution), bytes);
      EXPECT_EQ(memoryOf(problem, found->solution), found->bytes);
      EXPECT_EQ(found->solution.against, best.first) << "case " << i << ", " << bytes;
      EXPECT_LE(found->solution.cost, best.second + kSlack) << "case " << i << ", " << bytes;
      EXPECT_LE(found->solution.bound, best.second + kSlack) << "case " << i << ", " << bytes;
      auto again = solveCoverWithin(problem, {}, bytes);
      ASSERT_TRUE(again);
      EXPECT_EQ(found->solution.options, again->solution.options);
      EXPECT_EQ(found->solution.conversions, again->solution.conversions);
    }
  }
  EXPECT_GT(bounded, 100u);
}

/// Two values one after the other, each by something quick and large or slow and small.
CoverProblem quickOrSmall() {
  CoverProblem problem;
  problem.available = {{0, 0}};
  problem.required = {{2, 0}};
  for (uint32_t value : {1u, 2u}) {
    addOption(problem, 10, {{value - 1, 0}}, {{value, 0}});
    problem.options.back().memory.bytes = 1000 * value;
    addOption(problem, 30, {{value - 1, 0}}, {{value, 0}});
    problem.options.back().memory.bytes = 10;
  }
  return problem;
}

TEST(CoverMemory, takesWhatSavesMost) {
  CoverProblem problem = quickOrSmall();
  for (auto [bytes, cost] : {std::pair{5000u, 20.}, std::pair{2500u, 40.}, std::pair{1500u, 40.},
                             std::pair{900u, 60.}, std::pair{20u, 60.}}) {
    auto found = solveCoverWithin(problem, {}, bytes);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->fits) << bytes;
    EXPECT_EQ(found->solution.cost, cost) << bytes;
  }
  auto found = solveCoverWithin(problem, {}, 19);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->fits);
  EXPECT_EQ(found->bytes, 20u);
}

TEST(CoverMemory, overrulesPreferencesAndNoLastResorts) {
  CoverProblem problem = quickOrSmall();
  for (uint32_t small : {1u, 3u})
    problem.options[small].against = problem.options[small].preference = 16;
  auto found = solveCoverWithin(problem, {}, 1500);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->fits);
  EXPECT_EQ(found->solution.against, 16u);
  EXPECT_EQ(found->solution.cost, 40);
  for (uint32_t small : {1u, 3u})
    problem.options[small].preference = 0;
  found = solveCoverWithin(problem, {}, 1500);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->fits);
  EXPECT_EQ(found->bytes, 3000u);
  EXPECT_EQ(found->solution.against, 0u);
}

TEST(CoverMemory, overrulesPreferencesForWhatIsMuchFaster) {
  // Of what is preferred both quick ones are too large, and the small ones slow.
  CoverProblem problem = quickOrSmall();
  problem.options[1].cost = problem.options[3].cost = 500;
  for (uint32_t value : {1u, 2u}) {
    addOption(problem, 15, {{value - 1, 0}}, {{value, 0}});
    problem.options.back().memory.bytes = 10;
    problem.options.back().against = problem.options.back().preference = 16;
  }
  for (auto [bytes, cost, against] : {std::tuple{3000u, 20., 0u}, std::tuple{2500u, 30. - 5, 16u},
                                      std::tuple{1500u, 25., 16u}, std::tuple{100u, 30., 32u}}) {
    auto found = solveCoverWithin(problem, {}, bytes);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->fits) << bytes;
    EXPECT_EQ(found->solution.cost, cost) << bytes;
    EXPECT_EQ(found->solution.against, against) << bytes;
  }
  problem.options[1].cost = problem.options[3].cost = 18; // slower, but not by much
  auto found = solveCoverWithin(problem, {}, 100);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->solution.cost, 36);
  EXPECT_EQ(found->solution.against, 0u);
}

TEST(CoverMemory, beginsWhereTheLastSearchEnded) {
  std::mt19937 random(7);
  unsigned bounded = 0, cold = 0, warm = 0;
  for (int i = 0; i < 60; ++i) {
    CoverProblem problem = randomGraph(random);
    addMemory(problem, random);
    auto free = solveCover(problem);
    if (!free)
      continue;
    const uint64_t most = memoryOf(problem, *free) * 2 / 3;
    BoundHint hint;
    auto first = solveCoverWithin(problem, {}, most, &hint);
    ASSERT_TRUE(first);
    EXPECT_EQ(hint.isKnown, first->fits && memoryOf(problem, *free) > most) << "case " << i;
    if (!hint.isKnown)
      continue;
    ++bounded;
    for (CoverOption &option : problem.options)
      option.cost *= 1.01;
    auto second = solveCoverWithin(problem, {}, most, &hint);
    ASSERT_TRUE(second);
    EXPECT_TRUE(second->fits) << "case " << i;
    EXPECT_LE(second->bytes, most) << "case " << i;
    EXPECT_EQ(second->bytes, memoryOf(problem, second->solution));
    cold += static_cast<unsigned>(first->solves);
    warm += static_cast<unsigned>(second->solves);
  }
  EXPECT_GT(bounded, 10u);
  EXPECT_LT(warm, cold);
}

TEST(CoverMemory, leavesOutAProviderWhoseLibraryIsTooLarge) {
  CoverProblem problem = quickOrSmall();
  for (CoverOption &option : problem.options)
    option.memory.bytes = 0;
  problem.options[0].memory.process = problem.options[2].memory.process = {3, 5000};
  auto found = solveCoverWithin(problem, {}, 6000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 5000u);
  EXPECT_EQ(found->solution.cost, 20);
  found = solveCoverWithin(problem, {}, 4000);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->fits);
  EXPECT_EQ(found->solution.cost, 60);
}

} // namespace
} // namespace dovetail::plan
