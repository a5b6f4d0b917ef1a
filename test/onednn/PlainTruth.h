// SPDX-License-Identifier: Apache-2.0
//
// The truth for provider tests: every op of a problem computed by the most obvious loops over its
// ONNX definition, in double precision and row-major order. Shares no code with any provider.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "support/Problem.h"

namespace dovetail::test {

struct PlainTensor {
  std::vector<int64_t> dims;
  std::vector<double> data;
};

/// Values of the problem's outputs for the given inputs (in the problem's order). Aborts the test
/// process on an op it does not know, so that no case passes unchecked.
std::vector<PlainTensor> plainTruth(const Problem &problem, const std::vector<PlainTensor> &inputs);

} // namespace dovetail::test
