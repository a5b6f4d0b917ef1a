// SPDX-License-Identifier: Apache-2.0
//
// Offers attention on devices.
#include "codegen/schedule/contraction/DeviceAttention.h"

#include <fmt/format.h>

#include "codegen/schedule/Families.h"

namespace dovetail::codegen {

/// Every device gives a block as much without being asked.
static constexpr uint64_t kMostSharedBytes = 48 << 10;

uint64_t DeviceAttentionPlan::sharedBytes(const Attention &attention) const {
  int64_t operands =
      kQueries * attention.size + keys * (attention.size + 1) + keys * attention.valueSize;
  return 4 * uint64_t(operands + kQueries * keys + kThreads);
}

std::string DeviceAttentionPlan::text() const {
  return fmt::format("deviceattention:q{}:k{}", kQueries, keys);
}

DeviceAttentionPlan DeviceAttentionPlan::read(const Schedule &schedule) {
  DeviceAttentionPlan plan;
  plan.keys = schedule.integerParameter("k", plan.keys);
  return plan;
}

std::optional<DeviceAttentionPlan> DeviceAttentionPlan::of(const Attention &attention) {
  for (DeviceAttentionPlan plan; plan.keys >= kSharers; plan.keys /= 2)
    if (plan.sharedBytes(attention) <= kMostSharedBytes)
      return plan;
  return std::nullopt;
}

void proposeDeviceAttention(const ProblemReader &problem, const Machine &,
                            const ScheduleSink &sink) {
  auto found = Attention::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse("deviceattention", found->error().message);
  const Attention &a = **found; // its time: DeviceTime.h
  auto plan = DeviceAttentionPlan::of(a);
  if (!plan)
    return sink.refuse("deviceattention",
                       fmt::format("heads of {} and {} channels, of which sixteen queries and keys "
                                   "do not fit into 48 KiB of shared memory",
                                   a.size, a.valueSize));
  Schedule schedule = Schedule::rowMajor(plan->text(), problem.problem());
  sink.offer(std::move(schedule));
}

} // namespace dovetail::codegen
