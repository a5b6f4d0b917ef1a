// SPDX-License-Identifier: Apache-2.0
//
// The problems of ../device by way of SPIR-V: translated everywhere, run and compared with the
// reference provider where there is a driver.
#include <set>

#include <gtest/gtest.h>

#include "ClassBounds.h"
#include "DeviceCheck.h"
#include "SecondOpinion.h"

namespace dovetail::test {

static void askForSecondOpinion(const Problem &problem, const DeviceCandidate &candidate,
                                const CheckOptions &options) {
  const std::string what = "SPIR-V of " + candidate.architecture + " " + candidate.algorithm;
  auto shaders = translateToSpirv(candidate.emitted, candidate.kernel);
  if (!shaders) {
    ADD_FAILURE() << what << ": " << shaders.error().message;
    return;
  }
  SecondOpinion &opinion = SecondOpinion::get();
  SecondOpinion::Counts &counts =
      opinion.counts[candidate.algorithm.substr(0, candidate.algorithm.find(':'))];
  ++counts.translated;
  if (!opinion.runs(*shaders))
    return;
  ++counts.ran;
  checkRunner(problem, what, boundsOfClass(options, candidate.numerics),
              [&](const auto &inputs, const auto &outputs) {
                Status status = opinion.run(candidate.kernel, *shaders, inputs, outputs);
                EXPECT_TRUE(bool(status)) << what << (status ? "" : ": " + status.error().message);
                return bool(status);
              });
}

std::vector<DeviceCandidate> checkDevices(const std::string &text, const CheckOptions &options) {
  std::vector<DeviceCandidate> all;
  auto problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message << "\n  " << text;
    return all;
  }
  std::set<std::string> seen;
  for (const char *architecture : {"sm_90", "gfx942"})
    for (DeviceCandidate &candidate : compileForDevice(*problem, architecture)) {
      if (SecondOpinion::covers(candidate.algorithm) && seen.insert(candidate.emitted).second)
        askForSecondOpinion(*problem, candidate, options);
      all.push_back(std::move(candidate));
    }
  return all;
}

} // namespace dovetail::test
