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
#include "artifact/PlanPreparation.h"
#include "plan/Championship.h"
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

/// Runs the contenders in turns for a while; those without a session do not run.
Expected<plan::Heat> runHeat(const std::vector<Contender *> &contenders) {
  constexpr double kSeconds = 1;
  constexpr size_t kMostRounds = 20, kLeastRounds = 3;
  for (Contender *contender : contenders)
    for (int warmUp = 0; warmUp < 2 && contender->session; ++warmUp)
      if (Status status = contender->session->run(); !status)
        return status.takeError();
  plan::Heat heat;
  auto begin = Clock::now();
  for (size_t round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && micros(Clock::now() - begin) > kSeconds * 1e6)
      break;
    std::vector<double> &times = heat.rounds.emplace_back(contenders.size(), -1);
    for (size_t i = 0; i < contenders.size(); ++i) {
      size_t number = (i + round) % contenders.size();
      if (!contenders[number]->session)
        continue;
      auto taken = turn(*contenders[number]);
      if (!taken)
        return taken.takeError();
      times[number] = *taken;
    }
  }
  return heat;
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

plan::Trial numberedTrial(std::string name, double micros) {
  plan::Trial trial;
  trial.candidate.provider = "plans";
  trial.candidate.algorithm = std::move(name);
  trial.outcome = plan::TrialOutcome::Measured;
  trial.micros = trial.low = trial.high = micros;
  return trial;
}

/// Heats as the cache keeps them: a trial for each round and contender, by heat.
plan::Evaluation toEvaluation(const std::vector<plan::Heat> &heats) {
  plan::Evaluation evaluation;
  for (size_t heat = 0; heat < heats.size(); ++heat)
    for (const std::vector<double> &round : heats[heat].rounds)
      for (double micros : round)
        evaluation.trials.push_back(numberedTrial(std::to_string(heat), micros));
  return evaluation;
}

std::vector<plan::Heat> toHeats(const plan::Evaluation &evaluation, size_t contenders) {
  std::vector<plan::Heat> heats;
  std::string last;
  for (size_t i = 0; i + contenders <= evaluation.trials.size(); i += contenders) {
    const std::string &heat = evaluation.trials[i].candidate.algorithm;
    if (heats.empty() || heat != last)
      heats.emplace_back();
    last = heat;
    std::vector<double> &round = heats.back().rounds.emplace_back();
    for (size_t place = 0; place < contenders; ++place)
      round.push_back(evaluation.trials[i + place].micros);
  }
  return heats;
}

/// The plans that compete, sessions in which they run, and what the cache knows of them.
class WholeModelChoice : public plan::RaceTrack {
public:
  WholeModelChoice(plan::Planner &planner, std::shared_ptr<const PluginSet> plugins,
                   plan::PlanCache &cache, const CompileOptions &options)
      : planner(planner), plugins(std::move(plugins)), cache(cache), options(options) {}

  Expected<Plan> run();
  Expected<std::vector<plan::Heat>> race(const std::vector<size_t> &among) override;

private:
  Expected<bool> enter(const char *name, plan::Prefer prefer);
  Status startAll(const std::vector<Contender *> &among, bool isFirstHeat);
  Status observe(Contender &contender);
  void endSessions();
  Expected<Plan> takeChampion();
  /// Tells of a stage before it begins; while plans run nothing is told.
  void announce(const char *stage, size_t done, size_t total, const std::string &what) const {
    if (options.planner.progress)
      options.planner.progress(stage, done, total, what);
  }
  plan::PlanCache::Key keyOf(const std::string &what, const std::string &texts) const {
    return {what + " " + hashHex(texts), options.target.text(), "plans", "5", "measured"};
  }

  plan::Planner &planner;
  std::shared_ptr<const PluginSet> plugins;
  plan::PlanCache &cache;
  const CompileOptions &options;
  std::vector<std::unique_ptr<Contender>> contenders;
  std::map<std::string, int> racesOf; ///< by texts of those that ran
  plan::Championship championship{*this};
};

/// Chooses a plan; false when it is one that competes already.
Expected<bool> WholeModelChoice::enter(const char *name, plan::Prefer prefer) {
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
  championship.add(preparationOf(contender->plan).chargedMicros, prefer != plan::Prefer::Cost);
  contenders.push_back(std::move(contender));
  return true;
}

/// Where in memory weights and intermediate values come to lie makes a difference: they are placed
/// anew for each heat. A contender that does not run drops out; the first may not.
Status WholeModelChoice::startAll(const std::vector<Contender *> &among, bool isFirstHeat) {
  for (Contender *contender : among) {
    bool ran = contender->session != nullptr;
    contender->session.reset();
    if (!isFirstHeat && !ran)
      continue;
    Status status = start(*contender, plugins, options);
    if (status)
      continue;
    if (contender == contenders[0].get() || !isFirstHeat)
      return status;
    contender->session.reset();
    options.log(LogLevel::Warning, "the {} plan does not run: {}", contender->name,
                status.error().message);
  }
  return Status::success();
}

