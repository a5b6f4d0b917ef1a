// SPDX-License-Identifier: Apache-2.0
//
// A kernel ready to run: its code mapped executable, its constants packed. Running allocates
// nothing and may happen in several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/schedule/KernelAbi.h"
#include "codegen/schedule/Schedule.h"
#include "dovetail/provider.h"
#include "providers/PackedMemory.h"
#include "providers/native/TensorShapes.h"
#include "support/Expected.h"

namespace dovetail::native {

class LoadedKernel {
public:
  /// Checks the kernel bytes before it trusts them. The problem is needed during the call only.
  static Expected<std::unique_ptr<LoadedKernel>> load(const codegen::ProblemReader &problem,
                                                      const codegen::Machine &machine,
                                                      const codegen::Schedule &schedule,
                                                      const dvt_prepare_args &args);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel &) = delete;

  uint64_t workspaceBytes() const;
  dvt_code run(const dvt_run_args &args, dvt_error *error) const;

private:
  explicit LoadedKernel(const codegen::ProblemReader &problem) : shapes(problem) {}
  Status mapCode(const dvt_prepare_args &args, const codegen::Machine &machine);
  Status copyCode(const uint8_t *from, uint64_t bytes);
  Status packConstants(const codegen::ProblemReader &problem, const codegen::Machine &machine,
                       const codegen::Schedule &schedule, const dvt_prepare_args &args);
  dvt_code checkValues(const dvt_run_args &args, dvt_error *error) const;

  struct Phase {
    codegen::PhaseFunction function;
    codegen::CountFunction count; ///< null where the count is static
    int64_t staticCount;
  };
  TensorShapes shapes;
  uint8_t *ownCode = nullptr; ///< where the host's bytes may not be executed
  uint64_t ownBytes = 0;
  std::vector<Phase> phases;
  std::vector<codegen::ValueDemand> demands; ///< checked at each run
  std::vector<uint32_t> divisors;            ///< inputs whose integers must not be zero, likewise
  uint32_t threads = 1;
  uint64_t sharedBytes = 0, scratchStride = 0;
  std::vector<const void *>
      constants; ///< for each input: packed or given bytes, or null where it comes with each run
  providers::PackedMemory packed;
};

} // namespace dovetail::native
