// SPDX-License-Identifier: Apache-2.0
//
// Thousands of damaged artifacts, from fixed seeds: reading never crashes. In half of them the
// digests are made to fit again, so that the table's verifier and the plan's checks are what stands
// between the damage and the runtime; what passes them must load and run or be refused.
#include <cstring>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "artifact/Reseal.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

/// A plan with a bit of everything: symbols, views, shape data, a fallback.
Plan samplePlan() {
  PlanMaker maker;
  Extent n = Extent::symbol("N");
  maker.plan.symbols["N"] = {1, 64, 1};
  uint32_t x = maker.input("x", {n, 3});
  maker.symbol("N", x, 0, {1, 64, 1});
  uint32_t w = maker.constant(noise(12), {3, 4});
  uint32_t t = maker.value({n, 4}), u = maker.value({n, 4});
  maker.step("mat_mul", {x, w}, {t});
  PlanStep &relu = maker.step("relu", {t}, {u}, "transposed");
  relu.fallback = relu.choice;
  relu.fallback->candidate.provider = "spare";
  uint32_t v = maker.view(u, {Extent(2) * n, 2});
  maker.step("add", {v, v}, {maker.outputValue("y", {Extent(2) * n, 2})});
  maker.shapeData({n}, maker.outputValue("s", {1}, DVT_I64));
  maker.plan.kernels = {{1, 2, 3, 4}};
  maker.plan.reports.emplace_back().ops = "x";
  return maker.take();
}

void mutate(std::string &bytes, const ArtifactSection &table, std::mt19937 &random) {
  auto at = [&]() -> size_t {
    switch (random() % 4) {
    case 0:
      return random() % sizeof(ArtifactHeader);
    case 1:
      return random() % bytes.size();
    default: // most of what can go wrong stands in the table
      return table.offset + random() % table.bytes;
    }
  };
  switch (random() % 6) {
  case 0:
    bytes.resize(random() % bytes.size() + 1);
    break;
  case 1: {
    size_t from = at(), to = at(), count = random() % 32;
    for (size_t i = 0; i < count && std::max(from, to) + i < bytes.size(); ++i)
      bytes[to + i] = bytes[from + i];
    break;
  }
  case 2: {
    static const uint64_t numbers[] = {0, 1, 0x7fffffff, 0xffffffff, UINT64_MAX, uint64_t(1) << 46};
    uint64_t number = numbers[random() % std::size(numbers)];
    size_t place = at() / 4 * 4;
    if (place + 8 <= bytes.size())
      std::memcpy(bytes.data() + place, &number, random() % 2 ? 8 : 4);
    break;
  }
  default:
    bytes[at() % bytes.size()] ^= 1 << random() % 8;
  }
}

TEST(Mutation, DamagedArtifactsNeverCrash) {
  std::string written = testing::TempDir() + "/mutation.dvt";
  ASSERT_TRUE(writeArtifact(samplePlan(), written));
  std::string good = *readFile(written);
  std::filesystem::remove(written);
  int memory = ::memfd_create("mutation", 0); // thousands of files would keep the disk busy
  ASSERT_GE(memory, 0);
  std::string path = "/proc/self/fd/" + std::to_string(memory);
  ArtifactHeader header;
  std::memcpy(&header, good.data(), sizeof(header));
  ModelOptions options = toyOptions();
  // --gtest_random_seed=N tries other damage.
  std::mt19937 random(20240607 + uint32_t(GTEST_FLAG_GET(random_seed)));
  int read = 0, loaded = 0, ran = 0;
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = good;
    for (int k = random() % 3; k >= 0; --k)
      mutate(bytes, header.sections[TableSection], random);
    if (round % 2)
      reseal(bytes);
    ASSERT_EQ(::ftruncate(memory, bytes.size()), 0);
    ASSERT_EQ(::pwrite(memory, bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
    auto artifact = readArtifact(path);
    if (!artifact) {
      EXPECT_FALSE(artifact.error().message.empty());
      continue;
    }
    ++read;
    auto model = Model::load(path, options);
    if (!model)
      continue;
    ++loaded;
    const PlanBlock &block = (*model)->plan().blocks[0];
    auto session = Session::create(*model);
    if (!session || block.inputs.size() != 1 || block.values[block.inputs[0]].extents.size() != 2)
      continue;
    Aligned<float> x(64 * 64);
    const int64_t extents[] = {5, 3};
    if ((*session)->bindInput(0, x.data(), extents) && (*session)->run())
      ++ran;
  }
  ::close(memory);
  std::printf("%d of %d were read, %d loaded, %d ran\n", read, rounds, loaded, ran);
  EXPECT_GT(read, 100) << "the mutations are too coarse to test what is behind the digests";
  EXPECT_LT(read, rounds * 3 / 4);
}

} // namespace
