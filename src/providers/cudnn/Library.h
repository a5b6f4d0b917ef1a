// SPDX-License-Identifier: Apache-2.0
//
// The cuDNN library as found at run time: its file, its version and the functions used from it.
// Found by dlopen in the host's folders first and then where the system looks; nothing is linked.
#pragma once

#include <string>

#include "providers/cudnn/BackendApi.h"

namespace dovetail::cudnn {

class Library {
public:
  /// `path`: folders separated by ':'; may be null.
  explicit Library(const char *path);
  Library(const Library &) = delete;

  bool isLoaded() const { return missing.empty(); }
  /// "CUDNN_STATUS_NOT_SUPPORTED: what the library says of it", of the call just made.
  std::string describe(Status status) const;
  /// The innermost reason that the library has noted since this was last asked; may be empty.
  std::string lastError() const;

  std::string versionText; ///< "9.19.0"; empty when not loaded
  std::string file;        ///< where it was loaded from
  std::string missing;     ///< why it is not there and how to get it; empty when loaded

#define DOVETAIL_CUDNN_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  DOVETAIL_CUDNN_FUNCTIONS(DOVETAIL_CUDNN_MEMBER)
#undef DOVETAIL_CUDNN_MEMBER

private:
  /// Empty when this file will do, else why not.
  std::string load(const std::string &name);
};

} // namespace dovetail::cudnn
