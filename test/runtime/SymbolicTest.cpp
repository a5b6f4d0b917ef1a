// SPDX-License-Identifier: Apache-2.0
//
// Extents known only at run time: many signatures, views, shape data, kernels bound late, wrong
// extents.
#include <gtest/gtest.h>

#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

const Extent N = Extent::symbol("N");

/// y = relu(x @ w) viewed as [2N,2], for x [N,3] and w [3,4]; s = {N, 4*N}.
Plan symbolicPlan() {
  PlanMaker maker;
  maker.plan.symbols["N"] = {1, 64, 1};
  uint32_t x = maker.input("x", {N, 3});
  maker.symbol("N", x, 0, {1, 64, 1});
  uint32_t w = maker.constant(noise(12, 2), {3, 4});
  uint32_t product = maker.value({N, 4}), positive = maker.value({N, 4});
  maker.step("mat_mul", {x, w}, {product});
  maker.step("relu", {product}, {positive});
  uint32_t view = maker.view(positive, {Extent(2) * N, 2});
  maker.step("add", {view, view}, {maker.outputValue("y", {Extent(2) * N, 2})});
  maker.shapeData({N, Extent(4) * N}, maker.outputValue("s", {2}, DVT_I64));
  return maker.take();
}

std::vector<float> truth(const std::vector<float> &x) {
  std::vector<float> w = noise(12, 2), y;
  for (size_t i = 0; i < x.size() / 3; ++i)
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int k = 0; k < 3; ++k)
        sum += x[i * 3 + k] * w[k * 4 + j];
      y.push_back(2 * std::max(sum, 0.0f));
    }
  return y;
}

TEST(SymbolicPlan, ManySignatures) {
  auto model = Model::create(symbolicPlan(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  // More signatures than a session keeps, there and back.
  for (int64_t pass : {0, 1})
    for (int64_t i = 1; i <= 40; ++i) {
      int64_t n = pass ? 41 - i : i;
      std::vector<float> x = noise(n * 3, uint32_t(n));
      EXPECT_EQ(runOnce(**session, x, {n, 3}), truth(x)) << n;
      const dvt_tensor &y = (*session)->output(0), &s = (*session)->output(1);
      EXPECT_EQ(y.extents[0], 2 * n);
      EXPECT_EQ(static_cast<const int64_t *>(s.data)[1], 4 * n);
    }
}

TEST(SymbolicPlan, WrongExtentsAreNamed) {
  auto model = Model::create(symbolicPlan(), toyOptions());
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> data(1000);
  EXPECT_FALSE((*session)->bindInput(0, data.data(), std::vector<int64_t>{2, 4}));
  EXPECT_FALSE((*session)->bindInput(0, data.data(), std::vector<int64_t>{2}));
  EXPECT_FALSE((*session)->bindInput(0, data.data(), std::vector<int64_t>{-2, 3}));
  EXPECT_FALSE((*session)->bindInput(0, nullptr, std::vector<int64_t>{2, 3}));
  EXPECT_FALSE((*session)->bindInput(1, data.data(), std::vector<int64_t>{2, 3}));
  Status unbound = (*session)->run();
  ASSERT_FALSE(unbound);
  EXPECT_NE(unbound.error().message.find("'x' is not bound"), std::string::npos);
  ASSERT_TRUE((*session)->bindInput(0, data.data(), std::vector<int64_t>{65, 3}));
  Status status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::BadInput);
  EXPECT_NE(status.error().message.find("1..64"), std::string::npos) << status.error().message;
  // The session is still good.
  std::vector<float> x = noise(6);
  EXPECT_EQ(runOnce(**session, x, {2, 3}), truth(x));
  Aligned<float> y(100);
  ASSERT_TRUE((*session)->bindOutput(0, y.data(), std::vector<int64_t>{6, 2}));
  ASSERT_TRUE((*session)->bindInput(0, data.data(), std::vector<int64_t>{2, 3}));
  EXPECT_FALSE((*session)->run()) << "bound for 3, run with 2";
}

TEST(SymbolicPlan, BrokenRequirementsAreNamed) {
  Plan plan = symbolicPlan();
  plan.blocks[0].requirements = {
      {Requirement::Relation::AtLeast, Extent(2) * N, 5, "MaxPool 'p': the padded image"},
      {Requirement::Relation::Equal, Extent::mod(N, 2), 1, "MatMul 'm': inner extents"},
      {Requirement::Relation::Broadcast, N, 5, "Add 'a'"}};
  auto model = Model::create(std::move(plan), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> data(1000);
  for (auto [n, sentence] :
       {std::pair{2, "MaxPool 'p': the padded image has extent 2*N = 4, at least 5 is needed"},
        {4, "MatMul 'm': inner extents: mod(N,2) = 0 and 1 must be equal"},
        {7, "Add 'a': extents N = 7 and 5 cannot be broadcast"}}) {
    ASSERT_TRUE((*session)->bindInput(0, data.data(), std::vector<int64_t>{n, 3}));
    Status status = (*session)->run();
    ASSERT_FALSE(status) << n;
    EXPECT_EQ(status.error().kind, ErrorKind::BadInput);
    EXPECT_EQ(status.error().message, sentence);
  }
  std::vector<float> x = noise(15);
  EXPECT_EQ(runOnce(**session, x, {5, 3}), truth(x));
}

TEST(SymbolicPlan, InputsThatDisagree) {
  PlanMaker maker;
  maker.plan.symbols["N"] = {1, 64, 8};
  uint32_t a = maker.input("a", {N}), b = maker.input("b", {N});
  maker.symbol("N", a, 0, {1, 64, 8});
  maker.step("add", {a, b}, {maker.outputValue("y", {N})});
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> data(64);
  ASSERT_TRUE((*session)->bindInput(0, data.data(), std::vector<int64_t>{8}));
  ASSERT_TRUE((*session)->bindInput(1, data.data(), std::vector<int64_t>{16}));
  Status status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("'b'"), std::string::npos) << status.error().message;
  ASSERT_TRUE((*session)->bindInput(0, data.data(), std::vector<int64_t>{9}));
  status = (*session)->run();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("multiples of 8"), std::string::npos);
}

