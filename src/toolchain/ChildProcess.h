// SPDX-License-Identifier: Apache-2.0
//
// Programs run as children: by their path and arguments, without a shell, with a limit of time,
// and with what they say as text. Vendors' compilers run so, since some of them crash or hang.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "support/Expected.h"

namespace dovetail::toolchain {

struct ChildResult {
  int exitCode = -1;     ///< negative where it did not exit by itself
  int signal = 0;        ///< that ended it; 0: none
  bool timedOut = false; ///< it was ended for being late
  std::string output;    ///< standard output and standard error as they came; at most a MiB

  bool succeeded() const { return exitCode == 0; }
  /// "exit code 1", "signal 11 (Segmentation fault)" or "no end within its time".
  std::string ending() const;
};

/// Runs arguments[0], the path of a program, with nothing on its standard input. What it starts
/// itself is ended with it when it is late. Unavailable where it cannot be started.
Expected<ChildResult> runChild(const std::vector<std::string> &arguments,
                               std::chrono::milliseconds limit);

/// A folder of its own below the one that TMPDIR names, removed with all it holds in the end.
class TemporaryFolder {
public:
  static Expected<TemporaryFolder> create();
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder &&other) noexcept : folder(std::move(other.folder)) {
    other.folder.clear();
  }
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  std::string file(const std::string &name) const { return folder + "/" + name; }

private:
  explicit TemporaryFolder(std::string path) : folder(std::move(path)) {}
  std::string folder;
};

} // namespace dovetail::toolchain
