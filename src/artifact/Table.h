// SPDX-License-Identifier: Apache-2.0
//
// Between plans and the FlatBuffers tables of an artifact. Reading trusts nothing: absent fields
// become empty values and offsets are checked against the sections they point into.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "support/Hash.h"

namespace dovetail {

/// Where a constant's or kernel's bytes stand in their section.
struct StoredBytes {
  uint64_t offset = 0, bytes = 0;
  Digest digest{};
};

std::string planTable(const Plan &plan, const std::vector<StoredBytes> &constants,
                      const std::vector<StoredBytes> &kernels);
std::string measuredTable(const Plan &plan);

/// Everything but constants' and kernels' bytes, whose places are returned.
Status readPlanTable(const uint8_t *data, uint64_t bytes, Plan &plan,
                     std::vector<StoredBytes> &constants, std::vector<StoredBytes> &kernels);
Status readMeasuredTable(const uint8_t *data, uint64_t bytes, bool alternatives, Plan &plan);

} // namespace dovetail
