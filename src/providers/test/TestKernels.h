// SPDX-License-Identifier: Apache-2.0
//
// The algorithms of the test provider. Each shows one thing that plans and the runtime must cope
// with; none is meant to be fast. Only problems of one op on f32 are served.
#pragma once

#include <string>
#include <vector>

#include "dovetail/provider.h"
#include "providers/ProblemReader.h"

namespace dovetail::test_provider {

/// What prepare keeps for run.
struct KernelState {
  uint64_t workspaceBytes = 0;
  std::vector<float> packed;
};

struct Algorithm {
  const char *name;
  const char *op;
  uint32_t version;
  /// Why the problem does not suit; empty where it does.
  std::string (*refuse)(const providers::ProblemReader &);
  const char *inputLayout, *outputLayout;
  uint64_t workspaceBytes; ///< UINT64_MAX: known after prepare
  dvt_packing packing;
  dvt_threading threading;
  bool needsKernel; ///< compile gives bytes, without which prepare fails
  /// May be nullptr.
  std::string (*prepare)(const providers::ProblemReader &, const dvt_prepare_args &, KernelState &);
  std::string (*run)(const KernelState &, const dvt_run_args &);
};

/// In the order in which they are proposed.
const std::vector<Algorithm> &algorithms();

} // namespace dovetail::test_provider
