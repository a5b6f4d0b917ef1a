// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "DeviceCheck.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "ClassBounds.h"
#include "HostExecutor.h"
#include "ImageCheck.h"
#include "codegen/Families.h"
#include "codegen/schedule/Schedule.h"
#include "device/DeviceDescription.h"
#include "providers/native/CompactProblem.h"

namespace dovetail::test {

namespace {

/// A problem as schedules see it, for a device.
class DeviceProblem {
public:
  DeviceProblem(const Problem &problem, const std::string &architecture)
      : problem(problem), architecture(architecture), view(problem), compact(plain()),
        reader(*compact.get()) {
    auto described = device::findDescription((architecture.starts_with("sm_") ? "cuda:" : "rocm:") +
                                                 architecture,
                                             {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
    if (!described) {
      ADD_FAILURE() << described.error().message;
      return;
    }
    Target target = described->target();
    auto found = codegen::Machine::of(target.view());
    if (found)
      machine = *found;
    else
      ADD_FAILURE() << found.error().message;
  }

  std::vector<codegen::Schedule> schedules() const {
    std::vector<codegen::Schedule> offered;
    codegen::ScheduleSink sink;
    sink.offer = [&](codegen::Schedule schedule) { offered.push_back(std::move(schedule)); };
    sink.refuse = [](const char *, const std::string &) {};
    for (const codegen::ScheduleFamily &family : codegen::scheduleFamilies())
      if (machine && family.serves(*machine))
        family.propose(reader, *machine, sink);
    return offered;
  }

  std::optional<DeviceCandidate> compile(const codegen::Schedule &schedule) const {
    if (!machine)
      return std::nullopt;
    auto bytes = codegen::compileKernel(reader, *machine, schedule);
    if (!bytes) {
      ADD_FAILURE() << architecture << " " << schedule.algorithm << ": " << bytes.error().message
                    << "\n  " << problem.text();
      return std::nullopt;
    }
    auto kernel = DeviceKernel::parse(*bytes);
    if (!kernel) {
      ADD_FAILURE() << kernel.error().message;
      return std::nullopt;
    }
    return DeviceCandidate{architecture, schedule.algorithm, schedule.numerics, std::move(*kernel)};
  }

  const dvt_problem &plain() const {
    const dvt_problem *given = view;
    return *given;
  }

private:
  const Problem &problem;
  std::string architecture;
  ProblemView view;
  native::CompactProblem compact;
  codegen::ProblemReader reader;
  std::optional<codegen::Machine> machine;
};

} // namespace

std::vector<DeviceCandidate>
compileForDevice(const Problem &problem, const std::string &architecture, const std::string &part) {
  std::vector<DeviceCandidate> made;
  DeviceProblem posed(problem, architecture);
  for (const codegen::Schedule &schedule : posed.schedules())
    if (schedule.algorithm.find(part) != std::string::npos)
      if (auto candidate = posed.compile(schedule))
        made.push_back(std::move(*candidate));
  return made;
}

std::optional<DeviceCandidate> compileAlgorithm(const Problem &problem,
                                                const std::string &architecture,
                                                const std::string &algorithm) {
  DeviceProblem posed(problem, architecture);
  return posed.compile(codegen::Schedule::rowMajor(algorithm, posed.plain()));
}

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
  for (const dvt_tensor &tensor : tensors)
    extents.emplace_back(tensor.extents, tensor.extents + tensor.rank);
  std::vector<char> workspace(kernel.workspaceBytes + 64);
  for (const DeviceLaunch &launch : kernel.launches) {
    std::vector<uint64_t> values;
    for (const DeviceArgument &argument : launch.arguments)
      switch (argument.kind) {
      case DeviceArgument::Kind::Tensor:
        values.push_back(reinterpret_cast<uintptr_t>(tensors.at(argument.tensor).data));
        break;
      case DeviceArgument::Kind::Workspace:
        values.push_back((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
        break;
      case DeviceArgument::Kind::Extent:
        values.push_back(uint64_t(extents.at(argument.tensor).at(argument.dimension)));
        break;
      case DeviceArgument::Kind::Number:
        values.push_back(uint64_t(argument.number));
        break;
      }
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
