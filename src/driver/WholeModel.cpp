// SPDX-License-Identifier: Apache-2.0
//
// Interleaved timing of whole plans, and the noise they run on.
#include "driver/WholeModel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "artifact/PlanMemory.h"
#include "plan/TrialTensor.h"
#include "runtime/Model.h"
#include "support/Hash.h"

namespace dovetail {
namespace {

using Clock = std::chrono::steady_clock;

struct Contender {
  std::string name;
  Plan plan;
  std::string text;
  std::unique_ptr<Session> session;
  std::vector<std::shared_ptr<void>> memory;
  WholeModelTiming timing;
};

double micros(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

Status start(Contender &contender, const std::shared_ptr<const PluginSet> &plugins,
             const CompileOptions &options) {
  ModelOptions modelOptions;
  modelOptions.plugins = plugins;
  modelOptions.threads = options.target.threads;
  modelOptions.log = options.log;
  auto model = Model::create(contender.plan, modelOptions);
  if (!model)
    return model.takeError();
  auto session = Session::create(*model);
  if (!session)
    return session.takeError();
  contender.session = std::move(*session);
  contender.memory.clear();
  return bindNoise(*contender.session, contender.plan, {}, contender.memory, options.dims);
}

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

WholeModelTiming summarize(const std::string &name, std::vector<double> samples) {
  WholeModelTiming timing;
  timing.name = name;
  if (samples.empty())
    return timing;
  std::sort(samples.begin(), samples.end());
  double n = static_cast<double>(samples.size());
  auto rank = [&](double at) { return samples[static_cast<size_t>(std::clamp(at, 0.0, n - 1))]; };
  timing.micros = samples[samples.size() / 2];
  timing.low = rank(std::floor(n / 2 - 0.98 * std::sqrt(n)));
  timing.high = rank(std::ceil(n / 2 + 0.98 * std::sqrt(n)));
  return timing;
}

/// A turn of one contender: its first run finds the caches as another one left them and does not
/// count; the others find what a program that runs one model finds. Their median, in microseconds.
Expected<double> turn(Contender &contender) {
  constexpr double kTurnMicros = 2e4;
  constexpr size_t kMostRuns = 50;
  std::vector<double> samples;
  double spent = 0;
  for (size_t run = 0; run == 0 || samples.empty() || (spent < kTurnMicros && run < kMostRuns);
       ++run) {
    auto from = Clock::now();
    if (Status status = contender.session->run(); !status)
      return status.takeError();
    double taken = micros(Clock::now() - from);
    spent += taken;
    if (run > 0)
      samples.push_back(taken);
  }
  return median(std::move(samples));
}

using Samples = std::vector<std::vector<double>>; // [contenders][rounds], in microseconds

/// Runs the contenders in turns for a while.
Status runRounds(const std::vector<Contender *> &contenders, Samples &samples) {
  constexpr double kSeconds = 1;
  constexpr size_t kMostRounds = 20, kLeastRounds = 3;
  for (Contender *contender : contenders)
    for (int warmUp = 0; warmUp < 2; ++warmUp)
      if (Status status = contender->session->run(); !status)
        return status;
  auto begin = Clock::now();
  for (size_t round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && micros(Clock::now() - begin) > kSeconds * 1e6)
      break;
    for (size_t i = 0; i < contenders.size(); ++i) {
      size_t number = (i + round) % contenders.size();
      auto taken = turn(*contenders[number]);
      if (!taken)
        return taken.takeError();
      samples[number].push_back(*taken);
    }
  }
  return Status::success();
}

/// Fills the timings and puts the fastest first. The machine may change its pace in the middle, so
/// that contenders are compared round by round.
void rank(std::vector<Contender *> &contenders, const Samples &samples) {
  std::map<const Contender *, double> shares; // of the time of a round
  for (size_t i = 0; i < contenders.size(); ++i) {
    contenders[i]->timing = summarize(contenders[i]->name, samples[i]);
    std::vector<double> ofRounds;
    for (size_t round = 0; round < samples[i].size(); ++round) {
      double sum = 0;
      for (const std::vector<double> &others : samples)
        sum += others[round];
      ofRounds.push_back(samples[i][round] / sum);
    }
    shares[contenders[i]] = median(std::move(ofRounds));
  }
  std::stable_sort(contenders.begin(), contenders.end(),
                   [&](const Contender *a, const Contender *b) { return shares[a] < shares[b]; });
}

/// Medians of the steps over a few runs, in microseconds.
Expected<std::vector<double>> timeSteps(Session &session) {
  constexpr size_t kRuns = 7;
  std::vector<std::vector<double>> samples;
  std::vector<double> steps, medians;
  for (size_t run = 0; run < kRuns; ++run) {
    if (Status status = session.run(&steps); !status)
      return status.takeError();
    samples.resize(steps.size());
    for (size_t i = 0; i < steps.size(); ++i)
      samples[i].push_back(steps[i]);
  }
  for (std::vector<double> &step : samples)
    medians.push_back(median(std::move(step)));
  return medians;
}

plan::Trial numberedTrial(std::string name, const WholeModelTiming &timing) {
  plan::Trial trial;
  trial.candidate.provider = "plans";
  trial.candidate.algorithm = std::move(name);
  trial.outcome = plan::TrialOutcome::Measured;
  trial.micros = timing.micros;
  trial.low = timing.low;
  trial.high = timing.high;
  return trial;
}

/// The plans that compete, and what the cache knows of them.
class Championship {
public:
  Championship(plan::Planner &planner, std::shared_ptr<const PluginSet> plugins,
               plan::PlanCache &cache, const CompileOptions &options)
      : planner(planner), plugins(std::move(plugins)), cache(cache), options(options) {}

