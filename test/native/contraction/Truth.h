// SPDX-License-Identifier: Apache-2.0
//
// The slow, obvious truth that contraction kernels are compared with: each op of a problem
// evaluated in double precision, element by element, straight from the ONNX text. Knows only the
// ops that these tests use.
#pragma once

#include <cstdint>
#include <vector>

#include "support/Problem.h"

namespace dovetail::truth {

struct Tensor {
  std::vector<int64_t> extents;
  std::vector<double> data; ///< row-major
  int64_t elements() const;
  /// Element at an index of an output that this is broadcast to.
  double at(const std::vector<int64_t> &index) const;
};

/// Values of all problem values, given those of its inputs (in problem order); extents must be
/// static.
std::vector<Tensor> evaluate(const Problem &problem, const std::vector<Tensor> &inputs);

} // namespace dovetail::truth
