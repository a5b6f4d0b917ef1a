// SPDX-License-Identifier: Apache-2.0
//
// Runs every candidate a provider has for a problem and compares it with PlainTruth: random inputs,
// operands brought into the candidate's layouts, guard zones around results and workspace, two runs
// that must agree to the bit, and two threads at once on one kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/Plugin.h"

namespace dovetail::test {

struct CheckedCandidate {
  std::string algorithm;
  std::vector<std::string> inputLayouts, outputLayouts;
  std::string numerics;
  double worst = 0; ///< largest error over the largest true magnitude
};

/// Checks all candidates (as gtest expectations) and says what there was. `tolerance` bounds
/// CheckedCandidate::worst.
std::vector<CheckedCandidate> checkCandidates(const Provider &provider, std::string_view text,
                                              double tolerance = 1e-5, uint32_t threads = 2);

/// Why the provider has nothing for the problem; empty where it has something.
std::string refusalOf(const Provider &provider, std::string_view text);

/// The plug-in of this build, with vendor libraries looked for in `vendorPath`.
PluginSet loadPlugin(const std::string &name, const std::string &vendorPath);

} // namespace dovetail::test
