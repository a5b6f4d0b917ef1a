// SPDX-License-Identifier: Apache-2.0
//
// Which operands results take over, and that the check of plans accepts exactly what is legal:
// random blocks are run on tags instead of numbers, so that a value overwritten too early shows.
#include <random>

#include <gtest/gtest.h>

#include "artifact/BlockMemory.h"
#include "artifact/PlanCheck.h"
#include "plan/InPlace.h"

namespace dovetail::plan {
namespace {

const std::vector<std::string> kProblems{
    "problem(%0: f32[64]) %1: f32[64] alias(0) = relu@14(%0) return(%1)",
    "problem(%0: f32[64], %1: f32[64]) %2: f32[64] alias(0) = add@14(%0, %1) return(%2)",
    "problem(%0: f32[64], %1: f32[64]) %2: f32[64] alias(1) = add@14(%0, %1) return(%2)",
    "problem(%0: f32[64]) %1: f32[64] = relu@14(%0) return(%1)"};

uint32_t operands(uint32_t problem) { return problem == 1 || problem == 2 ? 2 : 1; }
int32_t allowed(uint32_t problem) { return problem == 3 ? -1 : problem == 2 ? 1 : 0; }

/// A block of f32[64] values, one input and one output.
class BlockSketch {
public:
  BlockSketch() {
    plan.inputNames = {"x"};
    plan.outputNames = {"y"};
    plan.problems = kProblems;
    plan.blocks.resize(1);
    uint32_t x = value(Storage::Input);
    block().inputs = {x};
  }
  PlanBlock &block() { return plan.blocks[0]; }
  uint32_t value(Storage storage = Storage::Arena, uint32_t index = 0) {
    PlanValue made;
    made.extents = {64};
    made.storage = storage;
    made.index = index;
    block().values.push_back(made);
    return static_cast<uint32_t>(block().values.size() - 1);
  }
  uint32_t step(uint32_t problem, std::vector<uint32_t> inputs) {
    PlanStep step;
    step.problem = problem;
    step.inputs = std::move(inputs);
    uint32_t result = value();
    step.outputs = {result};
    step.choice.candidate.provider = "some";
    step.choice.candidate.inputLayouts.resize(step.inputs.size());
    step.choice.candidate.outputLayouts.resize(1);
    block().steps.push_back(std::move(step));
    return result;
  }
  void finish(uint32_t result) {
    block().values[result].storage = Storage::Output;
    block().outputs = {result};
  }
  bool check() {
    placeStaticBlock(block());
    return bool(checkPlan(plan));
  }

