// SPDX-License-Identifier: Apache-2.0
//
// libcublasLt.so.13: the entry points of cuBLASLt over its double (LtLibrary.h), numbered as in the
// library's published interface.
#include <cstdlib>

#include "LtLibrary.h"

using namespace simulated::lt;

namespace {

/// Of each Outcome.
constexpr int kStatuses[] = {0, 1, 7, 15, 13};

LtLibrary &library() {
  static auto *const kOnly = new LtLibrary({
      .prefix = "cublasLt",
      .driver = "libcuda-sim.so",
      .attributes = {{{Kind::Layout, 5}, {Attribute::BatchCount, 4}},
                     {{Kind::Layout, 6}, {Attribute::BatchStride, 8}},
                     {{Kind::Matmul, 3}, {Attribute::TransA, 4}},
                     {{Kind::Matmul, 4}, {Attribute::TransB, 4}},
                     {{Kind::Matmul, 7}, {Attribute::Epilogue, 4}},
                     {{Kind::Matmul, 8}, {Attribute::BiasPointer, 8}},
                     {{Kind::Preference, 1}, {Attribute::Workspace, 8}},
                     {{Kind::Preference, 3}, {Attribute::Reductions, 4}},
                     {{Kind::Preference, 5}, {Attribute::AlignmentA, 4}},
                     {{Kind::Preference, 6}, {Attribute::AlignmentB, 4}},
                     {{Kind::Preference, 7}, {Attribute::AlignmentC, 4}},
                     {{Kind::Preference, 8}, {Attribute::AlignmentD, 4}}},
      .types = {{0, DVT_F32}, {2, DVT_F16}, {14, DVT_BF16}},
      .computeFloat32 = 68,
      .computeTf32 = 77,
      .none = 0,
      .transpose = 1,
      .everyReduction = 7,
      .defaultAlignment = 256,
      .answerBytes = 96,
      .workspaceOffset = 64,
      .stateOffset = 72,
      .workspaceAlignment = 256,
      .notSupported = 15,
  });
  return *kOnly;
}

} // namespace

#define ENTRY(name) cublasLt##name
#include "LtEntries.inc"

EXPORT size_t cublasLtGetVersion() {
  const char *wanted = std::getenv("DOVETAIL_SIMULATED_LT_VERSION");
  return wanted ? std::strtoul(wanted, nullptr, 10) : 130100;
}
