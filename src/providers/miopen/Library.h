// SPDX-License-Identifier: Apache-2.0
//
// The MIOpen library as found at run time: its file, its version and the functions used from it.
// Found by dlopen in the host's folders first and then where the system looks; nothing is linked.
#pragma once

#include <string>

#include "providers/miopen/Api.h"

namespace dovetail::miopen {

class Library {
public:
  /// `path`: folders separated by ':'; may be null. `drivers`: as dvt_host.device_drivers.
  Library(const char *path, const char *drivers);
  Library(const Library &) = delete;

  bool isLoaded() const { return missing.empty(); }
  bool isAtLeast(size_t major, size_t minor) const {
    return version[0] > major || (version[0] == major && version[1] >= minor);
  }
  bool hasFind2() const { return CreateConvProblem != nullptr; }
  bool hasFusion() const { return CreateFusionPlan != nullptr; }
  bool hasLayerNorm() const { return LayerNormForward != nullptr; }
  /// "miopenStatusBadParm", as the library says it, with the number.
  std::string describe(Status status) const;

  size_t version[3] = {};  ///< major, minor, patch
  std::string versionText; ///< "3.2.0"; empty when not loaded
  std::string file;        ///< where it was loaded from
  std::string missing;     ///< why it is not there and how to get it; empty when loaded

#define DOVETAIL_MIOPEN_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  DOVETAIL_MIOPEN_FUNCTIONS(DOVETAIL_MIOPEN_MEMBER)
  DOVETAIL_MIOPEN_FIND2_FUNCTIONS(DOVETAIL_MIOPEN_MEMBER)
  DOVETAIL_MIOPEN_FUSION_FUNCTIONS(DOVETAIL_MIOPEN_MEMBER)
  DOVETAIL_MIOPEN_NORM_FUNCTIONS(DOVETAIL_MIOPEN_MEMBER)
#undef DOVETAIL_MIOPEN_MEMBER
  /// Of HIP's runtime, for memory that is needed before a model runs; null where not found.
  int (*hipMalloc)(void **memory, size_t bytes) = nullptr;
  int (*hipFree)(void *memory) = nullptr;

private:
  /// Empty when this file will do, else why not.
  std::string load(const std::string &name);
  void findFunctions(void *opened, std::string &absent);
  void findHip(const char *drivers);
  void *opened = nullptr;
};

} // namespace dovetail::miopen
