// SPDX-License-Identifier: Apache-2.0
//
// Counts, and the two forms in which they are printed.
#include "CheckReport.h"

#include <cstdio>

#include <fmt/format.h>

namespace dovetail::cli {

void CandidateCount::add(const plan::Trial &trial) {
  ++candidates;
  if (!trial.usable()) {
    ++failed[plan::outcomeName(trial.outcome)];
    return;
  }
  ++correct;
  builtOnly += !trial.compared && trial.candidate.provider != "reference";
}

void CandidateCount::add(const plan::Evaluation &evaluation) {
  for (const plan::Trial &trial : evaluation.trials)
    add(trial);
  refused += evaluation.refusals.size();
}

size_t CandidateCount::failures() const {
  size_t sum = 0;
  for (const auto &entry : failed)
    sum += entry.second;
  return sum;
}

nlohmann::json CandidateCount::toJson() const {
  return {{"candidates", candidates},
          {"correct", correct},
          {"built_only", builtOnly},
          {"refused", refused},
          {"failed", failed}};
}

size_t CheckReport::addModel(const std::string &path) {
  models.push_back({path, 0, 0, 0, {}});
  return models.size() - 1;
}

void CheckReport::addProblem(const std::vector<size_t> &of) {
  ++all.problems;
  for (size_t model : of)
    ++models[model].problems;
}

void CheckReport::add(const plan::Evaluation &evaluation, const std::string &problem,
                      const std::vector<size_t> &of, bool known) {
  auto take = [&](ModelCount &model) {
    ++model.checked;
    model.known += known;
    model.count.add(evaluation);
  };
  take(all);
  for (size_t model : of)
    take(models[model]);
  for (const plan::Trial &trial : evaluation.trials) {
    providers[trial.candidate.provider].add(trial);
    if (!trial.usable())
      findings.push_back(
          {problem, trial.candidate.label(), plan::outcomeName(trial.outcome), trial.detail});
  }
  for (const auto &entry : evaluation.refusals)
    ++providers[entry.first].refused;
}

void CheckReport::addFailure(const Error &error, const std::string &problem,
                             const std::vector<size_t> &of) {
  ++all.checked;
  for (size_t model : of)
    ++models[model].checked;
  findings.push_back({problem, "all candidates", "not evaluated", error.message});
}

void CheckReport::printJson() const {
  auto problemCounts = [](const ModelCount &model) {
    return nlohmann::json{{"problems", model.problems},
                          {"checked", model.checked},
                          {"known", model.known},
                          {"left", model.problems - model.checked}};
  };
  nlohmann::json report = problemCounts(all);
  report["models"] = models.size();
  report["total"] = all.count.toJson();
  report["by_model"] = nlohmann::json::array();
  for (const ModelCount &model : models) {
    nlohmann::json item = problemCounts(model);
    item["model"] = model.path;
    item.update(model.count.toJson());
    report["by_model"].push_back(std::move(item));
  }
  report["providers"] = nlohmann::json::object();
  for (const auto &[name, count] : providers)
    report["providers"][name] = count.toJson();
  report["failures"] = nlohmann::json::array();
  for (const Finding &finding : findings)
    report["failures"].push_back({{"candidate", finding.candidate},
                                  {"outcome", finding.outcome},
                                  {"detail", finding.detail},
                                  {"problem", finding.problem}});
  std::printf("%s\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

namespace {

std::string countText(const CandidateCount &count) {
  std::string text = fmt::format("{} candidates, {} correct", count.candidates, count.correct);
  if (count.builtOnly > 0)
    text += fmt::format(" ({} built only)", count.builtOnly);
  for (const auto &[type, number] : count.failed)
    text += fmt::format(", {} {}", number, type);
  if (count.refused > 0)
    text += fmt::format("; {} refused", count.refused);
  return text;
}

} // namespace

void CheckReport::print() const {
  for (const Finding &finding : findings)
    std::printf("%s %s%s%s\n  %s\n", finding.candidate.c_str(), finding.outcome.c_str(),
                finding.detail.empty() ? "" : ": ", finding.detail.c_str(),
                finding.problem.c_str());
  auto progress = [](const ModelCount &model) {
    std::string text = fmt::format("{} problems, {} checked", model.problems, model.checked);
    if (model.known > 0)
      text += fmt::format(" ({} before)", model.known);
    if (model.checked < model.problems)
      text += fmt::format("; --budget left {}", model.problems - model.checked);
    return text;
  };
  if (models.size() > 1)
    for (const ModelCount &model : models)
      std::printf("%s: %s; %s\n", model.path.c_str(), progress(model).c_str(),
                  countText(model.count).c_str());
  std::printf("%zu model%s, %s; %s\n", models.size(), models.size() == 1 ? "" : "s",
              progress(all).c_str(), countText(all.count).c_str());
  for (const auto &[name, count] : providers)
    std::printf("%-12s %s\n", name.c_str(), countText(count).c_str());
}

} // namespace dovetail::cli
