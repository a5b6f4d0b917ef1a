// SPDX-License-Identifier: Apache-2.0
//
// Championships of made-up times: on machines that change their pace, with noise, and with memory
// that lies better in one heat than in another.
#include "plan/Championship.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace dovetail::plan {
namespace {

/// Times are a function of contender, race, heat of the race and round; noise of some share of them
/// is added, the same in each test.
struct MadeUpTrack : RaceTrack {
  using Times = std::function<double(size_t contender, size_t race, size_t heat)>;
  explicit MadeUpTrack(Times times, double noise = 0.03) : times(std::move(times)), noise(noise) {}

  Expected<std::vector<Heat>> race(const std::vector<size_t> &among) override {
    ran.push_back(among);
    std::vector<Heat> heats(3);
    for (size_t h = 0; h < heats.size(); ++h)
      for (int round = 0; round < 7; ++round) {
        std::vector<double> &all = heats[h].rounds.emplace_back();
        for (size_t contender : among) {
          double time = times(contender, ran.size() - 1, h);
          all.push_back(time < 0 ? time : time * (1 + noise * std::sin(12.9898 * ++drawn)));
        }
      }
    return heats;
  }

  Times times;
  double noise;
  int drawn = 0;
  std::vector<std::vector<size_t>> ran;
};

/// mixed, library-first, native-first.
void addThree(Championship &championship) {
  championship.add(0, false);
  championship.add(0, true);
  championship.add(0, true);
}

void openAndConfirm(Championship &championship) {
  auto opened = championship.open();
  ASSERT_TRUE(opened);
  EXPECT_TRUE(*opened);
  ASSERT_TRUE(championship.confirm());
}

TEST(TimeRatios, areMediansWithTheirInterval) {
  EXPECT_FALSE(summarizeRatios({}).isKnown());
  EXPECT_FALSE(summarizeRatios({{}, {}}).isKnown());
  TimeRatio same = summarizeRatios({{0.9, 0.9}, {0.9}});
  EXPECT_EQ(same.rounds, 3u);
  EXPECT_EQ(same.middle, 0.9);
  EXPECT_EQ(same.low, 0.9);
  EXPECT_EQ(same.high, 0.9);
  EXPECT_TRUE(same.isClearlyBelow1());
  // One heat of three that says otherwise leaves it open, however many rounds it had.
  std::vector<double> faster(20, 0.9), slower(20, 1.1);
  TimeRatio unclear = summarizeRatios({faster, slower, faster});
  EXPECT_EQ(unclear.middle, 0.9);
  EXPECT_FALSE(unclear.isClearlyBelow1());
  EXPECT_LE(unclear.low, unclear.middle);
  EXPECT_EQ(unclear.high, 1.1);
}

TEST(Championship, theFirstStaysWhereNoneIsClearlyFaster) {
  MadeUpTrack track([](size_t contender, size_t, size_t) { return 1000 - 0.5 * contender; });
  Championship championship(track);
  addThree(championship);
  openAndConfirm(championship);
  EXPECT_EQ(championship.champion(), 0u);
}

TEST(Championship, whoIsClearlyFasterTakesTheTitle) {
  MadeUpTrack track([](size_t contender, size_t, size_t) { return contender == 2 ? 800 : 1000; });
  Championship championship(track);
  addThree(championship);
  openAndConfirm(championship);
  EXPECT_EQ(championship.champion(), 2u);
  WholeModelTiming timing = championship.timing(0, "mixed");
  EXPECT_FALSE(timing.chosen);
  EXPECT_NEAR(timing.ratio, 1.25, 0.05);
  EXPECT_LE(timing.ratioLow, timing.ratio);
  EXPECT_GE(timing.ratioHigh, timing.ratio);
  EXPECT_TRUE(championship.timing(2, "native-first").chosen);
  EXPECT_EQ(track.ran.size(), 1u); // nothing is left to confirm
}

TEST(Championship, aSlowerMinuteDecidesNothing) {
  // All races but the first find the machine at two thirds of its pace. The challengers are a
  // little slower than the first.
  const double alone[] = {41000, 43000, 46000, 42500, 42000};
  MadeUpTrack track([&](size_t contender, size_t race, size_t) {
    return alone[contender] * (race == 0 ? 1 : 1.5);
  });
  Championship championship(track);
  addThree(championship);
  ASSERT_TRUE(championship.open());
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(championship.challenge(championship.add(0, false)));
  ASSERT_TRUE(championship.confirm());
  EXPECT_EQ(championship.champion(), 0u);
}

TEST(Championship, aFasterChallengerWinsInSlowerMinutes) {
  const double alone[] = {1000, 1100, 1200, 900};
  MadeUpTrack track([&](size_t contender, size_t race, size_t) {
    return alone[contender] * (race == 0 ? 1 : 2);
  });
  Championship championship(track);
  addThree(championship);
  ASSERT_TRUE(championship.open());
  ASSERT_TRUE(championship.challenge(championship.add(0, false)));
  EXPECT_EQ(championship.champion(), 3u);
  ASSERT_TRUE(championship.confirm());
  EXPECT_EQ(championship.champion(), 3u);
  // It had not run against the sides: that was made up for.
  EXPECT_EQ(track.ran.back(), (std::vector<size_t>{3, 1, 2}));
}

TEST(Championship, aChallengerThatWasLuckyInOneHeatDoesNotWin) {
  MadeUpTrack track([](size_t contender, size_t race, size_t heat) {
    return contender == 3 && race == 1 ? (heat == 0 ? 700 : 1010) : 1000;
  });
  Championship championship(track);
  addThree(championship);
  ASSERT_TRUE(championship.open());
  ASSERT_TRUE(championship.challenge(championship.add(0, false)));
  EXPECT_EQ(championship.champion(), 0u);
}

TEST(Championship, theChampionStandsUpToTheSides) {
  // The refined plan betters the mixed one, and by its race with that it would be the winner; the
  // library's is better still, if by less than noise shows in a single race.
  const double alone[] = {1000, 970, 1500, 990};
  MadeUpTrack track([&](size_t contender, size_t, size_t) { return alone[contender]; }, 0.06);
  Championship championship(track);
  addThree(championship);
  ASSERT_TRUE(championship.open());
  ASSERT_TRUE(championship.challenge(championship.add(0, false)));
  ASSERT_TRUE(championship.confirm());
  EXPECT_EQ(championship.champion(), 1u);
}

TEST(Championship, chargesCountLikeTime) {
  for (auto [charged, champion] : {std::pair{0.0, 0u}, std::pair{300.0, 1u}}) {
    MadeUpTrack track(
        [](size_t contender, size_t, size_t) { return contender == 0 ? 1000 : 1150; });
    Championship championship(track);
    championship.add(charged, false);
    championship.add(0, true);
    openAndConfirm(championship);
    EXPECT_EQ(championship.champion(), champion);
    EXPECT_NEAR(championship.timing(0, "mixed").micros, 1000, 30); // times stay times
  }
}

TEST(Championship, whatDoesNotRunNeverWins) {
  MadeUpTrack track([](size_t contender, size_t, size_t) { return contender == 1 ? -1 : 1000; });
  Championship championship(track);
  addThree(championship);
  openAndConfirm(championship);
  EXPECT_EQ(championship.champion(), 0u);
  EXPECT_LT(championship.timing(1, "library-first").micros, 0);
}

TEST(Championship, withoutTimesThereIsNone) {
  struct : RaceTrack {
    Expected<std::vector<Heat>> race(const std::vector<size_t> &) override {
      return std::vector<Heat>();
    }
  } track;
  Championship championship(track);
  addThree(championship);
  auto opened = championship.open();
  ASSERT_TRUE(opened);
  EXPECT_FALSE(*opened);
  ASSERT_TRUE(championship.challenge(championship.add(0, false)));
  ASSERT_TRUE(championship.confirm());
  EXPECT_EQ(championship.champion(), 0u);
}

TEST(Championship, theSameTimesGiveTheSameChampion) {
  auto hold = [] {
    MadeUpTrack track([](size_t contender, size_t race,
                         size_t heat) { return 1000 + 7.0 * contender * (heat + race) - 9; },
                      0.1);
    Championship championship(track);
    addThree(championship);
    EXPECT_TRUE(championship.open());
    EXPECT_TRUE(championship.challenge(championship.add(0, false)));
    EXPECT_TRUE(championship.confirm());
    TimeRatio ratio = championship.ratio(1, 0);
    return std::make_tuple(championship.champion(), ratio.middle, ratio.low, ratio.high);
  };
  EXPECT_EQ(hold(), hold());
}

} // namespace
} // namespace dovetail::plan
