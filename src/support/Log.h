// SPDX-License-Identifier: Apache-2.0
//
// Where messages for people go: a level and a callback of the host's, as at both C borders. Copied
// by value.
#pragma once

#include <string>
#include <utility>

#include <fmt/core.h>

namespace dovetail {

enum class LogLevel : int { Debug = 0, Info = 1, Warning = 2, Error = 3 };

struct Log {
  void (*callback)(void *context, int level, const char *message) = nullptr;
  void *context = nullptr;
  LogLevel lowest = LogLevel::Info;

  bool wants(LogLevel level) const { return callback && level >= lowest; }
  void message(LogLevel level, const std::string &text) const {
    if (wants(level))
      callback(context, int(level), text.c_str());
  }
  template <typename... Args>
  void operator()(LogLevel level, fmt::format_string<Args...> format, Args &&...args) const {
    if (wants(level))
      message(level, fmt::format(format, std::forward<Args>(args)...));
  }
};

/// Writes "dovetail: warning: ..." lines to standard error.
Log standardErrorLog(LogLevel lowest);

} // namespace dovetail
