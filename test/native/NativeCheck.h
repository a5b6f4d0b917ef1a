// SPDX-License-Identifier: Apache-2.0
//
// Checks every candidate of the native provider for a problem: compiles it once, runs it on random
// inputs (for each binding of the symbols, by one and by several workers), and compares with the
// reference provider. Memory around outputs and in the padding of blocked layouts is checked, too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/Plugin.h"
#include "support/Problem.h"

namespace dovetail::test {

struct CheckOptions {
  std::vector<SymbolValues> bindings = {{}}; ///< run once for each
  double low = -3, high = 3; ///< of random inputs of floats; integers are the whole numbers between
  bool allBytes = false;     ///< 8-bit inputs take all values; those of 4 bits always do
  bool specials = false;     ///< mix infinities, NaN, zeros and tiny numbers into inputs of floats
  double relative = 2e-6, absolute = 2e-6;
  double quanta = 1; ///< how far 16-bit floats may lie from the truth, in units of the last place
                     ///< of the larger of the truth and `largest`
  double largest = 0;
  int64_t byteQuanta = 0;          ///< how far quantised bytes may lie from the truth
  std::vector<double> values = {}; ///< where given, inputs of floats are drawn from these alone
  unsigned seed = 1;
};

struct CheckResult {
  std::vector<std::string> candidates; ///< labels of those checked, in order
  std::vector<std::string> refusals;
};

/// Reports differences as GoogleTest failures. Also at AVX2 where the machine has AVX-512.
CheckResult checkNative(const std::string &problem, const CheckOptions &options = {});

/// Computes the outputs from the inputs, all of them dense and row-major, and tells whether it did.
using ProblemRunner = std::function<bool(const std::vector<dvt_tensor> &inputs,
                                         const std::vector<dvt_tensor> &outputs)>;
/// Compares what `runner` computes with the reference provider, on random inputs for each binding.
void checkRunner(const Problem &problem, const std::string &what, const CheckOptions &options,
                 const ProblemRunner &runner);

/// What native refuses a problem with; empty when it offers something.
std::string refusalOf(const std::string &problem);

const PluginSet &plugins();

} // namespace dovetail::test
