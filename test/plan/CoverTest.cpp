// SPDX-License-Identifier: Apache-2.0
//
// Covers against the plainest truth: trying every subset of options with the conversions that are
// then cheapest.
#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "CoverCases.h"

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
    addOption(problem, cost(random) + 5, {{value - 1, 0}}, {{value, 0}});
    addOption(problem, cost(random), {{value - 1, layout(random)}}, {{value, layout(random)}});
    if (value >= 2)
      addOption(problem, cost(random) + 3, {{value - 2, layout(random)}},
                {{value, layout(random)}, {value - 1, 0}});
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

TEST(Cover, bothWaysEqualExhaustiveSearchOnGraphs) {
  std::mt19937 random(23);
  unsigned byFrontier = 0, covered = 0;
  for (int i = 0; i < 150; ++i) {
    CoverProblem problem = randomGraph(random);
    std::pair<uint64_t, double> best{UINT64_MAX, 0};
    for (unsigned mask = 0; mask < 1u << problem.options.size(); ++mask)
      best = std::min(best, weightOfSubset(problem, mask));
    auto solution = solveCover(problem);
    if (best.first == UINT64_MAX) {
      EXPECT_FALSE(solution) << "case " << i;
      continue;
    }
    ++covered;
    ASSERT_TRUE(solution) << "case " << i << ": " << solution.error().message;
    EXPECT_EQ(solution->against, best.first) << "case " << i;
    EXPECT_NEAR(solution->cost, best.second, 1e-6) << "case " << i;
    EXPECT_TRUE(solution->exact);
    // As it is, where all but the cheapest state of a value needs a bound, and where that is all
    // there is.
    for (const CoverLimits &limits :
         {CoverLimits{}, CoverLimits{.relaxedStates = 1}, CoverLimits{.relaxedStates = 3},
          CoverLimits{.maxStates = 1}}) {
      auto frontier = solveCoverByFrontier(problem, limits);
      if (!frontier)
        continue;
      ++byFrontier;
      EXPECT_LE(frontier->bound, frontier->cost + 1e-9) << "case " << i;
      if (frontier->against == best.first) {
        EXPECT_LE(frontier->bound, best.second + 1e-9) << "case " << i;
      }
      if (!frontier->exact)
        continue;
      EXPECT_EQ(frontier->against, best.first) << "case " << i;
      EXPECT_NEAR(frontier->cost, best.second, 1e-6) << "case " << i;
    }
    auto program = solveCoverByProgram(problem, {});
    ASSERT_TRUE(program) << "case " << i;
    EXPECT_EQ(program->against, best.first) << "case " << i;
    EXPECT_NEAR(program->cost, best.second, 1e-4) << "case " << i;
  }
  EXPECT_GT(covered, 100u);
  EXPECT_GT(byFrontier, 2 * covered);
}

/// Long enough that neither subsets can be tried nor all states kept: a ladder of two branches.
TEST(Cover, frontierKeepsWithinTheGapItStates) {
  std::mt19937 random(5);
  auto cost = [&] { return std::uniform_real_distribution<double>(1, 10)(random); };
  CoverProblem problem;
  problem.available = {{0, 0}};
  constexpr uint32_t kSteps = 40, kLayouts = 4;
  for (uint32_t value = 1; value <= 2 * kSteps; ++value)
    for (uint32_t layout = 0; layout < kLayouts; ++layout) {
      std::vector<LayoutState> needs{{value < 3 ? 0 : value - 2, value < 3 ? 0 : layout}};
      if (value % 8 == 0)
        needs.push_back({value - 1, layout});
      addOption(problem, cost(), needs, {{value, layout}});
    }
  problem.required = {{2 * kSteps, 0}, {2 * kSteps - 1, 0}};
  for (uint32_t value = 1; value <= 2 * kSteps; ++value)
    for (uint32_t from = 0; from < kLayouts; ++from)
      for (uint32_t to = 0; to < kLayouts; ++to)
        if (from != to)
          problem.conversions.push_back({value, from, to, cost() / 3});
  auto exact = solveCoverByFrontier(problem, {.relativeGap = 0});
  ASSERT_TRUE(exact);
  EXPECT_TRUE(exact->exact);
  auto loose = solveCoverByFrontier(problem, {.relativeGap = 0.02});
  ASSERT_TRUE(loose);
  EXPECT_LE(loose->bound, exact->cost + 1e-9);
  EXPECT_LE(loose->cost, exact->cost / (1 - 0.02) + 1e-9);
  auto narrow = solveCoverByFrontier(problem, {.relativeGap = 0, .maxStates = 2});
  ASSERT_TRUE(narrow);
  EXPECT_FALSE(narrow->exact);
  EXPECT_GE(narrow->cost, exact->cost - 1e-9);
  EXPECT_LE(narrow->bound, exact->cost + 1e-9);
  auto relaxed = solveCoverByFrontier(problem, {.relativeGap = 0, .relaxedStates = 4});
  ASSERT_TRUE(relaxed);
  EXPECT_TRUE(relaxed->exact);
  EXPECT_NEAR(relaxed->cost, exact->cost, 1e-9);
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
