// SPDX-License-Identifier: Apache-2.0
//
// A form on a device, ready to run.
#pragma once

#include "providers/miopen/Step.h"

namespace dovetail::miopen {

class Kernel {
public:
  /// Null with `reason` where the library has no algorithm that suits the choice, or none at all.
  /// `inputCount`: operands of the problem.
  static std::unique_ptr<Kernel> make(std::shared_ptr<Handle> handle, const Form &form,
                                      const Choice &choice, uint32_t inputCount,
                                      std::string &reason);

  uint64_t workspaceBytes() const { return workspace; }
  /// Enqueues the work on the stream of `args`. May be called by several threads at once.
  dvt_code run(const dvt_run_args &args, std::string &reason);

private:
  std::shared_ptr<Handle> handle;
  std::vector<std::unique_ptr<Step>> steps; ///< one after the other
  uint64_t workspace = 0;
  uint32_t inputCount = 0;
};

} // namespace dovetail::miopen
