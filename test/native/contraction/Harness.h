// SPDX-License-Identifier: Apache-2.0
//
// Checks every schedule that native kernels offer for a problem, for each instruction set of this
// machine: proposes, compiles, packs, runs on random inputs beside guard pages, and compares all
// outputs with the truth in double precision.
#pragma once

#include <string>
#include <vector>

#include "support/Problem.h"

namespace dovetail::test {

struct CheckOptions {
  std::vector<SymbolValues> symbols = {{}}; ///< each is run with the same kernel
  unsigned threads = 2;
  double tolerance = 2e-5;
  std::string only; ///< when set, only schedules whose algorithm contains this
};

struct Checked {
  unsigned schedules = 0;
  std::vector<std::string> algorithms, refusals;
  std::vector<std::vector<std::string>> inputLayouts;
};

/// Reports what is wrong as test failures.
Checked checkProblem(const std::string &text, const CheckOptions &options = {});

/// Only the refusals of the families for this problem at AVX2.
std::vector<std::string> refusalsOf(const std::string &text);

} // namespace dovetail::test
