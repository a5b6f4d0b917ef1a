// SPDX-License-Identifier: Apache-2.0
//
// What 'dovetail check' counts and prints: candidates by provider, problems and candidates by
// model, and each failure with its problem. A problem that several models pose counts for each of
// them, and once in all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plan/Trial.h"

namespace dovetail::cli {

struct CandidateCount {
  size_t candidates = 0;
  size_t correct = 0; ///< built, and where they ran right
  /// Of those that are correct: built but not held against the reference, since extents that only
  /// the run tells leave nothing to run them on. The reference itself is the truth, not one of
  /// these.
  size_t builtOnly = 0;
  size_t refused = 0;                   ///< reasons why there is no candidate
  std::map<std::string, size_t> failed; ///< by type

  void add(const plan::Evaluation &evaluation);
  void add(const plan::Trial &trial);
  size_t failures() const;
  nlohmann::json toJson() const;
};

class CheckReport {
public:
  /// Returns the model's number.
  size_t addModel(const std::string &path);
  /// A problem that these models pose.
  void addProblem(const std::vector<size_t> &models);
  /// What became of it. `known`: all of it was found right by an earlier check.
  void add(const plan::Evaluation &evaluation, const std::string &problem,
           const std::vector<size_t> &models, bool known);
  /// It could not be evaluated at all.
  void addFailure(const Error &error, const std::string &problem,
                  const std::vector<size_t> &models);
  bool allRight() const { return findings.empty(); }
  size_t modelCount() const { return models.size(); }
  void print() const;
  void printJson() const;

private:
  struct ModelCount {
    std::string path;
    size_t problems = 0, checked = 0, known = 0;
    CandidateCount count;
  };
  struct Finding {
    std::string problem, candidate, outcome, detail;
  };
  std::vector<ModelCount> models;
  ModelCount all;
  std::map<std::string, CandidateCount> providers;
  std::vector<Finding> findings;
};

} // namespace dovetail::cli
