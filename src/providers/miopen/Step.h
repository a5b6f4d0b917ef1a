// SPDX-License-Identifier: Apache-2.0
//
// A call, or several in one, made ready on a device.
#pragma once

#include <memory>

#include "providers/miopen/Turn.h"

namespace dovetail::miopen {

/// How a convolution's algorithm is chosen, and among which.
struct Choice {
  enum class By {
    Immediate, ///< the library's ranking, without running any
    Find,      ///< the library tries them out on the device as the kernel is prepared
    Fusion     ///< convolution, bias and activation in one of its fused kernels
  };
  By by = By::Immediate;
  bool mayTransform = false;   ///< Winograd and Fourier, which round otherwise
  uint64_t workspaceBytes = 0; ///< the most that the algorithm may take
};

/// Where a run's memory lies on the device.
struct Pointers {
  std::vector<const void *> inputs; ///< of the problem
  void *result = nullptr;
  void *workspace = nullptr;
};

class Step {
public:
  virtual ~Step() = default;
  virtual uint64_t workspaceBytes() const { return 0; }
  /// Enqueues the work; what goes wrong is noted in `turn`.
  virtual void run(Turn &turn, const Pointers &pointers) = 0;
};

// Null where something is wrong, which is noted in `turn`.
std::unique_ptr<Step> makeStep(Turn &turn, const Call &call);
std::unique_ptr<Step> makeConvolution(Turn &turn, const Call &call, const Choice &choice);
/// Of a convolution and all that follows it.
std::unique_ptr<Step> makeFused(Turn &turn, const std::vector<Call> &calls);
/// Whether a form is a convolution with a bias, an activation or both behind it.
bool isFusible(const Form &form);

} // namespace dovetail::miopen
