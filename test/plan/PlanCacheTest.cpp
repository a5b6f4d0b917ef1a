// SPDX-License-Identifier: Apache-2.0
//
// What is stored comes back; what is broken or foreign does not, and is never fatal.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "plan/PlanCache.h"

namespace dovetail::plan {
namespace {

class PlanCacheTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / fmt::format("dovetail-cache-test-{}", ::getpid());
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
  PlanCache::Key key{"problem()", "cpu", "native", "1", "measured"};
  Evaluation evaluation() const {
    Trial trial;
    trial.candidate.provider = "native";
    trial.candidate.algorithm = "pointwise:v16";
    trial.candidate.inputLayouts = {"aBcd16b"};
    trial.candidate.outputLayouts = {""};
    trial.outcome = TrialOutcome::Measured;
    trial.micros = 12.5;
    trial.kernel = {1, 2, 3};
    return {{trial}, {{"onednn", {"", "no such op"}}}};
  }
};

TEST_F(PlanCacheTest, remembersAcrossOpening) {
  {
    auto cache = PlanCache::open(folder, {});
    ASSERT_TRUE(cache) << cache.error().message;
    EXPECT_FALSE((*cache)->find(key));
    (*cache)->store(key, evaluation());
  }
  auto cache = PlanCache::open(folder, {});
  ASSERT_TRUE(cache);
  auto found = (*cache)->find(key);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->trials.size(), 1u);
  EXPECT_EQ(found->trials[0].candidate.algorithm, "pointwise:v16");
  EXPECT_EQ(found->trials[0].kernel, (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(found->trials[0].micros, 12.5);
  EXPECT_EQ(found->refusals[0].second.reason, "no such op");
  PlanCache::Key other = key;
  other.version = "2";
  EXPECT_FALSE((*cache)->find(other));
}

TEST_F(PlanCacheTest, storingAgainReplaces) {
  auto cache = PlanCache::open(folder, {});
  ASSERT_TRUE(cache);
  (*cache)->store(key, evaluation());
  Evaluation second = evaluation();
  second.trials[0].micros = 7;
  (*cache)->store(key, second);
  EXPECT_EQ((*cache)->find(key)->trials[0].micros, 7);
}

TEST_F(PlanCacheTest, setsACorruptFileAside) {
  std::ofstream(folder / "plans.sqlite")
      << "this is no database, and long enough to be taken for a header of one "
         "hundred bytes by whoever reads only so far as that";
  auto cache = PlanCache::open(folder, {});
  ASSERT_TRUE(cache) << cache.error().message;
  (*cache)->store(key, evaluation());
  EXPECT_TRUE((*cache)->find(key));
  EXPECT_TRUE(std::filesystem::exists(folder / "plans.sqlite.corrupt"));
}

TEST_F(PlanCacheTest, saysWhereItCannotBe) {
  std::ofstream(folder / "file") << "x";
  auto cache = PlanCache::open(folder / "file", {});
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(cache.error().message.find("--cache"), std::string::npos);
}

TEST(PlanCache, withoutAFolderForgets) {
  auto cache = PlanCache::open("", {});
  ASSERT_TRUE(cache);
  PlanCache::Key key{"p", "t", "n", "1", "m"};
  (*cache)->store(key, {});
  EXPECT_FALSE((*cache)->find(key));
}

} // namespace
} // namespace dovetail::plan
