// SPDX-License-Identifier: Apache-2.0
//
// Checks kernels by the devices' tools and in their host form.
#include <algorithm>

#include <gtest/gtest.h>

#include "ClassBounds.h"
#include "DeviceCheck.h"
#include "HostExecutor.h"
#include "ImageCheck.h"

namespace dovetail::test {

Status runHostForm(const DeviceKernel &kernel, const std::vector<dvt_tensor> &inputs,
                   const std::vector<dvt_tensor> &outputs) {
  const DeviceImage *image = kernel.find(DeviceImage::Kind::Host);
  if (!image)
    return internalError("no host image");
  auto executor = HostExecutor::load(*image);
  if (!executor)
    return executor.takeError();
  std::vector<dvt_tensor> tensors = inputs;
  tensors.insert(tensors.end(), outputs.begin(), outputs.end());
  std::vector<std::vector<int64_t>> extents;
  std::vector<uint64_t> places;
  for (const dvt_tensor &tensor : tensors) {
    extents.emplace_back(tensor.extents, tensor.extents + tensor.rank);
    places.push_back(reinterpret_cast<uintptr_t>(tensor.data));
  }
  std::vector<char> workspace(kernel.workspaceBytes + 64);
  const uint64_t aligned = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
  for (const DeviceLaunch &launch : kernel.launches) {
    std::vector<uint64_t> values = argumentsOf(launch, places, extents, aligned);
    std::vector<void *> addresses;
    for (uint64_t &value : values)
      addresses.push_back(&value);
    auto blocks = launch.blocks.evaluate(extents);
    if (!blocks)
      return blocks.takeError();
    if (Status status = executor->launch(launch.entry, *blocks, launch.threads, addresses.data(),
                                         addresses.size());
        !status)
      return status;
  }
  return Status::success();
}

static void expectRightImages(const DeviceCandidate &candidate) {
  Status status = checkImages(candidate.kernel, candidate.architecture, candidate.algorithm);
  EXPECT_TRUE(bool(status)) << (status ? "" : status.error().message);
}

static void runAndCompare(const Problem &problem, const DeviceCandidate &candidate,
                          const CheckOptions &options) {
  checkRunner(problem, candidate.architecture + " " + candidate.algorithm,
              boundsOfClass(options, candidate.numerics),
              [&](const auto &inputs, const auto &outputs) {
                Status status = runHostForm(candidate.kernel, inputs, outputs);
                EXPECT_TRUE(bool(status)) << (status ? "" : status.error().message);
                return bool(status);
              });
}

void checkCandidate(const Problem &problem, const DeviceCandidate &candidate,
                    const CheckOptions &options) {
  expectRightImages(candidate);
  runAndCompare(problem, candidate, options);
}

std::vector<DeviceCandidate> checkDevices(const std::string &text, const CheckOptions &options) {
  std::vector<DeviceCandidate> all;
  auto problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message << "\n  " << text;
    return all;
  }
  for (const char *architecture : kArchitectures) {
    auto candidates = compileForDevice(*problem, architecture);
    EXPECT_FALSE(candidates.empty()) << "nothing for " << architecture << "\n  " << text;
    for (DeviceCandidate &candidate : candidates) {
      expectRightImages(candidate);
      // The host forms of one vendor's devices are the same.
      bool first = std::none_of(all.begin(), all.end(), [&](const DeviceCandidate &other) {
        return other.algorithm == candidate.algorithm &&
               other.architecture[0] == candidate.architecture[0];
      });
      if (first)
        runAndCompare(*problem, candidate, options);
      all.push_back(std::move(candidate));
    }
  }
  return all;
}

} // namespace dovetail::test
