// SPDX-License-Identifier: Apache-2.0
//
// Checks the images of all kernels for devices that plans hold:
//     plan-images PLAN.dvt...
// and prints as JSON, for each architecture, what was gone through. Exit codes: 0 all are right, 1
// some are not (a line for each on standard error), 2 a file is no plan.
#include <cstdio>
#include <map>

#include "ImageCheck.h"
#include "artifact/Artifact.h"

using namespace dovetail;

namespace {

/// Algorithms by kernel: equal problems share kernels, but never by two algorithms.
std::map<int32_t, std::string> algorithmsOf(const Plan &plan) {
  std::map<int32_t, std::string> algorithms;
  for (const PlanBlock &block : plan.blocks)
    for (const PlanStep &step : block.steps) {
      algorithms.emplace(step.choice.kernel, step.choice.candidate.algorithm);
      if (step.fallback)
        algorithms.emplace(step.fallback->kernel, step.fallback->candidate.algorithm);
    }
  return algorithms;
}

std::string architectureOf(const DeviceKernel &kernel) {
  for (DeviceImage::Kind kind : {DeviceImage::Kind::Ptx, DeviceImage::Kind::Hsaco})
    if (const DeviceImage *image = kernel.find(kind))
      return image->architecture;
  return {};
}

/// How many kernels are wrong.
int checkPlan(const Plan &plan) {
  int wrong = 0;
  for (const auto &[number, algorithm] : algorithmsOf(plan)) {
    if (number < 0)
      continue;
    const KernelBytes &bytes = plan.kernels[size_t(number)];
    auto kernel = DeviceKernel::parse({bytes.data(), bytes.size()});
    if (!kernel)
      continue; // another provider's, or for the processor
    Status status = test::checkImages(*kernel, architectureOf(*kernel), algorithm);
    if (status)
      continue;
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    ++wrong;
  }
  return wrong;
}

void printCounts() {
  std::string text;
  for (const auto &[architecture, counts] : test::imageCounts())
    text += fmt::format("{}\"{}\": {{\"kernels\": {}, \"entries\": {}, \"assembled\": {}, "
                        "\"disassembled\": {}, \"matrix_kernels\": {}}}",
                        text.empty() ? "" : ", ", architecture, counts.kernels, counts.entries,
                        counts.assembled, counts.disassembled, counts.matrixKernels);
  std::printf("{%s}\n", text.c_str());
}

} // namespace

int main(int count, char **arguments) {
  int wrong = 0;
  for (int i = 1; i < count; ++i) {
    auto artifact = readArtifact(arguments[i]);
    if (!artifact) {
      std::fprintf(stderr, "%s\n", artifact.error().message.c_str());
      return 2;
    }
    wrong += checkPlan(artifact->plan);
  }
  printCounts();
  return wrong ? 1 : 0;
}
