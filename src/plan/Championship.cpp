// SPDX-License-Identifier: Apache-2.0
//
// Ratios of times within rounds, and the order of races.
#include "plan/Championship.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace dovetail::plan {
namespace {

double medianOf(std::vector<double> &numbers) {
  auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

/// Where a contender stands in a race; its end where it does not run.
size_t placeOf(const std::vector<size_t> &contenders, size_t contender) {
  return static_cast<size_t>(std::find(contenders.begin(), contenders.end(), contender) -
                             contenders.begin());
}

/// As it is read: a round's time, or nothing where the contender did not run.
double timeOf(const std::vector<double> &round, size_t place) {
  return place < round.size() ? round[place] : -1;
}

} // namespace

TimeRatio summarizeRatios(const std::vector<std::vector<double>> &given) {
  constexpr size_t kDraws = 1000;
  constexpr double kTail = 0.025;
  std::vector<std::vector<double>> heats;
  std::vector<double> all;
  for (const std::vector<double> &heat : given)
    if (!heat.empty()) {
      heats.push_back(heat);
      all.insert(all.end(), heat.begin(), heat.end());
    }
  TimeRatio ratio;
  if (heats.empty())
    return ratio;
  ratio.rounds = all.size();
  ratio.middle = medianOf(all);
  std::mt19937_64 random(1); // what it gives is the same everywhere, unlike distributions
  auto draw = [&](size_t count) { return static_cast<size_t>(random() % count); };
  std::vector<double> medians, drawn;
  for (size_t i = 0; i < kDraws; ++i) {
    drawn.clear();
    for (size_t h = 0; h < heats.size(); ++h) {
      const std::vector<double> &heat = heats[draw(heats.size())];
      for (size_t r = 0; r < heat.size(); ++r)
        drawn.push_back(heat[draw(heat.size())]);
    }
    medians.push_back(medianOf(drawn));
  }
  std::sort(medians.begin(), medians.end());
  ratio.low = medians[static_cast<size_t>(kTail * kDraws)];
  ratio.high = medians[static_cast<size_t>((1 - kTail) * kDraws) - 1];
  return ratio;
}

size_t Championship::add(double chargedMicros, bool isSide) {
  charges.push_back(chargedMicros);
  sides.push_back(isSide);
  return charges.size() - 1;
}

Status Championship::race(std::vector<size_t> among) {
  auto heats = track.race(among);
  if (!heats)
    return heats.takeError();
  races.push_back({std::move(among), std::move(*heats)});
  return Status::success();
}

TimeRatio Championship::ratio(size_t of, size_t to) const {
  std::vector<std::vector<double>> heats;
  for (const Race &race : races) {
    size_t a = placeOf(race.contenders, of), b = placeOf(race.contenders, to);
    for (const Heat &heat : race.heats) {
      std::vector<double> &ratios = heats.emplace_back();
      for (const std::vector<double> &round : heat.rounds)
        if (double above = timeOf(round, a), below = timeOf(round, b); above >= 0 && below > 0)
          ratios.push_back((above + charges[of]) / (below + charges[to]));
    }
  }
  return summarizeRatios(heats);
}

Expected<bool> Championship::open() {
  std::vector<size_t> all;
  for (size_t i = 0; i < charges.size(); ++i)
    all.push_back(i);
  if (Status status = race(all); !status)
    return status.takeError();
  if (races.back().heats.empty())
    return false;
  for (size_t i : all)
    if (i != title && ratio(i, title).isClearlyBelow1())
      title = i;
  return true;
}

Status Championship::challenge(size_t contender) {
  if (Status status = race({title, contender}); !status)
    return status;
  if (ratio(contender, title).isClearlyBelow1())
    title = contender;
  return Status::success();
}

/// Sides that hold no title and can run, as far as is known.
std::vector<size_t> Championship::rivals() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < sides.size(); ++i)
    if (sides[i] && i != title && ratio(i, i).isKnown())
      found.push_back(i);
  return found;
}

Status Championship::confirm() {
  constexpr int kMostRaces = 3;
  constexpr double kTie = 0.99; // what lies above is as good: memory lies elsewhere in each process
  for (int i = 0; i < kMostRaces; ++i) {
    std::vector<size_t> among{title};
    bool isOpen = false;
    for (size_t rival : rivals()) {
      TimeRatio to = ratio(rival, title);
      isOpen |= !to.isKnown() || (to.middle < 1 && to.high >= 1);
      among.push_back(rival);
    }
    if (!isOpen)
      break;
    if (Status status = race(among); !status)
      return status;
    if (races.back().heats.empty())
      break; // nothing may be timed
  }
  size_t best = title;
  double least = 1;
  for (size_t rival : rivals())
    if (TimeRatio to = ratio(rival, title);
        to.isKnown() && (to.middle < kTie || to.isClearlyBelow1()) && to.middle < least) {
      best = rival;
      least = to.middle;
    }
  title = best;
  return Status::success();
}

WholeModelTiming Championship::timing(size_t contender, const std::string &name) const {
  WholeModelTiming timing;
  timing.name = name;
  std::vector<double> samples;
  for (const Race &race : races)
    for (const Heat &heat : race.heats)
      for (const std::vector<double> &round : heat.rounds)
        if (double micros = timeOf(round, placeOf(race.contenders, contender)); micros >= 0)
          samples.push_back(micros);
  if (samples.empty())
    return timing;
  std::sort(samples.begin(), samples.end());
  // Ranks of the binomial 95 % interval of a median.
  const double n = static_cast<double>(samples.size());
  auto rank = [&](double at) { return samples[static_cast<size_t>(std::clamp(at, 0.0, n - 1))]; };
  timing.micros = samples[samples.size() / 2];
  timing.low = rank(std::floor(n / 2 - 0.98 * std::sqrt(n)));
  timing.high = rank(std::ceil(n / 2 + 0.98 * std::sqrt(n)));
  timing.chosen = contender == title;
  if (TimeRatio to = ratio(contender, title); to.isKnown()) {
    timing.ratio = to.middle;
    timing.ratioLow = to.low;
    timing.ratioHigh = to.high;
  }
  return timing;
}

} // namespace dovetail::plan
