// SPDX-License-Identifier: Apache-2.0
//
// CUDA or HIP C++ to code for one architecture, by the vendor's compiler: NVRTC or else nvcc give
// PTX, hiprtc or else hipcc give a code object. None needs a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/DeviceKernel.h"
#include "toolchain/Tools.h"

namespace dovetail::toolchain {

struct SourceRequest {
  std::string path;         ///< of the source; headers are looked for in its folder, too
  std::string architecture; ///< "sm_90", "gfx90a"
  std::vector<std::string> definitions; ///< of macros: "NAME=VALUE"
  std::vector<std::string> flags;       ///< handed on as they are

  bool isCuda() const { return architecture.starts_with("sm_"); }
};

struct CompiledSource {
  DeviceImage::Kind kind = DeviceImage::Kind::Ptx; ///< or Hsaco
  std::vector<uint8_t> bytes;                      ///< of PTX without a final zero
  std::string tool;                                ///< "NVRTC 13.0"
  std::string log;                                 ///< what it said, warnings for instance
};

/// The compiler that would be used; Unavailable, with what is missing or too old, where there is
/// none.
Expected<Tool> compilerFor(Tools &tools, const std::string &architecture);

/// BadInput with the compiler's words where it refuses the source; Unavailable where none is there,
/// crashes or does not end.
Expected<CompiledSource> compileSource(Tools &tools, const SourceRequest &request);
/// The same by this compiler alone.
Expected<CompiledSource> compileSourceBy(ToolKind kind, const Tool &tool,
                                         const SourceRequest &request);

/// The first lines of a compiler's log, in one.
std::string firstWords(const std::string &log);

/// The one code object for a device in an offload bundle of clang's ("Clang Offload Bundler", Clang
/// documentation); bytes that are no bundle come back as they are. BadInput for a broken bundle.
Expected<std::vector<uint8_t>> unbundled(std::vector<uint8_t> bytes);

} // namespace dovetail::toolchain
