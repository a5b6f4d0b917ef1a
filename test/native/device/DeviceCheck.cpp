// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "DeviceCheck.h"

#include <gtest/gtest.h>

#include "codegen/CompileSteps.h"
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
    codegen::KernelModule module(reader, *machine);
    auto refused = [&](const Error &error) {
      ADD_FAILURE() << architecture << " " << schedule.algorithm << ": " << error.message << "\n  "
                    << problem.text();
      return std::nullopt;
    };
    if (Status status = codegen::emitKernel(reader, *machine, schedule, module); !status)
      return refused(status.error());
    std::string emitted = module.emittedText();
    auto bytes = codegen::finishKernel(reader, *machine, schedule, module);
    if (!bytes)
      return refused(bytes.error());
    auto kernel = DeviceKernel::parse(*bytes);
    if (!kernel) {
      ADD_FAILURE() << kernel.error().message;
      return std::nullopt;
    }
    return DeviceCandidate{architecture, schedule.algorithm, schedule.numerics, std::move(*kernel),
                           std::move(emitted)};
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

std::vector<uint64_t> argumentsOf(const DeviceLaunch &launch,
                                  const std::vector<uint64_t> &addresses,
                                  const std::vector<std::vector<int64_t>> &extents,
                                  uint64_t workspace) {
  std::vector<uint64_t> values;
  for (const DeviceArgument &argument : launch.arguments)
    switch (argument.kind) {
    case DeviceArgument::Kind::Tensor:
      values.push_back(addresses.at(argument.tensor));
      break;
    case DeviceArgument::Kind::Workspace:
      values.push_back(workspace);
      break;
    case DeviceArgument::Kind::Extent:
      values.push_back(uint64_t(extents.at(argument.tensor).at(argument.dimension)));
      break;
    case DeviceArgument::Kind::Number:
      values.push_back(uint64_t(argument.number));
      break;
    }
  return values;
}

} // namespace dovetail::test