/// From the cache where these were compared before.
Expected<std::vector<plan::Heat>> WholeModelChoice::race(const std::vector<size_t> &numbers) {
  std::vector<Contender *> among;
  std::string texts, names;
  for (size_t number : numbers) {
    among.push_back(contenders[number].get());
    texts += among.back()->text;
    names += (names.empty() ? "" : ", ") + among.back()->name;
  }
  auto key = keyOf("whole model", fmt::format("{}{}", ++racesOf[texts], texts));
  if (auto known = cache.find(key))
    return toHeats(*known, among.size());
  std::vector<plan::Heat> heats;
  if (options.planner.select == plan::Select::Replay)
    return heats;
  constexpr int kHeats = 3;
  for (int number = 0; number < kHeats; ++number) {
    announce("racing whole plans", static_cast<size_t>(number), kHeats, names);
    if (Status status = startAll(among, number == 0); !status)
      return status.takeError();
    auto heat = runHeat(among);
    // Not every model takes noise: divisors, indices into a single row.
    if (!heat && heat.error().kind == ErrorKind::BadInput) {
      options.log(LogLevel::Info, "whole plans are not timed: {}", heat.error().message);
      endSessions();
      return std::vector<plan::Heat>{};
    }
    if (!heat)
      return heat.takeError();
    heats.push_back(std::move(*heat));
  }
  cache.store(key, toEvaluation(heats));
  return heats;
}

/// Tells the planner what the steps of a contender take at their places.
Status WholeModelChoice::observe(Contender &contender) {
  auto key = keyOf("steps", contender.text);
  std::vector<double> steps;
  if (auto known = cache.find(key)) {
    for (const plan::Trial &trial : known->trials)
      steps.push_back(trial.micros);
    planner.observe(contender.plan, steps);
    return Status::success();
  }
  announce("timing steps", 0, 0, contender.name);
  // Its races may be known and its steps not, where a compilation ended in between.
  if (!contender.session && options.planner.select != plan::Select::Replay)
    if (Status status = start(contender, plugins, options); !status)
      contender.session.reset(); // as when it raced
  if (contender.session) {
    auto timed = timeSteps(*contender.session);
    if (!timed)
      return timed.takeError();
    steps = std::move(*timed);
    plan::Evaluation evaluation;
    for (size_t i = 0; i < steps.size(); ++i)
      evaluation.trials.push_back(numberedTrial(std::to_string(i), steps[i]));
    cache.store(key, evaluation);
  }
  planner.observe(contender.plan, steps);
  return Status::success();
}

/// Every race starts anew; meanwhile weights take no memory.
void WholeModelChoice::endSessions() {
  for (const auto &contender : contenders) {
    contender->session.reset();
    contender->memory.clear();
  }
}

Expected<Plan> WholeModelChoice::run() {
  for (auto [name, prefer] :
       {std::pair{"mixed", plan::Prefer::Cost}, std::pair{"library-first", plan::Prefer::Library},
        std::pair{"native-first", plan::Prefer::Native}}) {
    if (auto entered = enter(name, prefer); !entered)
      return entered.takeError();
    // What loops and branches take depends on the data.
    if (!contenders.back()->plan.isStatic() || contenders.back()->plan.blocks.size() > 1)
      return std::move(contenders[0]->plan);
  }
  const size_t first = contenders.size();
  auto isTimed = championship.open();
  if (!isTimed)
    return isTimed.takeError();
  if (!*isTimed)
    return std::move(contenders[0]->plan);
  for (size_t i = 0; i < first; ++i)
    if (Status status = observe(*contenders[i]); !status)
      return status.takeError();
  endSessions();
  for (const char *name : {"refined", "refined twice", "refined three times"}) {
    auto entered = enter(name, plan::Prefer::Cost);
    if (!entered)
      return entered.takeError();
    if (!*entered)
      break;
    if (Status status = championship.challenge(contenders.size() - 1); !status)
      return status.takeError();
    if (Status status = observe(*contenders.back()); !status)
      return status.takeError();
    endSessions();
  }
  if (Status status = championship.confirm(); !status)
    return status.takeError();
  endSessions();
  return takeChampion();
}

Expected<Plan> WholeModelChoice::takeChampion() {
  std::vector<WholeModelTiming> timings;
  for (size_t i = 0; i < contenders.size(); ++i)
    if (WholeModelTiming timing = championship.timing(i, contenders[i]->name); timing.micros >= 0)
      timings.push_back(std::move(timing));
  Plan &plan = contenders[championship.champion()]->plan;
  plan.timings = std::move(timings);
  return std::move(plan);
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
  return WholeModelChoice(planner, std::move(plugins), cache, options).run();
}

} // namespace dovetail
