// SPDX-License-Identifier: Apache-2.0
//
// Splits a problem into the contraction it is made around, the transposes that feed it and the
// element-wise ops that follow: what every contraction family asks first. The followers are
// computed on the contraction's output tile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/schedule/ProblemReader.h"
#include "codegen/schedule/contraction/Access.h"
#include "support/Expected.h"

namespace dovetail::codegen {

struct Fusion {
  /// What operands of a contraction may be besides floats: nothing; the second one a dequantisation
  /// of constants; bytes, as both operands' dequantisations take them or the op itself does.
  enum class Takes { Floats, DequantizedWeights, Bytes };

  uint32_t anchor = 0;              ///< index of the contraction op
  uint32_t rightPosition = 1;       ///< of the second operand among the anchor's inputs
  std::vector<uint32_t> transposes; ///< ops that feed it
  /// The dequantize_linear that gives the anchor's first operand, and its second one.
  std::optional<uint32_t> leftDequantization, dequantization;
  std::vector<uint32_t> followers; ///< element-wise ops, in order
  uint32_t result = 0;             ///< the contraction's output value
  std::vector<dvt_extent> extents; ///< of result and of all problem outputs
  std::vector<uint32_t> leaves;    ///< inputs and literals that the followers read, each once
  double cost = 0;                 ///< rough number of vector instructions of the followers

  /// Index of the op among `names` that the problem has; nothing where there is none.
  static std::optional<uint32_t> findAnchor(const ProblemReader &problem,
                                            std::initializer_list<std::string_view> names);
  /// BadInput with a reason where something else than transposes, the anchor and element-wise
  /// followers on outputs of the anchor's extents is in the problem, or operands are no floats.
  static Expected<Fusion> around(const ProblemReader &problem, uint32_t anchor,
                                 Takes takes = Takes::Floats);

  /// The problem input behind operand `position` of the anchor (quantised, where the operand is
  /// dequantised) and, where transposes lie between, the operand's dimensions in terms of the
  /// input's: dimension i of the operand is order[i] of the input.
  struct Operand {
    uint32_t value;
    std::vector<unsigned> order;
  };
  std::optional<Operand> operand(const ProblemReader &problem, uint32_t position) const;

  /// Access to each leaf; nothing where one has a layout or extents that do not fit.
  std::optional<std::vector<Access>>
  leafAccesses(const ProblemReader &problem, const std::vector<std::string> &inputLayouts) const;
};

} // namespace dovetail::codegen