TEST(SymbolicPlan, LateBoundStepsAskTheirProviders) {
  PlanMaker maker;
  maker.plan.symbols["N"] = {1, 1000, 1};
  uint32_t x = maker.input("x", {N});
  maker.symbol("N", x, 0, {1, 1000, 1});
  PlanStep &late = maker.step("relu", {x}, {maker.outputValue("y", {N})});
  late.kind = StepKind::LateBound;
  late.lateProviders = {"gone", "spare"};
  std::string messages;
  ModelOptions options = toyOptions();
  options.log = {[](void *out, int, const char *message) {
                   *static_cast<std::string *>(out) += std::string(message) + "\n";
                 },
                 &messages, LogLevel::Debug};
  auto model = Model::create(maker.take(), options);
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  for (int64_t n = 1; n < 300; ++n) { // more than are remembered
    std::vector<float> x = noise(n), y = runOnce(**session, x, {n});
    ASSERT_EQ(y.size(), size_t(n));
    EXPECT_EQ(y[0], std::max(x[0], 0.0f));
  }
  // The kernel for fixed extents has the lower estimate.
  EXPECT_NE(messages.find("bound to spare:fixed"), std::string::npos) << messages;
  EXPECT_EQ(messages.find("bound to toy"), std::string::npos) << messages;
}

TEST(SymbolicPlan, LateBoundStepsTakeThePlannedAlgorithmWhereItIsOnOffer) {
  for (auto [algorithm, bound] :
       {std::pair{"plain", "spare:plain"}, std::pair{"gone", "spare:fixed"}}) {
    PlanMaker maker;
    maker.plan.symbols["N"] = {1, 1000, 1};
    uint32_t x = maker.input("x", {N});
    maker.symbol("N", x, 0, {1, 1000, 1});
    PlanStep &late = maker.step("relu", {x}, {maker.outputValue("y", {N})});
    late.kind = StepKind::LateBound;
    late.lateProviders = {"spare"};
    late.lateAlgorithm = algorithm;
    std::string messages;
    ModelOptions options = toyOptions();
    options.log = {[](void *out, int, const char *message) {
                     *static_cast<std::string *>(out) += std::string(message) + "\n";
                   },
                   &messages, LogLevel::Debug};
    auto model = Model::create(maker.take(), options);
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*model);
    ASSERT_TRUE(session);
    EXPECT_EQ(runOnce(**session, {-1, 2}, {2}), (std::vector<float>{0, 2}));
    EXPECT_NE(messages.find(std::string("bound to ") + bound), std::string::npos) << messages;
  }
}

TEST(SymbolicPlan, FixedKernelsOfASymbolicProblemAreBoundLate) {
  PlanMaker maker;
  maker.plan.symbols["N"] = {1, 1000, 1};
  uint32_t x = maker.input("x", {N});
  maker.symbol("N", x, 0, {1, 1000, 1});
  maker.step("relu", {x}, {maker.outputValue("y", {N})}, "fixed");
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  EXPECT_EQ(runOnce(**session, {-1, 2}, {2}), (std::vector<float>{0, 2}));
  EXPECT_EQ(runOnce(**session, {-1, 2, 3}, {3}), (std::vector<float>{0, 2, 3}));
}

TEST(SymbolicPlan, ASymbolWithoutSourceIsRefused) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {N});
  maker.step("relu", {x}, {maker.outputValue("y", {N})});
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("symbol N"), std::string::npos) << model.error().message;
}

} // namespace
