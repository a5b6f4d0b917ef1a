// SPDX-License-Identifier: Apache-2.0
//
// The line of progress, cut to what fits on one.
#include "Progress.h"

#include <cstdio>
#include <mutex>
#include <utility>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dovetail::cli {
namespace {

// There is one line, and messages come from all threads.
std::mutex mutex;
bool isLineShown = false; ///< under the mutex

size_t columnsOfTerminal() {
  constexpr size_t kUsual = 80;
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

/// At most so many bytes, and no part of a letter: a line that wraps could not be taken back.
void cutTo(std::string &line, size_t bytes) {
  if (line.size() <= bytes)
    return;
  auto isInside = [&] { return (static_cast<unsigned char>(line[bytes]) & 0xC0) == 0x80; };
  while (bytes > 0 && isInside())
    --bytes;
  line.resize(bytes);
}

} // namespace

Progress::Progress(std::chrono::milliseconds interval)
    : isTerminal(::isatty(STDERR_FILENO) != 0), interval(interval) {}

void Progress::show(const std::string &stage, size_t done, size_t total, const std::string &what) {
  if (!isTerminal)
    return;
  auto now = Clock::now();
  if (stage == lastStage && now - lastShown < interval)
    return;
  lastStage = stage;
  lastShown = now;
  std::string line = stage;
  if (done > 0 || total > 0)
    line += fmt::format(" {}", done);
  if (total > 0)
    line += fmt::format(" of {}", total);
  if (!what.empty())
    line += ": " + what;
  cutTo(line, columnsOfTerminal() - 1);
  const std::lock_guard guard(mutex);
  isLineShown = true;
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

plan::ProgressCallback Progress::callback() {
  return [this](const std::string &stage, size_t done, size_t total, const std::string &what) {
    show(stage, done, total, what);
  };
}

void Progress::erase() {
  const std::lock_guard guard(mutex);
  if (std::exchange(isLineShown, false))
    std::fputs("\r\033[K", stderr);
}

} // namespace dovetail::cli
