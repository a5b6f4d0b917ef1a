// SPDX-License-Identifier: Apache-2.0
//
// The log of command-line tools: one line for each message on standard error.
#include "support/Log.h"

#include <cstdio>

namespace dovetail {

Log standardErrorLog(LogLevel lowest) {
  auto print = [](void *, int level, const char *message) {
    static const char *const names[] = {"debug", "note", "warning", "error"};
    std::fprintf(stderr, "dovetail: %s: %s\n",
                 names[level < 0   ? 0
                       : level > 3 ? 3
                                   : level],
                 message);
  };
  return {print, nullptr, lowest};
}

} // namespace dovetail
