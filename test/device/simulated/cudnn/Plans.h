// SPDX-License-Identifier: Apache-2.0
//
// Plans, made for a described device or loaded on one, and the memory that they run with.
#pragma once

#include "Objects.h"

namespace cudnn_double {

/// 900 for sm_90; nothing where the properties do not say.
std::optional<int> deviceVersion(const Descriptor &deviceProperties);

void finalizePlan(Entry &entry, Descriptor &plan);
void finalizePack(Entry &entry, Descriptor &pack);
std::string planText(const Plan &plan);

} // namespace cudnn_double
