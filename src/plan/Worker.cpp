// SPDX-License-Identifier: Apache-2.0
//
// Spawns and talks to the worker process.
#include "plan/Worker.h"

#include <algorithm>
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
                  {"device_drivers", options.deviceDrivers},
                  {"only", options.only},
                  {"memory_bytes", options.memoryBytes},
                  {"target", toJson(target)}};
  if (!writeFrame(toWorker, hello) ||
      readFrame(fromWorker, hello, options.timeout) != FrameResult::Read) {
    stop();
    return unavailable("the measuring worker {} starts but does not answer", options.executable);
  }
  answered = true;
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

/// One request. Where the worker falls, it is replaced, `fall` says in what it was, and the
/// evaluation is empty.
Expected<Evaluation> Worker::attempt(const Problem &problem, const EvaluationOptions &request,
                                     const Evaluation *given, Fall &fall) {
  Frame frame;
  frame.header = {{"problem", problem.text()}, {"options", toJson(request)}};
  if (given)
    frame.header["given"] = toJson(*given, &frame.blobs);
  FrameResult result = writeFrame(toWorker, frame) ? FrameResult::Read : FrameResult::Broken;
  while (result == FrameResult::Read) {
    result = readFrame(fromWorker, frame, options.timeout);
    if (result != FrameResult::Read)
      break;
    if (frame.header.contains("phase")) {
      fall.label = frame.header.value("label", "");
      fall.phase = frame.header.value("phase", "");
      if (options.report)
        options.report(fall.label, fall.phase.c_str());
      continue;
    }
    fall = {};
    if (frame.header.contains("error"))
      return Error{frame.header.value("unavailable", false) ? ErrorKind::Unavailable
                                                            : ErrorKind::Internal,
                   frame.header.value("error", "")};
    return evaluationFromJson(frame.header, frame.blobs);
  }
  fall.hung = result == FrameResult::TimedOut;
  if (fall.phase.empty())
    fall.phase = "start";
  if (fall.hung && process > 0)
    ::kill(process, SIGKILL);
  stop();
  ++replaced;
  return Evaluation{};
}

bool Worker::asks(const std::string &provider) const {
  constexpr unsigned kMostFalls = 3;
  auto falls = fallsWhileProposing.find(provider);
  return falls == fallsWhileProposing.end() || falls->second < kMostFalls;
}

/// Puts on record which providers are not asked any more.
void Worker::leaveOut(EvaluationOptions &request, std::vector<Trial> &lost) const {
  for (const auto &[provider, falls] : fallsWhileProposing) {
    bool wanted = request.providers.empty() ||
                  std::find(request.providers.begin(), request.providers.end(), provider) !=
                      request.providers.end();
    if (asks(provider) || !wanted)
      continue;
    Trial trial;
    trial.candidate.provider = provider;
    trial.outcome = TrialOutcome::Crashed;
    trial.detail = fmt::format("not asked: it fell {} times while it proposed", falls);
    lost.push_back(std::move(trial));
    request.skip.push_back(provider + ":");
  }
}

Expected<Evaluation> Worker::evaluate(const Problem &problem, EvaluationOptions request) {
  return evaluate(problem, std::move(request), nullptr);
}

Expected<Evaluation> Worker::evaluate(const Problem &problem, EvaluationOptions request,
                                      const Evaluation &given) {
  return evaluate(problem, std::move(request), &given);
}

Expected<Evaluation> Worker::evaluate(const Problem &problem, EvaluationOptions request,
                                      const Evaluation *given) {
  std::vector<Trial> lost;
  leaveOut(request, lost);
  std::map<std::string, unsigned> falls; // by provider, of this problem
  constexpr unsigned kMostFalls = 3;     // of one provider's candidates, before all are left out
  constexpr int kMostReplacements = 64;
  for (int round = 0; round <= kMostReplacements; ++round) {
    if (process < 0)
      if (Status started = start(); !started)
        return started.takeError();
    Fall fall;
    auto evaluation = attempt(problem, request, given, fall);
    if (!evaluation || fall.phase.empty()) {
      if (evaluation)
        std::move(lost.begin(), lost.end(), std::back_inserter(evaluation->trials));
      return evaluation;
    }
    if (fall.label.empty())
      return internalError("the measuring worker {} before it reached any candidate of {}",
                           fall.hung ? "hung" : "died", summary(problem));
    Trial failed;
    size_t colon = fall.label.find(':');
    std::string provider = fall.label.substr(0, colon);
    failed.candidate.provider = provider;
    failed.candidate.algorithm = colon == std::string::npos ? "" : fall.label.substr(colon + 1);
    failed.outcome = fall.hung ? TrialOutcome::Timeout : TrialOutcome::Crashed;
    failed.detail = fmt::format("{} the process that measures, in phase '{}'",
                                fall.hung ? "hung" : "crashed", fall.phase);
    if (fall.phase == "propose")
      ++fallsWhileProposing[provider];
    if (fall.phase == "truth" || (fall.phase == "propose" && provider == "reference"))
      request.check = false;
    else if (++falls[provider] >= kMostFalls)
      request.skip.push_back(provider + ":");
    lost.push_back(std::move(failed));
    request.skip.push_back(fall.label);
  }
  Evaluation evaluation;
  evaluation.trials = std::move(lost);
  return evaluation;
}

} // namespace dovetail::plan
