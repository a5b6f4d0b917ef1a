// SPDX-License-Identifier: Apache-2.0
//
// A line on standard error that says what is being done, on a terminal only. It rewrites itself and
// goes before anything else is written.
#pragma once

#include <chrono>
#include <string>

#include "plan/Planner.h"

namespace dovetail::cli {

class Progress {
public:
  /// `interval`: lines of one stage follow each other no faster. What is timed shall not share the
  /// processor with a terminal that draws.
  explicit Progress(std::chrono::milliseconds interval = std::chrono::milliseconds(0));
  ~Progress() { erase(); }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// "stage done of total: what"; what is 0 or empty is left out.
  void show(const std::string &stage, size_t done, size_t total, const std::string &what = {});
  /// For stages of planning. Not to be called when this is gone.
  plan::ProgressCallback callback();
  /// Takes away the line on the terminal, whoever shows it.
  static void erase();

private:
  using Clock = std::chrono::steady_clock;
  bool isTerminal;
  std::chrono::milliseconds interval;
  std::string lastStage;
  Clock::time_point lastShown;
};

} // namespace dovetail::cli
