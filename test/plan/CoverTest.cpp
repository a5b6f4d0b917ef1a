// SPDX-License-Identifier: Apache-2.0
//
// Covers against the plainest truth: trying every subset of options with the conversions that are
// then cheapest.
#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "plan/Cover.h"

namespace dovetail::plan {
namespace {

/// Cost of a subset of options with its best conversions; infinite where it is no cover that can be
/// ordered.
double costOfSubset(const CoverProblem &problem, unsigned mask) {
  double best = std::numeric_limits<double>::infinity();
  for (unsigned conversions = 0; conversions < 1u << problem.conversions.size(); ++conversions) {
    CoverSolution solution;
    double cost = 0;
    for (uint32_t i = 0; i < problem.options.size(); ++i)
      if (mask >> i & 1) {
        solution.options.push_back(i);
        cost += problem.options[i].cost;
      }
    for (uint32_t i = 0; i < problem.conversions.size(); ++i)
      if (conversions >> i & 1) {
        solution.conversions.push_back(i);
        cost += problem.conversions[i].cost;
      }
    if (cost >= best || !orderCover(problem, solution, nullptr))
      continue;
    std::set<LayoutState> have(problem.available.begin(), problem.available.end()), given = have;
    std::set<uint32_t> once;
    bool valid = true;
    for (uint32_t i : solution.options)
      for (LayoutState give : problem.options[i].gives) {
        given.insert(give);
        valid &= once.insert(give.value).second;
      }
    have = given;
    for (uint32_t i : solution.conversions) {
      const CoverConversion &conversion = problem.conversions[i];
      valid &= given.count({conversion.value, conversion.from}) != 0;
      have.insert({conversion.value, conversion.to});
    }
    for (LayoutState state : problem.required)
      valid &= have.count(state) != 0;
    if (valid)
      best = cost;
  }
  return best;
}

/// A chain of values 0..n with skip edges, options of one or two ops in two layouts.
CoverProblem randomProblem(std::mt19937 &random) {
  CoverProblem problem;
  std::uniform_real_distribution<double> cost(1, 10);
  std::uniform_int_distribution<uint32_t> layout(0, 1);
  constexpr uint32_t kValues = 4;
  problem.available = {{0, 0}};
  problem.required = {{kValues - 1, 0}};
  for (uint32_t value = 1; value < kValues; ++value) {
    problem.options.push_back({cost(random) + 5, {{value - 1, 0}}, {{value, 0}}});
    problem.options.push_back(
        {cost(random), {{value - 1, layout(random)}}, {{value, layout(random)}}});
    if (value >= 2)
      problem.options.push_back({cost(random) + 3,
                                 {{value - 2, layout(random)}},
                                 {{value, layout(random)}, {value - 1, 0}}});
  }
  for (uint32_t value = 0; value < kValues; ++value) {
    problem.conversions.push_back({value, 0, 1, cost(random) / 4});
    if (value > 0)
      problem.conversions.push_back({value, 1, 0, cost(random) / 4});
  }
  return problem;
}

TEST(Cover, equalsExhaustiveSearch) {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    CoverProblem problem = randomProblem(random);
    double best = std::numeric_limits<double>::infinity();
    for (unsigned mask = 0; mask < 1u << problem.options.size(); ++mask)
      best = std::min(best, costOfSubset(problem, mask));
    auto solution = solveCover(problem);
    ASSERT_TRUE(solution);
    EXPECT_NEAR(solution->cost, best, 1e-6) << "case " << i;
    EXPECT_TRUE(solution->exact);
    EXPECT_NEAR(solution->bound, best, 1e-3);
  }
}

TEST(Cover, sharedConversionIsPaidOnce) {
  CoverProblem problem;
  problem.available = {{0, 0}};
  problem.required = {{1, 0}, {2, 0}};
  problem.options = {{1, {{0, 1}}, {{1, 0}}},
                     {1, {{0, 1}}, {{2, 0}}},
                     {4, {{0, 0}}, {{1, 0}}},
                     {4, {{0, 0}}, {{2, 0}}}};
  problem.conversions = {{0, 0, 1, 5}};
  auto solution = solveCover(problem);
  ASSERT_TRUE(solution);
  EXPECT_NEAR(solution->cost, 7, 1e-9); // 5 once + 1 + 1, against 8 without it
  EXPECT_EQ(solution->conversions.size(), 1u);
}

TEST(Cover, recomputesACheapProducer) {
  // Value 1 is cheap; fusing it into both users beats storing it.
  CoverProblem problem;
  problem.available = {{0, 0}};
  problem.required = {{2, 0}, {3, 0}};
  problem.options = {{3, {{0, 0}}, {{1, 0}}},
                     {3, {{1, 0}}, {{2, 0}}},
                     {3, {{1, 0}}, {{3, 0}}},
                     {4, {{0, 0}}, {{2, 0}}},
                     {4, {{0, 0}}, {{3, 0}}}};
  auto solution = solveCover(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->options, (std::vector<uint32_t>{3, 4}));
}

TEST(Cover, neverTakesACircle) {
  // Each of the two cheap options needs what the other gives.
  CoverProblem problem;
  problem.available = {{0, 0}};
  problem.required = {{1, 0}, {2, 0}};
  problem.options = {{1, {{2, 0}}, {{1, 0}}},
                     {1, {{1, 0}}, {{2, 0}}},
                     {10, {{0, 0}}, {{1, 0}}},
                     {20, {{0, 0}}, {{2, 0}}}};
  auto solution = solveCover(problem);
  ASSERT_TRUE(solution);
  EXPECT_NEAR(solution->cost, 11, 1e-9);
}

TEST(Cover, saysWhenThereIsNone) {
  CoverProblem problem;
  problem.required = {{1, 0}};
  auto solution = solveCover(problem);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().kind, ErrorKind::Internal);
}

TEST(Cover, sameProblemSameAnswer) {
  std::mt19937 random(11);
  CoverProblem problem = randomProblem(random);
  auto first = solveCover(problem), second = solveCover(problem);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->options, second->options);
  EXPECT_EQ(first->conversions, second->conversions);
}

} // namespace
} // namespace dovetail::plan
