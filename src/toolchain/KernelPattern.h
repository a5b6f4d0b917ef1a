// SPDX-License-Identifier: Apache-2.0
//
// Whether a problem is what a user's kernel computes: a pattern is a problem itself, whose extents
// are symbols where any number will do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/Problem.h"

namespace dovetail::toolchain {

struct PatternMatch {
  /// For each input and output of the pattern its position among the problem's.
  std::vector<uint32_t> inputs, outputs;
  SymbolValues symbols; ///< of the pattern, and elementsSymbol() of each operand and result
  /// Attributes of the problem's ops about which the pattern says nothing. A name that several ops
  /// have with different values is there with the first one's and in `ambiguous`.
  AttributeMap open;
  std::vector<std::string> ambiguous;
};

/// "in0.elements", "out1.elements": how many elements an operand or a result has.
std::string elementsSymbol(const char *prefix, size_t position);

/// Ops are compared from the outputs backwards, so that neither their order nor that of the inputs
/// matters. Name, version, operands, element types and ranks must agree, as must extents, under one
/// value for each symbol and within the ranges that the pattern states, literals, and all
/// attributes that the pattern names. The problem has no symbols. Nothing with `reason` where it is
/// another.
std::optional<PatternMatch> matchPattern(const Problem &pattern, const Problem &problem,
                                         std::string &reason);

} // namespace dovetail::toolchain
