// SPDX-License-Identifier: Apache-2.0
//
// Extents that a step finds out: what follows is computed with them, views and shape data included.
#include <gtest/gtest.h>

#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

const Extent K = Extent::symbol("K");

std::vector<float> positives(const std::vector<float> &x) {
  std::vector<float> kept;
  for (float v : x)
    if (v > 0)
      kept.push_back(v);
  return kept;
}

/// kept = positive elements of x; y = kept + kept; s = {K}; relu(x) on the side, also viewed.
Plan dynamicPlan() {
  PlanMaker maker;
  maker.plan.symbols["K"] = {0, 1000, 1};
  uint32_t x = maker.input("x", {10});
  uint32_t kept = maker.dynamic({K});
  maker.step("keep_positive", {x}, {kept});
  maker.block().symbolSources.push_back({"K", kept, 0});
  uint32_t sum = maker.value({K});
  maker.step("add", {kept, kept}, {sum});
  maker.step("relu", {sum}, {maker.outputValue("y", {K})});
  maker.output("kept as column", maker.view(kept, {K, 1}));
  maker.shapeData({K}, maker.outputValue("s", {1}, DVT_I64));
  uint32_t copied = maker.value({K});
  maker.copy(sum, copied);
  maker.output("copied", copied);
  maker.step("relu", {x}, {maker.outputValue("side", {10})});
  return maker.take();
}

TEST(DynamicPlan, FindsOutExtents) {
  auto model = Model::create(dynamicPlan(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session) << session.error().message;
  for (uint32_t seed = 1; seed < 20; ++seed) {
    std::vector<float> x = noise(10, seed);
    if (seed == 7)
      x.assign(10, -1); // nothing is kept
    std::vector<float> kept = positives(x), twice;
    for (float v : kept)
      twice.push_back(2 * v);
    EXPECT_EQ(runOnce(**session, x, {10}), twice);
    EXPECT_EQ(outputOf(**session, 1), kept);
    EXPECT_EQ((*session)->output(1).rank, 2u);
    EXPECT_EQ((*session)->output(1).extents[0], int64_t(kept.size()));
    EXPECT_EQ(*static_cast<const int64_t *>((*session)->output(2).data), int64_t(kept.size()));
    EXPECT_EQ(outputOf(**session, 3), twice);
    EXPECT_EQ(outputOf(**session, 4).size(), 10u);
  }
}

TEST(DynamicPlan, BoundOutputsMustFit) {
  auto model = Model::create(dynamicPlan(), toyOptions());
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> x(10), y(10);
  x[3] = 5;
  x[4] = 6;
  ASSERT_TRUE((*session)->bindInput(0, x.data(), std::vector<int64_t>{10}));
  ASSERT_TRUE((*session)->bindOutput(0, y.data(), std::vector<int64_t>{2}));
  ASSERT_TRUE((*session)->run());
  EXPECT_EQ(y[0], 10);
  EXPECT_EQ(y[1], 12);
  x[5] = 1;
  Status status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("'y'"), std::string::npos) << status.error().message;
}

TEST(DynamicPlan, KernelsGetTheExtentsThatTheyAreFor) {
  PlanMaker maker;
  maker.plan.symbols["K"] = {0, 1000, 1};
  uint32_t x = maker.input("x", {10}), kept = maker.dynamic({K});
  maker.step("keep_positive", {x}, {kept});
  maker.block().symbolSources.push_back({"K", kept, 0});
  maker.step("add", {x, x}, {maker.outputValue("y", {10})}, "fixed").inputs = {kept, kept};
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  EXPECT_EQ(runOnce(**session, std::vector<float>(10, 1), {10}), std::vector<float>(10, 2));
  Aligned<float> some(10);
  some[3] = 5;
  ASSERT_TRUE((*session)->bindInput(0, some.data(), std::vector<int64_t>{10}));
  Status status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("is 1, its kernel is for 10"), std::string::npos)
      << status.error().message;
}

/// y[K] shows twelve elements; K is the number of positive ones of x.
Plan viewPlan(Storage shown) {
  PlanMaker maker;
  maker.plan.symbols["K"] = maker.plan.symbols["M"] = {0, 1000, 1};
  uint32_t x = maker.input("x", {16}), kept = maker.dynamic({K});
  maker.step("keep_positive", {x}, {kept});
  maker.block().symbolSources.push_back({"K", kept, 0});
  uint32_t z = maker.constant(std::vector<float>(12, 3), {12}), view = 0;
  switch (shown) {
  case Storage::Constant: // read by a step
    view = maker.view(z, {K});
    maker.step("relu", {view}, {maker.outputValue("y", {K})});
    return maker.take();
  case Storage::Alias: // an output
    maker.output("y", maker.view(z, {K}));
    return maker.take();
  case Storage::Output: { // of which what it shows is written before K is known
    uint32_t y = maker.value({12});
    maker.block().values[y].storage = Storage::Output;
    maker.step("relu", {z}, {y});
    std::swap(maker.block().steps[0], maker.block().steps[1]);
    maker.output("y", maker.view(y, {K}));
    return maker.take();
  }
  default: { // and found out, too
    uint32_t y = maker.dynamic({Extent::symbol("M")});
    maker.step("keep_positive", {z}, {y});
    maker.block().symbolSources.push_back({"M", y, 0});
    maker.output("y", maker.view(y, {K}));
    return maker.take();
  }
  }
}

TEST(DynamicPlan, ViewsShowAllOfWhatTheyShow) {
  for (Storage shown : {Storage::Constant, Storage::Alias, Storage::Output, Storage::Dynamic}) {
    auto model = Model::create(viewPlan(shown), toyOptions());
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*model);
    ASSERT_TRUE(session) << session.error().message;
    for (size_t count : {12, 5, 16, 12}) {
      Aligned<float> x(16);
      std::fill_n(x.begin(), count, 1.0f);
      ASSERT_TRUE((*session)->bindInput(0, x.data(), std::vector<int64_t>{16}));
      Status status = (*session)->run();
      EXPECT_EQ(bool(status), count == 12) << int(shown) << ": " << count;
      if (status)
        EXPECT_EQ(outputOf(**session), std::vector<float>(12, 3)) << int(shown);
      else
        EXPECT_NE(status.error().message.find("view of another size"), std::string::npos)
            << status.error().message;
    }
  }
}

} // namespace
