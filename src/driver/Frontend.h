// SPDX-License-Identifier: Apache-2.0
//
// The stages that need MLIR: ONNX to graph, graph to better graph, graph to tables. Their one file
// in this room.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/OpTable.h"
#include "support/Expected.h"
#include "support/Problem.h"

namespace dovetail {

struct FrontendOptions {
  SymbolValues dims;
  std::map<std::string, std::vector<int64_t>>
      inputExtents;                           ///< fixed extents of whole inputs, by name
  std::map<std::string, dvt_type> inputTypes; ///< of what will be given for them
  std::vector<std::string> states;            ///< as findStates takes them
  std::function<void(const std::string &)> warn;
  /// Called after stage "import" and "graph" with the module's text, where `wantsText` says so.
  std::function<bool(const std::string &stage)> wantsText;
  std::function<void(const std::string &stage, const std::string &text)> text;
  std::string stopAfter; ///< "import", "graph" or empty
  /// Outputs of a problem for constant folding; nothing is folded without it.
  std::function<Expected<std::vector<std::vector<uint8_t>>>(const Problem &,
                                                            std::vector<const void *>)>
      evaluate;
};

/// The tables; constants' memory is kept by the values themselves.
Expected<plan::OpTable> runFrontend(const std::string &path, const FrontendOptions &options);

} // namespace dovetail
