// SPDX-License-Identifier: Apache-2.0
//
// The measuring worker: a process of its own, so that a vendor library or a fresh kernel that
// crashes, hangs or eats all memory costs one candidate and nothing else. Spoken to by the planner
// over standard input and output.
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "plan/Worker.h"

int main() {
  // Whatever a library prints must not get into the answers.
  int answers = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  int nothing = ::open("/dev/null", O_WRONLY);
  ::dup2(nothing, STDOUT_FILENO);
  ::close(nothing);
  return dovetail::plan::serveWorker(STDIN_FILENO, answers);
}
