// SPDX-License-Identifier: Apache-2.0
//
// Spawned, not forked: whoever asks may have threads. A child is the first of a process group of
// its own, so that a compiler driver's own children end with it.
#include "toolchain/ChildProcess.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace dovetail::toolchain {

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostOutput = size_t(1) << 20;

int millisLeft(Clock::time_point end) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return int(std::clamp<int64_t>(left, 0, INT32_MAX));
}

int spawn(const std::vector<std::string> &arguments, int output, pid_t &child) {
  std::vector<char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(const_cast<char *>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t ignored;
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  sigaddset(&ignored, SIGCHLD); // drivers of compilers wait for children of their own
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  int failure = ::posix_spawn(&child, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

/// Takes what comes until the other side is closed; false where time is up before.
bool readAll(int from, Clock::time_point end, std::string &output) {
  std::array<char, 4096> piece;
  for (;;) {
    pollfd waited{from, POLLIN, 0};
    int ready = ::poll(&waited, 1, millisLeft(end));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return false;
    ssize_t count = ::read(from, piece.data(), piece.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return true;
    output.append(piece.data(), std::min(size_t(count), kMostOutput - output.size()));
  }
}

/// Neither an exit nor a signal.
constexpr int kLost = -1;

/// A program may close its output and go on; false where time is up before it ends.
bool waitFor(pid_t child, Clock::time_point end, int &status) {
  for (;;) {
    pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child)
      return true;
    if (ended < 0 && errno != EINTR) { // the host ignores SIGCHLD, or waits for all its children
      status = kLost;
      return true;
    }
    if (millisLeft(end) == 0)
      return false;
    ::usleep(1000);
  }
}

} // namespace

std::string ChildResult::ending() const {
  if (timedOut)
    return "no end within its time";
  if (signal != 0)
    return fmt::format("signal {} ({})", signal, ::strsignal(signal));
  if (exitCode < 0)
    return "an exit code that another part of this process took";
  return fmt::format("exit code {}", exitCode);
}

Expected<ChildResult> runChild(const std::vector<std::string> &arguments,
                               std::chrono::milliseconds limit) {
  assert(!arguments.empty());
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return unavailable("no pipe for {} can be made: {}", arguments[0], std::strerror(errno));
  pid_t child = -1;
  int failure = spawn(arguments, pipe[1], child);
  ::close(pipe[1]);
  if (failure != 0) {
    ::close(pipe[0]);
    return unavailable("{} does not start: {}", arguments[0], std::strerror(failure));
  }
  ChildResult result;
  int status = 0;
  const auto end = Clock::now() + limit;
  result.timedOut = !readAll(pipe[0], end, result.output) || !waitFor(child, end, status);
  ::close(pipe[0]);
  if (result.timedOut) {
    ::kill(-child, SIGKILL);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  } else if (WIFEXITED(status)) {
    result.exitCode = WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  }
  return result;
}

Expected<TemporaryFolder> TemporaryFolder::create() {
  std::error_code error;
  std::string path =
      (std::filesystem::temp_directory_path(error) / "dovetail-tools-XXXXXX").string();
  if (error || !::mkdtemp(path.data()))
    return unavailable("no temporary folder for a compiler can be made; is there room in the "
                       "folder that TMPDIR names?");
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!folder.empty())
    std::filesystem::remove_all(folder, ignored);
}

} // namespace dovetail::toolchain
