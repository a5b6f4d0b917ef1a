// SPDX-License-Identifier: Apache-2.0
//
// Scaled-dot-product attention on f32: operands of rank 3 or 4 and transposes that feed them or
// follow come down to strides by batch, head, position and channel. Also the decisions of its
// schedule: a task takes some queries of one head through all keys, block by block, and never holds
// more than a block of scores.
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/Access.h"

namespace dovetail::codegen {

struct Attention {
  /// Strides of a problem input or output.
  struct Side {
    uint32_t value;
    Product batch, head, position, channel;
  };
  Side query, key, val, result;
  dvt_extent batch, queries, keys;
  int64_t heads, keyHeads, size, valueSize;
  double scale;
  bool causal;
  bool narrowQueries;           ///< of 16-bit floats: a task widens its own first
  std::optional<uint32_t> mask; ///< bool or floats
  Access maskAccess;            ///< by batch, head, query, key

  /// Nothing where the problem has no attention; an error with the reason where it cannot be
  /// served.
  static std::optional<Expected<Attention>> find(const ProblemReader &problem);
};

struct AttentionPlan {
  int64_t queries = 1; ///< of a task
  int64_t keys = 1;    ///< of a block, a multiple of the panel
  unsigned rows = 1;   ///< of the register tile

  static constexpr unsigned kVectors = 2; ///< of the register tile
  static AttentionPlan read(const Schedule &schedule);
  std::string text() const;
};

/// Where things lie in a worker's scratch memory, in elements.
struct AttentionScratch {
  int64_t panel;       ///< columns of a panel of turned keys
  int64_t outputPitch; ///< channels of the result, rounded up to vectors
  int64_t turnedKeys, scores, outputs, maxima, sums, queries, elements;

  AttentionScratch(const Attention &attention, const AttentionPlan &plan, const Machine &machine);
};

} // namespace dovetail::codegen
