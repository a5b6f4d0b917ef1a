// SPDX-License-Identifier: Apache-2.0
//
// Makes cubins from PTX through whichever of NVIDIA's assemblers is there: the library nvJitLink,
// opened at run time, or the program ptxas. Neither needs a device. Without them PTX goes into
// artifacts as it is, and the driver assembles it when it is loaded.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/DeviceKernel.h"

namespace dovetail::toolchain {

struct AssembledPtx {
  std::vector<uint8_t> cubin;
  std::map<std::string, DeviceResources> resources; ///< by entry, from the log
  std::string log;
};

class PtxAssembler {
public:
  enum class Tool { None, NvJitLink, Ptxas };

  /// Looked for once: nvJitLink of CUDA 12 or 13, then ptxas, each where the loader and PATH find
  /// it and in CUDA's usual folder.
  static const PtxAssembler &find();
  /// This one alone; its tool is None where it is not there.
  static PtxAssembler of(Tool tool);

  Tool tool() const { return which; }
  std::string description() const; ///< "nvJitLink 13.0" or "ptxas (/usr/local/cuda/bin/ptxas)"
  std::string version() const;     ///< of nvJitLink: "13.0"
  const std::string &path() const { return file; } ///< of library or program; may be a bare name

  /// Unavailable where there is no assembler or it is too old for the architecture; an internal
  /// error with its log where it refuses the text. With `strict` ptxas takes warnings for errors.
  Expected<AssembledPtx> assemble(const std::string &ptx, const std::string &architecture,
                                  bool strict = false) const;

private:
  Expected<AssembledPtx> assembleByLibrary(const std::string &ptx,
                                           const std::string &architecture) const;
  Expected<AssembledPtx> assembleByProgram(const std::string &ptx, const std::string &architecture,
                                           bool strict) const;
  bool openLibrary();
  bool findProgram();

  Tool which = Tool::None;
  void *library = nullptr; ///< stays open
  std::string file;
  unsigned major = 0, minor = 0;
};

/// What an assembler's verbose log tells of each entry.
std::map<std::string, DeviceResources> resourcesOfLog(std::string_view log);

} // namespace dovetail::toolchain
