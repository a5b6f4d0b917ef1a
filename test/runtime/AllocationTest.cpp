// SPDX-License-Identifier: Apache-2.0
//
// A run with the extents of the run before allocates nothing: counted with a replaced operator new
// and with the host's allocator. Prints the overhead of a step, which is not judged here.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {
std::atomic<long> allocations{0};
} // namespace

// Not inlined: where only one of a pair is, g++ takes them for a mismatch.
[[gnu::noinline]] void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
// How std::stable_sort asks.
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  ++allocations;
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

TEST(Allocation, NoneForEachRun) {
  ModelOptions options = toyOptions();
  std::atomic<long> held{0}, asked{0};
  struct Counts {
    std::atomic<long> *held, *asked;
  } counts{&held, &asked};
  options.allocator = {&counts,
                       [](void *context, uint64_t bytes, uint64_t alignment) {
                         auto &c = *static_cast<Counts *>(context);
                         *c.held += bytes;
                         ++*c.asked;
                         return std::aligned_alloc(alignment, bytes);
                       },
                       [](void *context, void *memory, uint64_t bytes) {
                         *static_cast<Counts *>(context)->held -= bytes;
                         std::free(memory);
                       }};
  {
    auto model = Model::create(denseLayerPlan(), options);
    ASSERT_TRUE(model);
    auto session = Session::create(*model);
    ASSERT_TRUE(session);
    Aligned<float> x(12), other(12), y(20);
    const int64_t shape[] = {4, 3}, result[] = {4, 5};
    ASSERT_TRUE((*session)->bindInput(0, x.data(), shape));
    ASSERT_TRUE((*session)->bindOutput(0, y.data(), result));
    ASSERT_TRUE((*session)->run());
    ASSERT_TRUE((*session)->run());
    long before = allocations, askedBefore = asked;
    bool good = true;
    for (int run = 0; run < 100; ++run) {
      good &= bool((*session)->bindInput(0, run % 2 ? x.data() : other.data(), shape));
      good &= bool((*session)->run());
    }
    EXPECT_EQ(allocations - before, 0);
    EXPECT_EQ(asked - askedBefore, 0);
    EXPECT_TRUE(good);
    EXPECT_GT(held, 0);
  }
  EXPECT_EQ(held, 0);
}

TEST(Allocation, NoneForKnownSignatures) {
  PlanMaker maker;
  Extent n = Extent::symbol("N");
  maker.plan.symbols["N"] = {1, 64, 1};
  uint32_t x = maker.input("x", {n});
  maker.symbol("N", x, 0, {1, 64, 1});
  uint32_t t = maker.value({n});
  maker.step("relu", {x}, {t});
  maker.step("add", {t, t}, {maker.outputValue("y", {n})});
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> data(64);
  bool good = true;
  auto pass = [&] {
    for (int64_t extent = 1; extent <= 10; ++extent) {
      good &= bool((*session)->bindInput(0, data.data(), {&extent, 1}));
      good &= bool((*session)->run());
    }
  };
  pass();
  long before = allocations;
  pass();
  EXPECT_EQ(allocations - before, 0);
  EXPECT_TRUE(good);
}

TEST(Allocation, OverheadOfAStep) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {1});
  uint32_t last = x;
  constexpr int steps = 1000;
  for (int i = 0; i < steps; ++i) {
    uint32_t next = i + 1 < steps ? maker.value({1}) : maker.outputValue("y", {1});
    maker.step("add", {last, x}, {next});
    last = next;
  }
  auto model = Model::create(maker.take(), toyOptions());
  ASSERT_TRUE(model);
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  Aligned<float> data(1);
  data[0] = 1;
  const int64_t one = 1;
  ASSERT_TRUE((*session)->bindInput(0, data.data(), {&one, 1}));
  double best = 1e9;
  for (int run = 0; run < 20; ++run) {
    auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE((*session)->run());
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / steps);
  }
  RecordProperty("nanosecondsPerStep", int(best));
  std::printf("%.0f ns for a step of one addition\n", best);
  EXPECT_EQ(outputOf(**session)[0], steps + 1);
}

} // namespace
