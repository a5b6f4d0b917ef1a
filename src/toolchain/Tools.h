// SPDX-License-Identifier: Apache-2.0
//
// Which tool chains of vendors are here: where each was found, its version, and where one is
// missing or does not answer, why and how to get it. A tool is looked for in the given folders,
// then where the system looks (PATH, the loader), then where its vendor installs it; its version is
// asked once, in a child process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/Expected.h"

namespace dovetail::toolchain {

enum class ToolKind {
  Nvrtc,     ///< CUDA C++ to PTX, a library
  Nvcc,      ///< the same, a program
  NvJitLink, ///< PTX to cubin, a library
  Ptxas,     ///< the same, a program
  Hiprtc,    ///< HIP C++ to a code object, a library
  Hipcc,     ///< the same, a program
  Lld        ///< links code objects; part of Dovetail where it was there at build time
};

struct Tool {
  std::string name;    ///< "NVRTC"
  std::string version; ///< "13.0"; empty where it cannot be used
  std::string path;    ///< of the file, or "built in"
  std::string missing; ///< why it cannot be used and how to get it; empty where it can

  bool found() const { return missing.empty(); }
  std::string description() const { return name + " " + version; }
};

/// "13.0" is at least 12.8. Versions are numbers between points.
bool isAtLeast(const std::string &version, unsigned major, unsigned minor);

/// Not for use by several threads at once.
class Tools {
public:
  /// `folders`: separated by ':', of libraries or programs; as dvt_host.library_path. Of one named
  /// `lib` or `lib64` the `bin` beside it counts, too.
  explicit Tools(const std::string &folders);

  const Tool &of(ToolKind kind);
  /// In the order of ToolKind.
  std::vector<Tool> all();
  /// The child that opens NVRTC and hiprtc, dovetail-rtc; Unavailable where it is not installed.
  static Expected<std::string> runtimeCompiler();

private:
  Tool find(ToolKind kind) const;
  Tool findLibrary(const char *interface, const char *name,
                   const std::vector<std::string> &files) const;
  Tool findProgram(const char *name, const char *vendorFolder, const char *before,
                   const char *how) const;
  std::vector<std::string> filesOf(std::initializer_list<const char *> names,
                                   const char *vendorFolder) const;

  std::vector<std::string> folders;
  std::map<ToolKind, Tool> known;
};

} // namespace dovetail::toolchain