  Expected<Plan> run();

private:
  Expected<bool> enter(const char *name, plan::Prefer prefer);
  Expected<Contender *> compare(std::vector<Contender *> among);
  Status observe(Contender &contender);
  plan::PlanCache::Key keyOf(const std::string &what, const std::string &texts) const {
    return {what + " " + hashHex(texts), options.target.text(), "plans", "4", "measured"};
  }

  plan::Planner &planner;
  std::shared_ptr<const PluginSet> plugins;
  plan::PlanCache &cache;
  const CompileOptions &options;
  std::vector<std::unique_ptr<Contender>> contenders;
};

/// Chooses a plan; false when it is one that competes already.
Expected<bool> Championship::enter(const char *name, plan::Prefer prefer) {
  auto plan = planner.choose(prefer);
  if (!plan)
    return plan.takeError();
  auto keepsBound = [](const Plan &of) { return memoryOf(of).total() <= of.memoryBound; };
  if (!contenders.empty() && !keepsBound(*plan) && keepsBound(contenders[0]->plan))
    return false;
  auto contender = std::make_unique<Contender>();
  contender->name = name;
  contender->plan = std::move(*plan);
  if (!contenders.empty())
    contender->plan.selection = contenders[0]->plan.selection;
  contender->text = planText(contender->plan);
  for (const auto &other : contenders)
    if (other->text == contender->text)
      return false;
  contenders.push_back(std::move(contender));
  return true;
}

/// The fastest, from the cache where these were compared before; fills the timings. Nothing where
/// none was timed, nor may be. A contender that does not run drops out; the first may not.
Expected<Contender *> Championship::compare(std::vector<Contender *> among) {
  std::string texts;
  for (const Contender *contender : among)
    texts += contender->text;
  auto key = keyOf("whole model", texts);
  if (auto known = cache.find(key)) {
    Contender *fastest = nullptr;
    for (const plan::Trial &trial : known->trials) // the fastest first
      for (Contender *contender : among)
        if (contender->name == trial.candidate.algorithm) {
          contender->timing = {contender->name, trial.micros, trial.low, trial.high, false};
          fastest = fastest ? fastest : contender;
        }
    return fastest;
  }
  if (options.planner.select == plan::Select::Replay)
    return nullptr;
  // Where in memory weights and intermediate values come to lie makes a difference: they are placed
  // anew for each heat.
  constexpr int kHeats = 3;
  Samples samples;
  for (int heat = 0; heat < kHeats; ++heat) {
    for (Contender *contender : among) {
      contender->session.reset();
      Status status = start(*contender, plugins, options);
      if (status)
        continue;
      if (contender == contenders[0].get() || heat > 0)
        return status.takeError();
      options.log(LogLevel::Warning, "the {} plan does not run: {}", contender->name,
                  status.error().message);
    }
    if (heat == 0)
      std::erase_if(among, [](const Contender *contender) { return !contender->session; });
    samples.resize(among.size());
    if (Status status = runRounds(among, samples); !status)
      return status.takeError();
  }
  rank(among, samples);
  plan::Evaluation evaluation;
  for (const Contender *contender : among)
    evaluation.trials.push_back(numberedTrial(contender->name, contender->timing));
  cache.store(key, evaluation);
  return among.front();
}

/// Tells the planner what the steps of a contender take at their places, and ends its session.
Status Championship::observe(Contender &contender) {
  auto key = keyOf("steps", contender.text);
  std::vector<double> steps;
  if (auto known = cache.find(key)) {
    for (const plan::Trial &trial : known->trials)
      steps.push_back(trial.micros);
  } else if (contender.session) {
    auto timed = timeSteps(*contender.session);
    if (!timed)
      return timed.takeError();
    steps = std::move(*timed);
    plan::Evaluation evaluation;
    for (size_t i = 0; i < steps.size(); ++i)
      evaluation.trials.push_back(
          numberedTrial(std::to_string(i), {"", steps[i], steps[i], steps[i], false}));
    cache.store(key, evaluation);
  }
  planner.observe(contender.plan, steps);
  contender.session.reset(); // every race starts anew; meanwhile its weights take no memory
  contender.memory.clear();
  return Status::success();
}

Expected<Plan> Championship::run() {
  for (auto [name, prefer] :
       {std::pair{"mixed", plan::Prefer::Cost}, std::pair{"library-first", plan::Prefer::Library},
        std::pair{"native-first", plan::Prefer::Native}}) {
    if (auto entered = enter(name, prefer); !entered)
      return entered.takeError();
    // What loops and branches take depends on the data.
    if (!contenders.back()->plan.isStatic() || contenders.back()->plan.blocks.size() > 1)
      return std::move(contenders[0]->plan);
  }
  std::vector<Contender *> all;
  for (const auto &contender : contenders)
    all.push_back(contender.get());
  auto winner = compare(all);
  if (!winner)
    return winner.takeError();
  if (!*winner)
    return std::move(contenders[0]->plan);
  for (Contender *contender : all)
    if (Status status = observe(*contender); !status)
      return status.takeError();
  for (const char *name : {"refined", "refined twice", "refined three times"}) {
    auto entered = enter(name, plan::Prefer::Cost);
    if (!entered)
      return entered.takeError();
    if (!*entered)
      break;
    Contender &refined = *contenders.back();
    auto faster = compare({*winner, &refined});
    if (!faster)
      return faster.takeError();
    if (Status status = observe(refined); !status)
      return status.takeError();
    winner = *faster ? *faster : *winner;
  }
  (*winner)->timing.chosen = true;
  std::vector<WholeModelTiming> timings;
  for (const auto &contender : contenders)
    if (contender->timing.micros >= 0)
      timings.push_back(contender->timing);
  (*winner)->plan.timings = std::move(timings);
  return std::move((*winner)->plan);
}

} // namespace

Status bindNoise(Session &session, const Plan &plan, const std::vector<bool> &bound,
                 std::vector<std::shared_ptr<void>> &memory, const SymbolValues &dims) {
  const PlanBlock &block = plan.blocks.front();
  for (uint32_t i = 0; i < block.inputs.size(); ++i) {
    if (i < bound.size() && bound[i])
      continue;
    const PlanValue &value = block.values[block.inputs[i]];
    std::vector<int64_t> extents;
    int64_t elements = 1;
    for (const Extent &extent : borderExtents(plan, true, i)) {
      auto number = extent.evaluate(dims);
      if (!number)
        return badInput("input '{}' has the extent {}, which is not fixed; give the input with "
                        "--input or the value "
                        "with --dim {}=N",
                        plan.inputNames[i], extent.text(), extent.symbols().front());
      extents.push_back(*number);
      elements *= *number;
    }
    std::vector<uint8_t> bytes = plan::noise(value.type, elements, i + 1);
    std::shared_ptr<void> data(
        std::aligned_alloc(64, std::max<size_t>(64, (bytes.size() + 63) / 64 * 64)), std::free);
    std::memcpy(data.get(), bytes.data(), bytes.size());
    memory.push_back(data);
    if (Status status = session.bindInput(i, data.get(), extents); !status)
      return status;
  }
  return Status::success();
}

Expected<Plan> chooseByWholeModel(plan::Planner &planner, std::shared_ptr<const PluginSet> plugins,
                                  plan::PlanCache &cache, const CompileOptions &options) {
  return Championship(planner, std::move(plugins), cache, options).run();
}

} // namespace dovetail
