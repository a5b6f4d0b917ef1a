// SPDX-License-Identifier: Apache-2.0
//
// What extents must fulfil for a model to make sense, where that could not be decided when
// compiling: windows that fit their images, operands that broadcast. Shape rules state requirements
// over symbols, plans carry them, and the runtime checks them as soon as the symbols have values,
// so that a kernel never runs on extents that its node does not allow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/Extent.h"

namespace dovetail {

struct Requirement {
  enum class Relation : uint8_t {
    AtLeast,  ///< left >= right
    Equal,    ///< left == right
    Broadcast ///< left == right, or one of them is 1
  };
  Relation relation = Relation::AtLeast;
  Extent left, right;
  /// "Conv 'node': the padded image along axis 2", whose extent is `left`.
  std::string subject;
  friend bool operator==(const Requirement &, const Requirement &) = default;
};

constexpr uint8_t kRelationCount = 3;

/// Nothing where a symbol has no value.
std::optional<bool> holds(const Requirement &requirement, const SymbolValues &values);
/// The broken requirement as a sentence: what was found and what is needed.
std::string violation(const Requirement &requirement, const SymbolValues &values);
/// BadInput for the first that is broken; those with symbols that have no value yet pass.
Status check(const std::vector<Requirement> &requirements, const SymbolValues &values);

} // namespace dovetail
