// SPDX-License-Identifier: Apache-2.0
//
// Spawns and talks to the worker process.
#include "plan/Worker.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace dovetail::plan {

Worker::Worker(WorkerOptions options, Target target)
    : options(std::move(options)), target(std::move(target)) {}

Worker::~Worker() { stop(); }

Status Worker::start() {
  int request[2], answer[2];
  if (::pipe2(request, O_CLOEXEC) != 0)
    return unavailable("cannot create a pipe for the measuring worker: {}", std::strerror(errno));
  if (::pipe2(answer, O_CLOEXEC) != 0) {
    ::close(request[0]);
    ::close(request[1]);
    return unavailable("cannot create a pipe for the measuring worker: {}", std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, request[0], 0);
  posix_spawn_file_actions_adddup2(&actions, answer[1], 1);
  std::string name = options.executable;
  char *arguments[] = {name.data(), nullptr};
  pid_t child = -1;
  int failure = ::posix_spawn(&child, name.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(request[0]);
  ::close(answer[1]);
  if (failure != 0) {
    ::close(request[1]);
    ::close(answer[0]);
    return unavailable("the measuring worker {} does not start: {}", options.executable,
                       std::strerror(failure));
  }
  process = child;
  toWorker = request[1];
  fromWorker = answer[0];
  Frame hello;
  hello.header = {{"plugins", options.plugins},
                  {"vendor_path", options.vendorPath},
                  {"only", options.only},
                  {"memory_bytes", options.memoryBytes},
                  {"target", toJson(target)}};
  if (!writeFrame(toWorker, hello) ||
      readFrame(fromWorker, hello, options.timeout) != FrameResult::Read) {
    stop();
    return unavailable("the measuring worker {} starts but does not answer", options.executable);
  }
  return Status::success();
}

void Worker::stop() {
  if (process < 0)
    return;
  ::close(toWorker);
  ::close(fromWorker);
  // A worker that was asked to go leaves at once; one that hangs does not.
  int status = 0;
  for (int i = 0; i < 50; ++i) {
    if (::waitpid(process, &status, WNOHANG) != 0) {
      process = toWorker = fromWorker = -1;
      return;
    }
    ::usleep(2000);
  }
  ::kill(process, SIGKILL);
  ::waitpid(process, &status, 0);
  process = toWorker = fromWorker = -1;
}

Expected<Evaluation> Worker::evaluate(const Problem &problem, EvaluationOptions request) {
  std::vector<Trial> lost;
  constexpr int kMostReplacements = 8;
  for (int attempt = 0; attempt <= kMostReplacements; ++attempt) {
    if (process < 0)
      if (Status started = start(); !started)
        return started.takeError();
    Frame frame;
    frame.header = {{"problem", problem.text()}, {"options", toJson(request)}};
    std::string label, phase;
    FrameResult result = writeFrame(toWorker, frame) ? FrameResult::Read : FrameResult::Broken;
    while (result == FrameResult::Read) {
      result = readFrame(fromWorker, frame, options.timeout);
      if (result != FrameResult::Read)
        break;
      if (frame.header.contains("phase")) {
        label = frame.header.value("label", "");
        phase = frame.header.value("phase", "");
        continue;
      }
      if (frame.header.contains("error"))
        return internalError("{}", frame.header.value("error", ""));
      auto evaluation = evaluationFromJson(frame.header, frame.blobs);
      if (evaluation)
        for (Trial &trial : lost)
          evaluation->trials.push_back(std::move(trial));
      return evaluation;
    }
    if (result == FrameResult::TimedOut && process > 0)
      ::kill(process, SIGKILL);
    stop();
    ++replaced;
    if (label.empty())
      return internalError("the measuring worker died before it reached any candidate of {}",
                           summary(problem));
    Trial failed;
    size_t colon = label.find(':');
    failed.candidate.provider = label.substr(0, colon);
    failed.candidate.algorithm = colon == std::string::npos ? "" : label.substr(colon + 1);
    failed.outcome =
        result == FrameResult::TimedOut ? TrialOutcome::Timeout : TrialOutcome::Crashed;
    failed.detail = fmt::format("{} the process that measures, in phase '{}'",
                                result == FrameResult::TimedOut ? "hung" : "crashed", phase);
    if (phase == "truth")
      request.check = false;
    lost.push_back(std::move(failed));
    request.skip.push_back(label);
  }
  Evaluation evaluation;
  evaluation.trials = std::move(lost);
  return evaluation;
}

} // namespace dovetail::plan
