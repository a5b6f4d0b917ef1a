// SPDX-License-Identifier: Apache-2.0
//
// A user's own kernel: CUDA or HIP C++ and a manifest that says what it computes and how it is
// launched (docs/users-kernels.md has the format). For a problem that it computes it becomes a
// device kernel as Dovetail's own are.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/DeviceKernel.h"
#include "support/Problem.h"
#include "toolchain/KernelPattern.h"
#include "toolchain/Tools.h"

namespace dovetail::toolchain {

/// A number that a problem gives: an expression over the extents of the pattern, the value of an
/// attribute, or itself.
struct KernelNumber {
  struct Attribute {
    std::string name;
  };
  std::variant<Extent, Attribute, double> source;
  dvt_type type = DVT_I64; ///< or i32, f32, f64
};

struct KernelOperand {
  enum class Kind : uint8_t { Input, Output, Workspace, Number };
  Kind kind = Kind::Input;
  uint32_t position = 0; ///< among the inputs or outputs of the pattern
  KernelNumber number;
};

/// What was chosen for one problem.
struct KernelLaunch {
  PatternMatch match;
  int64_t blocks = 0, threads = 0, workspaceBytes = 0;
  std::vector<DeviceArgument> arguments;
  std::vector<dvt_type> types; ///< of each argument; undefined for addresses
  std::vector<std::string> definitions;
};

struct UserKernel {
  std::string name;
  std::string manifest;                   ///< path of the file
  std::string source;                     ///< path
  bool isCuda = true;                     ///< else HIP
  std::vector<std::string> architectures; ///< empty: all
  std::vector<Problem> patterns;
  std::string entry;
  KernelNumber blocks, threads, workspaceBytes;
  std::vector<KernelOperand> operands;
  std::vector<std::pair<std::string, KernelNumber>> definitions;
  std::vector<std::string> flags;
  std::string numerics = "f32";
  bool deterministic = true, inPlace = false;
  std::string hostForm; ///< path of a shared object for simulated devices; may be empty
  std::string digest;   ///< of manifest, source and the headers beside it

  /// BadInput, with the field at fault, for what is no manifest; paths in it are relative to its
  /// folder.
  static Expected<UserKernel> read(const std::string &path);

  /// Nothing with `reason` where it is not for that problem or target ("cuda", "sm_90"). The reason
  /// is empty where the problem's ops are altogether others.
  std::optional<KernelLaunch> launchFor(const Problem &problem, const std::string &device,
                                        const std::string &architecture, std::string &reason) const;

  /// Compiles it for a problem. BadInput with the compiler's words where it refuses the source, or
  /// where the source has no such entry; Unavailable where there is no compiler.
  Expected<DeviceKernel> compile(Tools &tools, const KernelLaunch &launch,
                                 const std::string &architecture) const;
};

/// Paths of manifests among the entries of a library path (dvt_host.library_path): those that end
/// in
/// ".json".
std::vector<std::string> manifestsIn(const std::string &libraryPath);

} // namespace dovetail::toolchain
