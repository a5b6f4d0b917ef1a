// SPDX-License-Identifier: Apache-2.0
//
// Which of several whole plans is taken, by their times in races: rounds in which they run in
// turns. Machines change their pace for minutes, so that times of different minutes do not compare;
// plans are compared by the ratio of their times within rounds, over all rounds in which both ever
// ran. Who holds the title keeps it unless another is clearly faster; in the end it has to stand up
// to the plans of one side alone. A pure function of times: a test makes them up.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "support/Expected.h"

namespace dovetail::plan {

/// Rounds between which memory stays where it is. Where weights and results come to lie makes a
/// difference, so rounds of one heat resemble each other.
struct Heat {
  /// [round][contender of the race], in microseconds; negative where it did not run.
  std::vector<std::vector<double>> rounds;
};

/// Times of one contender over those of another: the median of all rounds, and its interval.
struct TimeRatio {
  double middle = -1, low = -1, high = -1;
  size_t rounds = 0;
  bool isKnown() const { return rounds > 0; }
  bool isClearlyBelow1() const { return isKnown() && high < 1; }
};

/// The interval holds 95 % of what medians come to as heats, and rounds in them, are drawn again
/// with replacement (Davison and Hinkley 1997, resampling of clusters). The same ratios, by heats,
/// give the same interval.
TimeRatio summarizeRatios(const std::vector<std::vector<double>> &ratiosOfHeats);

/// Whoever runs plans.
class RaceTrack {
public:
  virtual ~RaceTrack() = default;
  /// Lets contenders, by their numbers, run against each other. No heats where nothing may be
  /// timed.
  virtual Expected<std::vector<Heat>> race(const std::vector<size_t> &contenders) = 0;
};

class Championship {
public:
  explicit Championship(RaceTrack &track) : track(track) {}

  /// `chargedMicros` are added to each of its times; `isSide`: a plan of one side alone, to which
  /// the champion has to stand up. Gives its number; the first one holds the title.
  size_t add(double chargedMicros, bool isSide);
  /// Lets all that were added run. Whoever is clearly faster than the champion takes the title.
  /// False where nothing was timed.
  Expected<bool> open();
  /// Lets a contender run against the champion.
  Status challenge(size_t contender);
  /// The champion against the sides: as often as needed to tell, but a few times at most. A side
  /// that is faster by more than a hundredth takes the title even where that is not clear.
  Status confirm();

  size_t champion() const { return title; }
  /// Charges included.
  TimeRatio ratio(size_t of, size_t to) const;
  /// Times as they were measured, without charges, over all rounds; its ratio to the champion.
  WholeModelTiming timing(size_t contender, const std::string &name) const;

private:
  struct Race {
    std::vector<size_t> contenders;
    std::vector<Heat> heats;
  };
  Status race(std::vector<size_t> among);
  std::vector<size_t> rivals() const;

  RaceTrack &track;
  std::vector<double> charges; ///< of each contender
  std::vector<bool> sides;
  std::vector<Race> races;
  size_t title = 0;
};

} // namespace dovetail::plan
