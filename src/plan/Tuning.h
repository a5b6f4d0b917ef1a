// SPDX-License-Identifier: Apache-2.0
//
// Candidates on their way to the machine that can measure them, and their times on the way back:
// one file with the problems, the kernels, and all that stands in the plan cache's keys.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/Planner.h"

namespace dovetail::plan {

struct TuningProblem {
  PosedProblem posed;
  Evaluation evaluation;          ///< with kernels
  std::vector<std::string> tried; ///< providers whose kernels were run
};

struct Tuning {
  std::string model, producer;                  ///< file name; version of Dovetail that exported
  Target target;                                ///< of the kernels
  uint64_t footprintBytes = 0;                  ///< of the model, as in EvaluationOptions
  std::map<std::string, std::string> providers; ///< name -> version
  std::vector<TuningProblem> problems;          ///< what takes longest first
  // Once something was measured:
  std::string source;     ///< digest of the exported file
  std::string measuredOn; ///< for people
  std::string machine;    ///< all that is known of it, as JSON
  /// Of the file that it was read from.
  std::string digest;

  struct Counts {
    size_t candidates = 0, tried = 0, timed = 0, failed = 0;
  };
  Counts counts() const;
};

/// Atomically.
Status writeTuning(const Tuning &tuning, const std::string &path);
/// BadInput with one message for a file that is cut short, altered, of another format version or
/// something else. Problems are parsed, and candidates checked as those that a provider proposes.
Expected<Tuning> readTuning(const std::string &path);

} // namespace dovetail::plan
