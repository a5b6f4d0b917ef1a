// SPDX-License-Identifier: Apache-2.0
//
// The accounts of plans: what is shared counts once.
#include <gtest/gtest.h>

#include "artifact/PlanMemory.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

/// `count` equal steps that pack a constant each, or all the same one.
Plan packingSteps(int count, bool sameConstant) {
  static const std::vector<float> weights(256, 1.0f);
  static const std::vector<float> others[] = {noise(256), noise(256), noise(256)};
  PlanMaker maker;
  uint32_t shared = maker.constant(weights, {256});
  for (int i = 0; i < count; ++i)
    maker.step("add", {shared, sameConstant ? shared : maker.constant(others[i], {256})},
               {maker.outputValue("y" + std::to_string(i), {256})});
  Plan plan = maker.take();
  for (PlanStep &step : plan.blocks[0].steps) {
    step.problem = 0; // equal ones are one in a plan that was chosen
    Candidate &candidate = step.choice.candidate;
    candidate.packing = DVT_PACKING_AT_LOAD;
    candidate.packedBytes = 4096;
    candidate.codeBytes = 100;
    candidate.processBytes = 7000;
  }
  plan.blocks[0].arenaBytes = 640;
  return plan;
}

TEST(PlanMemory, kernelsOfEqualStepsAreOne) {
  PlanMemory memory = memoryOf(packingSteps(3, true));
  EXPECT_EQ(memory.weights, 1024u);
  EXPECT_EQ(memory.packed, 4096u);
  EXPECT_EQ(memory.code, 100u);
  EXPECT_EQ(memory.process(), 7000u);
  EXPECT_EQ(memory.arena, 640u);
  EXPECT_EQ(memory.total(), 4096u + 100 + 7000 + 640);
}

TEST(PlanMemory, codeIsSharedAcrossConstants) {
  PlanMemory memory = memoryOf(packingSteps(3, false));
  EXPECT_EQ(memory.weights, 4 * 1024u);
  EXPECT_EQ(memory.packed, 3 * 4096u);
  EXPECT_EQ(memory.code, 100u);
}

TEST(PlanMemory, theLargestOfAProviderCountsAndProvidersAddUp) {
  Plan plan = packingSteps(3, true);
  plan.blocks[0].steps[1].choice.candidate.processBytes = 9000;
  plan.blocks[0].steps[2].choice.candidate.provider = "another";
  PlanMemory memory = memoryOf(plan);
  EXPECT_EQ(memory.process(), 9000u + 7000);
  EXPECT_EQ(memory.packed, 2 * 4096u);
  plan.blocks[0].steps[1].choice.candidate.processGroup = "second library";
  EXPECT_EQ(memoryOf(plan).process(), 7000u + 9000 + 7000);
  plan.blocks[0].steps[2].choice.candidate.packing = DVT_PACKING_NONE;
  EXPECT_EQ(memoryOf(plan).packed, 4096u);
}

} // namespace
