// SPDX-License-Identifier: Apache-2.0
//
// What preparing a plan takes and costs: what is shared counts once.
#include <gtest/gtest.h>

#include "artifact/PlanPreparation.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

/// Steps of equal problems but for the last one, with what their kernels take to prepare.
Plan preparedSteps(const std::vector<double> &millis) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {16});
  for (size_t i = 0; i < millis.size(); ++i) {
    PlanStep &step = maker.step(i + 1 < millis.size() ? "relu" : "add",
                                i + 1 < millis.size() ? std::vector{x} : std::vector{x, x},
                                {maker.outputValue("y" + std::to_string(i), {16})});
    step.report = static_cast<uint32_t>(i);
    RegionReport report;
    report.prepareMillis = millis[i];
    maker.plan.reports.push_back(report);
  }
  Plan plan = maker.take();
  for (size_t i = 0; i + 1 < millis.size(); ++i)
    plan.blocks[0].steps[i].problem = 0; // equal ones are one in a plan that was chosen
  plan.runsPerLoad = 100;
  return plan;
}

TEST(PreparationPrice, chargesWhatIsBeyondTheFreePart) {
  const double free = PreparationPrice::kFreeMillis;
  PreparationPrice price{100};
  EXPECT_EQ(price.of(-1), 0);
  EXPECT_EQ(price.of(0), 0);
  EXPECT_EQ(price.of(free), 0);
  EXPECT_DOUBLE_EQ(price.of(free + 2), 20);
  EXPECT_DOUBLE_EQ(PreparationPrice{1}.of(free + 2), 2000);
  EXPECT_EQ(PreparationPrice{0}.of(1e6), 0);
}

TEST(PlanPreparation, kernelsOfEqualProblemsArePreparedOnce) {
  PlanPreparation all = preparationOf(preparedSteps({25, 25, 7}));
  EXPECT_EQ(all.kernels, 2u);
  EXPECT_EQ(all.unknown, 0u);
  EXPECT_DOUBLE_EQ(all.millis, 32);
  EXPECT_DOUBLE_EQ(all.chargedMicros, 200 + 20);
}

TEST(PlanPreparation, whatNobodyPreparedIsSaidToBeUnknown) {
  PlanPreparation all = preparationOf(preparedSteps({25, -1}));
  EXPECT_EQ(all.kernels, 2u);
  EXPECT_EQ(all.unknown, 1u);
  EXPECT_DOUBLE_EQ(all.millis, 25);
}

TEST(PlanPreparation, devicesAndPlansWithoutAPriceAreNotCharged) {
  Plan plan = preparedSteps({25, 7});
  plan.runsPerLoad = 0;
  EXPECT_EQ(preparationOf(plan).chargedMicros, 0);
  EXPECT_DOUBLE_EQ(preparationOf(plan).millis, 32);
  plan = preparedSteps({25, 7});
  plan.blocks[0].steps[0].choice.candidate.memory = DVT_MEMORY_DEVICE;
  EXPECT_DOUBLE_EQ(preparationOf(plan).chargedMicros, 20);
}

} // namespace
