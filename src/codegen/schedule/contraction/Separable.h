// SPDX-License-Identifier: Apache-2.0
//
// Depthwise separable convolutions: a depthwise convolution, what follows it element by element,
// and a pointwise convolution of the result. In one kernel a task computes some output rows of the
// former into its scratch memory, as the patch that a convolution would else copy, and the latter
// takes them from there: what is between never goes to memory.
#pragma once

#include <memory>

#include "codegen/schedule/contraction/Convolution.h"
#include "codegen/schedule/contraction/Depthwise.h"

namespace dovetail::codegen {

/// The two convolutions as problems of their own, with the values of the whole and its inputs at
/// the same places; the second one has one more, the first one's result.
struct SeparableHalves {
  const dvt_problem *whole;
  uint32_t between;             ///< value
  uint32_t split;               ///< the second half's first op
  std::vector<uint32_t> inputs; ///< of the second half

  /// They point into this and into the whole.
  dvt_problem first() const, second() const;

  /// Nothing where the problem is no such pair.
  static std::optional<SeparableHalves> find(const ProblemReader &problem);
};

struct Separable {
  Convolution depthwise, pointwise; ///< values and ops as the whole problem numbers them
  uint32_t between;

  /// Nothing where the problem is no such pair; an error with the reason where it cannot be served.
  static std::optional<Expected<Separable>> find(const ProblemReader &problem);
};

struct SeparablePlan {
  ConvolutionPlan pointwise; ///< from patches of whole rows, all output channels in each task
  DepthwisePlan depthwise;   ///< chunkRows is not used

  static SeparablePlan read(const Schedule &schedule);
  std::string text() const;
};

} // namespace dovetail::codegen