  Plan plan;
};

TEST(InPlace, ChainStaysInOneBuffer) {
  BlockSketch sketch;
  uint32_t at = sketch.step(0, {0});
  for (int i = 0; i < 10; ++i)
    at = sketch.step(0, {at});
  sketch.finish(sketch.step(0, {at}));
  EXPECT_TRUE(sketch.check());
  EXPECT_EQ(sketch.block().arenaBytes, 512u); // two in turns
  takeOverDyingOperands(sketch.block(), kProblems);
  EXPECT_TRUE(sketch.check());
  EXPECT_EQ(sketch.block().arenaBytes, 256u);
  EXPECT_EQ(sketch.block().values[1].inPlaceOf, kNoValue); // a model input is not written
  EXPECT_EQ(sketch.block().values[2].inPlaceOf, 1u);
}

TEST(InPlace, NotWhatIsStillNeeded) {
  BlockSketch sketch;
  uint32_t a = sketch.step(0, {0});
  uint32_t shown = sketch.value(Storage::Alias, a);
  uint32_t b = sketch.step(0, {a});
  uint32_t c = sketch.step(1, {b, shown}); // the view keeps a alive until here
  sketch.finish(sketch.step(3, {c}));
  takeOverDyingOperands(sketch.block(), kProblems);
  EXPECT_EQ(sketch.block().values[b].inPlaceOf, kNoValue);
  EXPECT_EQ(sketch.block().values[c].inPlaceOf, b);
  EXPECT_TRUE(sketch.check());
  sketch.block().values[b].inPlaceOf = a;
  EXPECT_FALSE(sketch.check());
}

TEST(InPlace, NotWithoutPermissionOrLikeness) {
  BlockSketch sketch;
  uint32_t a = sketch.step(0, {0});
  uint32_t b = sketch.step(3, {a});
  uint32_t c = sketch.step(0, {b});
  sketch.block().values[c].layout = "A16a";
  sketch.finish(sketch.step(3, {c}));
  takeOverDyingOperands(sketch.block(), kProblems);
  EXPECT_EQ(sketch.block().values[b].inPlaceOf, kNoValue);
  EXPECT_EQ(sketch.block().values[c].inPlaceOf, kNoValue);
  EXPECT_TRUE(sketch.check());
  for (uint32_t value : {b, c}) {
    BlockSketch forged = sketch;
    forged.block().values[value].inPlaceOf = value == b ? a : b;
    EXPECT_FALSE(forged.check());
  }
}

TEST(InPlace, CirclesAreRefused) {
  BlockSketch sketch;
  uint32_t a = sketch.step(0, {0}), b = sketch.step(0, {a});
  uint32_t lost = sketch.value(), found = sketch.value();
  sketch.finish(sketch.step(3, {b}));
  ASSERT_TRUE(sketch.check());
  for (auto [value, of] : {std::pair{a, b}, {b, b}, {a, 99u}, {b, 0u}}) {
    BlockSketch forged = sketch;
    forged.block().values[value].inPlaceOf = of;
    EXPECT_FALSE(checkPlan(forged.plan)) << value << " in place of " << of;
  }
  sketch.block().values[lost].inPlaceOf = found; // written by nobody
  sketch.block().values[found].inPlaceOf = lost;
  EXPECT_FALSE(checkPlan(sketch.plan));
}

/// Whether every step finds in memory what was written for it.
bool runsRight(const PlanBlock &block) {
  std::vector<uint32_t> roots = aliasRoots(block);
  std::map<uint64_t, uint32_t> arena; // offset -> who wrote last
  auto holds = [&](uint32_t value) {
    const PlanValue &root = block.values[roots[value]];
    return root.storage != Storage::Arena || arena[root.offset] == roots[value];
  };
  for (const PlanStep &step : block.steps) {
    const PlanValue &output = block.values[step.outputs[0]];
    for (uint32_t value : step.inputs) {
      if (!holds(value))
        return false;
      // A kernel may overwrite early what it reads through an operand that it was not told of.
      const PlanValue &root = block.values[roots[value]];
      if (root.storage == Storage::Arena && output.storage == Storage::Arena &&
          root.offset == output.offset && value != output.inPlaceOf)
        return false;
    }
    if (output.storage == Storage::Arena)
      arena[output.offset] = step.outputs[0];
  }
  return true;
}

TEST(InPlace, RandomBlocks) {
  std::mt19937 random(7);
  int taken = 0, forgedRight = 0, forgedWrong = 0;
  for (int round = 0; round < 3000; ++round) {
    BlockSketch sketch;
    for (int i = 0; i < 8; ++i) {
      uint32_t problem = random() % 4;
      std::vector<uint32_t> inputs;
      while (inputs.size() < operands(problem)) {
        auto count = static_cast<uint32_t>(sketch.block().values.size());
        uint32_t from = count - 1 - random() % std::min(count, 4u);
        if (std::find(inputs.begin(), inputs.end(), from) == inputs.end())
          inputs.push_back(from);
        else if (count == 1)
          problem = 0;
      }
      uint32_t result = sketch.step(problem, inputs);
      if (random() % 4 == 0)
        sketch.value(Storage::Alias, result);
    }
    uint32_t last = sketch.block().steps.back().outputs[0];
    sketch.finish(last);
    BlockSketch plain = sketch;
    ASSERT_TRUE(plain.check());
    ASSERT_TRUE(runsRight(plain.block()));
    takeOverDyingOperands(sketch.block(), kProblems);
    ASSERT_TRUE(sketch.check());
    ASSERT_TRUE(runsRight(sketch.block()));
    EXPECT_LE(sketch.block().arenaBytes, plain.block().arenaBytes);
    for (const PlanValue &value : sketch.block().values)
      taken += value.inPlaceOf != kNoValue;
    // Anyone may state anything: what the check accepts must be what runs right.
    const PlanStep &step = plain.block().steps[random() % 7];
    int32_t position = allowed(step.problem);
    if (position < 0)
      continue;
    uint32_t operand = step.inputs[static_cast<size_t>(position)];
    if (plain.block().values[aliasRoots(plain.block())[operand]].storage != Storage::Arena)
      continue;
    plain.block().values[step.outputs[0]].inPlaceOf = operand;
    bool accepted = plain.check();
    ASSERT_EQ(accepted, runsRight(plain.block()));
    ++(accepted ? forgedRight : forgedWrong);
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(forgedRight, 100);
  EXPECT_GT(forgedWrong, 100);
}

TEST(InPlace, PermissionsFollowUses) {
  OpTable table;
  auto value = [&](std::vector<Extent> extents) {
    TableValue made;
    made.extents = std::move(extents);
    table.values.push_back(made);
    return static_cast<uint32_t>(table.values.size() - 1);
  };
  auto op = [&](const char *name, OpRole role, std::vector<uint32_t> inputs,
                std::vector<Extent> extents) {
    TableOp made;
    made.name = name;
    made.version = 14;
    made.role = role;
    made.inputs = std::move(inputs);
    uint32_t result = value(std::move(extents));
    made.outputs = {result};
    table.ops.push_back(made);
    return result;
  };
  Extent n = Extent::symbol("N");
  uint32_t x = value({n, 8});
  table.inputs = {x};
  uint32_t a = op("relu", OpRole::Pointwise, {x}, {n, 8});
  uint32_t b = op("exp", OpRole::Pointwise, {a}, {n, 8});
  uint32_t c = op("add", OpRole::Pointwise, {a, b}, {n, 8});
  uint32_t d = op("softmax", OpRole::Reduction, {c}, {n, 8});
  uint32_t e = op("reduce_sum", OpRole::Reduction, {d}, {n, 1});
  uint32_t f = op("transpose", OpRole::Movement, {e}, {1, n});
  table.outputs = {f};
  linkUsers(table);
  std::map<uint32_t, int32_t> found; // of regions of one op, by op
  for (const Region &region : formRegions(table)) {
    RegionProblem problem = makeProblem(table, region);
    bool any = allowInPlace(table, region, problem);
    int32_t alias = problem.problem.values[problem.problem.outputs[0]].mayAlias;
    EXPECT_EQ(any, alias >= 0);
    EXPECT_TRUE(problem.problem.verify()) << problem.problem.text();
    if (region.ops.size() == 1)
      found[region.ops[0]] = alias;
  }
  // The caller's x stays, a is read again after exp, and sums have other extents.
  EXPECT_EQ(found,
            (std::map<uint32_t, int32_t>{{0, -1}, {1, -1}, {2, 0}, {3, 0}, {4, -1}, {5, -1}}));
}

} // namespace
} // namespace dovetail::plan
