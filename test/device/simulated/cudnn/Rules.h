// SPDX-License-Identifier: Apache-2.0
//
// Which attributes a descriptor has, of what type, how many elements and whether it must have them.
#pragma once

#include "Objects.h"

namespace cudnn_double {

struct Rule {
  api::DescriptorKind kind;
  api::Attribute attribute;
  api::AttributeType type;
  int64_t most;    ///< elements
  bool isRequired; ///< before the descriptor is finalised
  bool isGiven;    ///< by the library alone: can be read and not set
  /// Of descriptors: what they are.
  api::DescriptorKind holds;
};

/// Null where such a descriptor has no such attribute.
const Rule *findRule(api::DescriptorKind kind, api::Attribute attribute);
/// Empty, or what is missing before the descriptor is complete.
std::string missingIn(const Descriptor &descriptor);
size_t bytesOf(api::AttributeType type);

} // namespace cudnn_double
