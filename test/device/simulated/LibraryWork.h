// SPDX-License-Identifier: Apache-2.0
//
// How doubles of vendor libraries give work to a simulated device: each driver of this folder
// exports one function for them, which they find in the driver that the process has loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace simulated {

/// Device memory that a library's kernel reads or writes.
struct Range {
  std::string what; ///< for messages: "x"
  const void *memory;
  uint64_t bytes;
};

/// What a library does with a stream (null: the driver's own): `run` is called when the device
/// comes to it, may touch the `ranges` and nothing else, and must not call the driver. The ranges
/// must lie inside blocks of device memory, now and then. Success (0), or a code that explainOf()
/// explains.
int enqueueLibraryWork(const std::string &what, void *stream, const std::vector<Range> &ranges,
                       std::function<void()> run);

/// A driver of this folder as doubles use it.
class LoadedDriver {
public:
  /// The driver of that file name in the folder of the code that `anchor` points into; only where
  /// the process has loaded it already.
  static LoadedDriver beside(const void *anchor, const std::string &name);
  bool isLoaded() const { return give != nullptr; }
  /// As enqueueLibraryWork(). Empty, or why the driver refuses.
  std::string enqueue(const std::string &what, void *stream, const std::vector<Range> &ranges,
                      std::function<void()> run) const;

private:
  using Give = int (*)(const std::string *what, void *stream, const std::vector<Range> *ranges,
                       std::function<void()> *run);
  using Explain = const char *(*)(int code);
  Give give = nullptr;
  Explain explain = nullptr;
};

} // namespace simulated
