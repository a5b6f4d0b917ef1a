// SPDX-License-Identifier: Apache-2.0
//
// Attention on devices: a block of threads takes some queries of one head through all keys, block
// by block, with a running maximum and sum of exponentials, and holds no more than a block of
// scores. Some threads share a query: first its keys, then the channels of its result.
#pragma once

#include <optional>

#include "codegen/schedule/contraction/Attention.h"

namespace dovetail::codegen {

struct DeviceAttentionPlan {
  static constexpr int64_t kThreads = 256; ///< of a block
  static constexpr int64_t kQueries = 16;  ///< of a block
  static constexpr int64_t kSharers = kThreads / kQueries;

  int64_t keys = 64; ///< brought into shared memory at once, a multiple of kSharers

  uint64_t sharedBytes(const Attention &attention) const;
  std::string text() const; ///< "deviceattention:q16:k64"
  static DeviceAttentionPlan read(const Schedule &schedule);
  /// The largest that fits; nothing where heads have too many channels.
  static std::optional<DeviceAttentionPlan> of(const Attention &attention);
};

} // namespace dovetail::codegen
