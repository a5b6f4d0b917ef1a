// SPDX-License-Identifier: Apache-2.0
//
// The worker's side of the protocol: loads the providers once and evaluates problems as they come.
#include <csignal>
#include <memory>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "plan/Worker.h"

namespace dovetail::plan {
namespace {

Frame answerTo(const Frame &request, TrialRunner &runner, const std::string &drivers,
               const PhaseReport &report) {
  Frame answer;
  auto problem = Problem::parse(request.header.value("problem", ""));
  if (!problem) {
    answer.header = {{"error", problem.error().message}};
    return answer;
  }
  std::optional<Evaluation> given;
  if (request.header.contains("given")) {
    auto read = evaluationFromJson(request.header["given"], request.blobs);
    Status ready = read ? runner.openDevice(drivers) : Status(read.takeError());
    if (!ready) {
      answer.header = {{"error", ready.error().message},
                       {"unavailable", ready.error().kind == ErrorKind::Unavailable}};
      return answer;
    }
    given = std::move(*read);
  }
  Evaluation evaluation = runner.evaluate(
      *problem, optionsFromJson(request.header.value("options", nlohmann::json::object())), report,
      given ? &*given : nullptr);
  answer.header = toJson(evaluation, &answer.blobs);
  return answer;
}

} // namespace

int serveWorker(int input, int output) {
  std::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr std::chrono::milliseconds kForEver{-1};
  Frame frame;
  if (readFrame(input, frame, kForEver) != FrameResult::Read)
    return 2;
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = frame.header.value("memory_bytes", uint64_t(16) << 30);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // these map terabytes
  ::setrlimit(RLIMIT_AS, &limit);
#endif
  rlimit noCore{};
  ::setrlimit(RLIMIT_CORE, &noCore);
  PluginSet::Options options;
  options.folders = frame.header.value("plugins", options.folders);
  options.vendorPath = frame.header.value("vendor_path", options.vendorPath);
  options.deviceDrivers = frame.header.value("device_drivers", options.deviceDrivers);
  options.only = frame.header.value("only", options.only);
  if (!options.only.empty())
    options.only.push_back("reference");
  PluginSet plugins = PluginSet::load(options);
  Target target = targetFromJson(frame.header.value("target", nlohmann::json::object()));
  TrialRunner runner(plugins, target);
  frame.header = {{"ready", true}};
  frame.blobs.clear();
  if (!writeFrame(output, frame))
    return 0;
  std::string label; // of what is going on
  auto report = [&](const std::string &of, const char *phase) {
    label = of;
    writeFrame(output, {{{"label", of}, {"phase", phase}}, {}});
  };
  while (readFrame(input, frame, kForEver) == FrameResult::Read) {
    Frame answer;
    try {
      answer = answerTo(frame, runner, options.deviceDrivers, report);
    } catch (const std::exception &) { // bad_alloc, or length_error for what is larger still
      auto problem = Problem::parse(frame.header.value("problem", ""));
      answer.header = {
          {"error", fmt::format("trying kernels for {} takes more memory than "
                                "there is for it, {} MiB; use smaller extents",
                                problem ? summary(*problem) : "", limit.rlim_cur >> 20)},
          {"unavailable", true}};
    }
    if (!runner.deviceFailure().empty()) {
      // Only another process can use the device again: to whoever asked, this one fell.
      writeFrame(output, {{{"label", label}, {"phase", "run: " + runner.deviceFailure()}}, {}});
      return 1;
    }
    if (!writeFrame(output, answer))
      break;
  }
  return 0;
}

} // namespace dovetail::plan
