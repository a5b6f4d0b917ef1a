// SPDX-License-Identifier: Apache-2.0
//
// Interleaved timing of whole plans, and the noise they run on.
#include "driver/WholeModel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "plan/TrialTensor.h"
#include "runtime/Model.h"
#include "support/Hash.h"

namespace dovetail {
namespace {

using Clock = std::chrono::steady_clock;

struct Contender {
  const char *name;
  plan::Prefer prefer;
  Plan plan;
  std::string text;
  std::unique_ptr<Session> session;
  std::vector<std::shared_ptr<void>> memory;
  std::vector<double> samples;
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
  return bindNoise(*contender.session, contender.plan, {}, contender.memory, options.dims);
}

WholeModelTiming summarize(const char *name, std::vector<double> samples) {
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

/// Runs the contenders in turns until the medians are settled or the time is up.
Status race(std::vector<Contender *> &contenders) {
  constexpr double kSeconds = 4;
  constexpr size_t kMostRounds = 60, kLeastRounds = 9;
  for (Contender *contender : contenders)
    for (int warmUp = 0; warmUp < 2; ++warmUp)
      if (Status status = contender->session->run(); !status)
        return status;
  auto begin = Clock::now();
  for (size_t round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && micros(Clock::now() - begin) > kSeconds * 1e6)
      break;
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender *contender = contenders[(i + round) % contenders.size()];
      auto from = Clock::now();
      if (Status status = contender->session->run(); !status)
        return status;
      contender->samples.push_back(micros(Clock::now() - from));
    }
  }
  return Status::success();
}

plan::Evaluation toEvaluation(const std::vector<WholeModelTiming> &timings) {
  plan::Evaluation evaluation;
  for (const WholeModelTiming &timing : timings) {
    plan::Trial trial;
    trial.candidate.provider = "plans";
    trial.candidate.algorithm = timing.name;
    trial.outcome = plan::TrialOutcome::Measured;
    trial.micros = timing.micros;
    trial.low = timing.low;
    trial.high = timing.high;
    evaluation.trials.push_back(std::move(trial));
  }
  return evaluation;
}

std::vector<WholeModelTiming> toTimings(const plan::Evaluation &evaluation) {
  std::vector<WholeModelTiming> timings;
  for (const plan::Trial &trial : evaluation.trials)
    timings.push_back({trial.candidate.algorithm, trial.micros, trial.low, trial.high, false});
  return timings;
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
    for (const Extent &extent : value.extents) {
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
  std::vector<Contender> contenders(3);
  contenders[0].name = "mixed";
  contenders[0].prefer = plan::Prefer::Cost;
  contenders[1].name = "library-first";
  contenders[1].prefer = plan::Prefer::Library;
  contenders[2].name = "native-first";
  contenders[2].prefer = plan::Prefer::Native;
  std::string identity;
  for (Contender &contender : contenders) {
    auto plan = planner.choose(contender.prefer);
    if (!plan)
      return plan.takeError();
    contender.plan = std::move(*plan);
    contender.plan.selection = contenders[0].plan.selection;
    contender.text = planText(contender.plan);
    identity += contender.text;
    if (!contender.plan.isStatic())
      return std::move(contenders[0].plan);
  }
  plan::PlanCache::Key key{"whole model " + hashHex(identity), options.target.text(), "plans", "1",
                           "measured"};
  std::vector<WholeModelTiming> timings;
  if (auto known = cache.find(key)) {
    timings = toTimings(*known);
  } else {
    std::vector<Contender *> running;
    for (size_t i = 0; i < contenders.size(); ++i) {
      bool repeated = false;
      for (size_t j = 0; j < i; ++j)
        repeated |= contenders[j].text == contenders[i].text;
      if (repeated)
        continue;
      if (Status status = start(contenders[i], plugins, options); !status) {
        if (i == 0)
          return status.takeError();
        options.log(LogLevel::Warning, "the {} plan does not run: {}", contenders[i].name,
                    status.error().message);
        continue;
      }
      running.push_back(&contenders[i]);
    }
    if (Status status = race(running); !status)
      return status.takeError();
    for (const Contender *contender : running)
      timings.push_back(summarize(contender->name, contender->samples));
    cache.store(key, toEvaluation(timings));
  }
  auto best = std::min_element(timings.begin(), timings.end(),
                               [](const auto &a, const auto &b) { return a.micros < b.micros; });
  if (best == timings.end())
    return std::move(contenders[0].plan);
  best->chosen = true;
  auto winner = std::find_if(contenders.begin(), contenders.end(), [&](const Contender &contender) {
    return contender.name == best->name;
  });
  Plan plan = std::move(winner == contenders.end() ? contenders[0].plan : winner->plan);
  plan.timings = std::move(timings);
  return plan;
}

} // namespace dovetail
