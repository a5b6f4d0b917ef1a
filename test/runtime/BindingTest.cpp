// SPDX-License-Identifier: Apache-2.0
//
// What callers bind: strides, odd alignment, overlapping memory, state fed back.
#include <gtest/gtest.h>

#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

using Numbers = std::vector<int64_t>;

struct Loaded {
  std::shared_ptr<Model> model;
  std::unique_ptr<Session> session;
  explicit Loaded(Plan plan) {
    auto made = Model::create(std::move(plan), toyOptions());
    EXPECT_TRUE(made) << made.error().message;
    model = *made;
    auto opened = Session::create(model);
    EXPECT_TRUE(opened);
    session = std::move(*opened);
  }
};

TEST(Binding, StridesAndOddAlignment) {
  Loaded l(denseLayerPlan());
  std::vector<float> x = noise(12), truth = denseLayerTruth(x);
  // x transposed in memory, at an odd address; y in every second column of a wider array, backwards
  // by rows.
  std::vector<float> transposed(13), wide(4 * 10, -1);
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 3; ++k)
      transposed[1 + k * 4 + i] = x[i * 3 + k];
  ASSERT_TRUE(l.session->bindInput(0, transposed.data() + 1, Numbers{4, 3}, Numbers{1, 4}));
  ASSERT_TRUE(l.session->bindOutput(0, wide.data() + 30, Numbers{4, 5}, Numbers{-10, 2}));
  ASSERT_TRUE(l.session->run());
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j) {
      EXPECT_EQ(wide[(3 - i) * 10 + j * 2], truth[i * 5 + j]);
      EXPECT_EQ(wide[(3 - i) * 10 + j * 2 + 1], -1);
    }
  // Back to the session's own memory.
  ASSERT_TRUE(l.session->bindOutput(0, nullptr, {}));
  EXPECT_EQ(runOnce(*l.session, x, {4, 3}), truth);
}

TEST(Binding, OutputsAreWrittenInPlace) {
  Loaded l(denseLayerPlan());
  Aligned<float> x(12), y(20);
  std::vector<float> data = noise(12);
  std::copy(data.begin(), data.end(), x.begin());
  ASSERT_TRUE(l.session->bindInput(0, x.data(), Numbers{4, 3}));
  ASSERT_TRUE(l.session->bindOutput(0, y.data(), Numbers{4, 5}));
  ASSERT_TRUE(l.session->run());
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), denseLayerTruth(data));
  EXPECT_EQ(l.session->output(0).data, y.data());
}

TEST(Binding, OutputOverAnInput) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {4}), y = maker.outputValue("y", {4});
  maker.step("relu", {x}, {y});
  maker.step("add", {x, y}, {maker.outputValue("z", {4})}); // x must still be what it was
  Loaded l(maker.take());
  Aligned<float> memory(4), z(4);
  std::vector<float> data{-1, 2, -3, 4};
  std::copy(data.begin(), data.end(), memory.begin());
  ASSERT_TRUE(l.session->bindInput(0, memory.data(), Numbers{4}));
  ASSERT_TRUE(l.session->bindOutput(0, memory.data(), Numbers{4}));
  ASSERT_TRUE(l.session->bindOutput(1, z.data(), Numbers{4}));
  ASSERT_TRUE(l.session->run());
  EXPECT_EQ(std::vector<float>(z.begin(), z.end()), (std::vector<float>{-1, 4, -3, 8}));
  EXPECT_EQ(std::vector<float>(memory.begin(), memory.end()), (std::vector<float>{0, 2, 0, 4}));
  ASSERT_TRUE(l.session->bindOutput(1, memory.data(), Numbers{4}));
  EXPECT_FALSE(l.session->run()) << "two outputs in the same memory";
}

TEST(Binding, StateFeedsBack) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {2}), state = maker.input("state", {2});
  maker.step("add", {x, state}, {maker.outputValue("next", {2})});
  Loaded l(maker.take());
  Aligned<float> step(2), start(2);
  step[0] = 1;
  step[1] = 10;
  ASSERT_TRUE(l.session->bindInput(0, step.data(), Numbers{2}));
  ASSERT_TRUE(l.session->bindInput(1, start.data(), Numbers{2}));
  ASSERT_TRUE(l.session->feedBack(0, 1));
  EXPECT_FALSE(l.session->bindOutput(0, step.data(), Numbers{2}));
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(l.session->run());
    EXPECT_EQ(outputOf(*l.session), (std::vector<float>{float(i), float(10 * i)}));
  }
  EXPECT_EQ(start[1], 0) << "the caller's start value stays";
  start[0] = 100;
  ASSERT_TRUE(l.session->bindInput(1, start.data(), Numbers{2}));
  ASSERT_TRUE(l.session->run());
  EXPECT_EQ(outputOf(*l.session)[0], 101);
}

TEST(Binding, NonsenseIsRefused) {
  Loaded l(denseLayerPlan());
  Aligned<float> memory(100);
  EXPECT_FALSE(l.session->bindInput(0, memory.data(), Numbers{4, 4}));
  EXPECT_FALSE(l.session->bindInput(0, memory.data(), Numbers{4, 3}, Numbers{1}));
  EXPECT_FALSE(l.session->bindOutput(3, memory.data(), Numbers{4, 5}));
  EXPECT_FALSE(l.session->bindOutput(0, memory.data(), Numbers{5, 5}));
  EXPECT_FALSE(l.session->feedBack(0, 0)) << "other extents";
}

} // namespace
