// SPDX-License-Identifier: Apache-2.0
#include "providers/native/ValueChecks.h"

#include <fmt/format.h>

namespace dovetail::native {

using codegen::ValueDemand;

std::optional<std::string> violation(const ValueDemand &demand, int64_t number, int64_t extent) {
  int64_t low = demand.isIndex ? -extent : 0, high = demand.isIndex ? extent - 1 : extent;
  if (number >= low && number <= high)
    return std::nullopt;
  if (high < low)
    return fmt::format("{} {} points into nothing: the axis is empty", demand.what, number);
  return fmt::format("{} {} is outside [{}, {}]", demand.what, number, low, high);
}

template <typename T>
static std::optional<std::string> first(const ValueDemand &demand, const void *data, int64_t count,
                                        int64_t extent) {
  const T *elements = static_cast<const T *>(data);
  int64_t low = demand.isIndex ? -extent : 0, high = demand.isIndex ? extent - 1 : extent;
  for (int64_t i = demand.part; i < count; i += demand.parts)
    if (int64_t(elements[i]) < low || int64_t(elements[i]) > high)
      return violation(demand, elements[i], extent);
  return std::nullopt;
}

std::optional<std::string> firstViolation(const ValueDemand &demand, dvt_type type,
                                          const void *data, int64_t count, int64_t extent) {
  return type == DVT_I32 ? first<int32_t>(demand, data, count, extent)
                         : first<int64_t>(demand, data, count, extent);
}

} // namespace dovetail::native
