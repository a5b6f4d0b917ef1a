// SPDX-License-Identifier: Apache-2.0
//
// Times of kernels at their places, against means computed by hand.
#include "plan/StepTimes.h"

#include <gtest/gtest.h>

namespace dovetail::plan {
namespace {

Candidate candidateNamed(const char *algorithm, const char *layout = "") {
  Candidate candidate;
  candidate.provider = "some";
  candidate.algorithm = algorithm;
  candidate.inputLayouts = {layout};
  candidate.outputLayouts = {layout};
  return candidate;
}

TEST(StepTimes, NothingSeenChangesNothing) {
  StepTimes times;
  EXPECT_TRUE(times.empty());
  EXPECT_EQ(times.of("p", candidateNamed("a"), 7), 7);
}

TEST(StepTimes, MeanOverPlaces) {
  StepTimes times;
  times.add("p", candidateNamed("a"), 10, 5);
  times.add("p", candidateNamed("a"), 20, 5);
  EXPECT_EQ(times.of("p", candidateNamed("a"), 5), 15);
}

TEST(StepTimes, OthersAreScaledAsThoseSeenWere) {
  StepTimes times;
  times.add("p", candidateNamed("a"), 10, 5);
  times.add("q", candidateNamed("a"), 5, 5);
  EXPECT_DOUBLE_EQ(times.of("p", candidateNamed("b"), 4), 4 * 1.5);
  EXPECT_DOUBLE_EQ(times.of("p", candidateNamed("a", "acdb"), 4), 4 * 1.5);
}

TEST(StepTimes, WithoutATrialNoScale) {
  StepTimes times;
  times.add("p", candidateNamed("a"), 10, -1);
  EXPECT_EQ(times.of("p", candidateNamed("a"), -1), 10);
  EXPECT_EQ(times.of("q", candidateNamed("a"), 4), 4);
}

} // namespace
} // namespace dovetail::plan
