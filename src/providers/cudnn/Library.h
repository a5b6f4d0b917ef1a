// SPDX-License-Identifier: Apache-2.0
//
// The cuDNN library as found at run time: its file, its version and the functions used from it.
// Found by dlopen in the host's folders first and then where the system looks; nothing is linked.
// A version has graphs (from 9.8 on, the first that plans without a device), the older calls, or
// both; one with neither is passed over.
#pragma once

#include <string>

#include "providers/cudnn/BackendApi.h"
#include "providers/cudnn/LegacyApi.h"

namespace dovetail::cudnn {

class Library {
public:
  /// `path`: folders separated by ':'; may be null.
  explicit Library(const char *path);
  Library(const Library &) = delete;

  bool isLoaded() const { return missing.empty(); }
  bool hasGraphs() const { return BackendCreateDescriptor != nullptr; }
  bool hasLegacy() const { return ConvolutionForward != nullptr; }
  /// "CUDNN_STATUS_NOT_SUPPORTED: what the library says of it", of the call just made.
  std::string describe(Status status) const;
  /// The innermost reason that the library has noted since this was last asked; may be empty.
  std::string lastError() const;

  std::string versionText;   ///< "9.19.0"; empty when not loaded
  std::string file;          ///< where it was loaded from
  std::string missing;       ///< why it is not there and how to get it; empty when loaded
  std::string withoutGraphs; ///< why it has none

#define DOVETAIL_CUDNN_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  DOVETAIL_CUDNN_FUNCTIONS(DOVETAIL_CUDNN_MEMBER)
  DOVETAIL_CUDNN_GRAPH_FUNCTIONS(DOVETAIL_CUDNN_MEMBER)
  DOVETAIL_CUDNN_LEGACY_FUNCTIONS(DOVETAIL_CUDNN_MEMBER)
  /// From 9 on.
  void (*GetLastErrorString)(char *, size_t) = nullptr;
#undef DOVETAIL_CUDNN_MEMBER

private:
  /// Empty when this file will do, else why not.
  std::string load(const std::string &name);
  /// The first function of each kind that is not there; empty where all are.
  struct Absent {
    std::string always, graphs, legacy;
  };
  Absent findFunctions(void *opened);
  void forgetGraphs();
  void forgetLegacy();
};

} // namespace dovetail::cudnn
