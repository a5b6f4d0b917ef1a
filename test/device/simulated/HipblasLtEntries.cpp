// SPDX-License-Identifier: Apache-2.0
//
// libhipblaslt.so.1: the entry points of hipBLASLt over its double (LtLibrary.h), numbered as in
// the library's published interface.
#include <cstdlib>

#include "LtLibrary.h"

using namespace simulated::lt;

namespace {

/// Of each Outcome.
constexpr int kStatuses[] = {0, 1, 3, 7, 5};

LtLibrary &library() {
  static auto *const kOnly = new LtLibrary({
      .prefix = "hipblasLt",
      .driver = "libamdhip64-sim.so",
      .attributes = {{{Kind::Layout, 0}, {Attribute::BatchCount, 4}},
                     {{Kind::Layout, 1}, {Attribute::BatchStride, 8}},
                     {{Kind::Matmul, 0}, {Attribute::TransA, 4}},
                     {{Kind::Matmul, 1}, {Attribute::TransB, 4}},
                     {{Kind::Matmul, 2}, {Attribute::Epilogue, 4}},
                     {{Kind::Matmul, 3}, {Attribute::BiasPointer, 8}},
                     {{Kind::Matmul, 4}, {Attribute::BiasType, 4}},
                     {{Kind::Preference, 1}, {Attribute::Workspace, 8}}},
      .types = {{0, DVT_F32}, {2, DVT_F16}, {14, DVT_BF16}},
      .computeFloat32 = 2,
      .computeTf32 = 6,
      .none = 111,
      .transpose = 112,
      .everyReduction = 0,
      .defaultAlignment = 1,
      .answerBytes = 56,
      .workspaceOffset = 24,
      .stateOffset = 32,
      .workspaceAlignment = 16,
      .notSupported = 7,
  });
  return *kOnly;
}

} // namespace

#define ENTRY(name) hipblasLt##name
#include "LtEntries.inc"

EXPORT int hipblasLtGetVersion(void *handle, int *version) {
  const char *wanted = std::getenv("DOVETAIL_SIMULATED_LT_VERSION");
  *version = wanted ? std::atoi(wanted) : 100200;
  return status(library().checkHandle(handle));
}
