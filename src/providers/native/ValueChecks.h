// SPDX-License-Identifier: Apache-2.0
//
// Whether values at run time are what a kernel relies on (codegen::ValueDemand).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/schedule/Schedule.h"

namespace dovetail::native {

/// What is wrong with a number under an extent; nothing where the demand is met.
std::optional<std::string> violation(const codegen::ValueDemand &demand, int64_t number,
                                     int64_t extent);
/// Of the first of `count` elements of i32 or i64 that breaks the demand.
std::optional<std::string> firstViolation(const codegen::ValueDemand &demand, dvt_type type,
                                          const void *data, int64_t count, int64_t extent);

} // namespace dovetail::native
