// SPDX-License-Identifier: Apache-2.0
//
// Bytes of kernels that plans share, and the border of a plan as the model has it.
#include "artifact/Plan.h"

#include <algorithm>

namespace dovetail {

KernelBytes::KernelBytes(std::vector<uint8_t> bytes) {
  auto own = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  first = own->data();
  count = own->size();
  owner = std::move(own);
}

bool operator==(const KernelBytes &a, const KernelBytes &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

const PlanState *stateOf(const Plan &plan, bool isInput, uint32_t index) {
  for (const PlanState &state : plan.states)
    if ((isInput ? state.input : state.output) == index)
      return &state;
  return nullptr;
}

std::vector<Extent> borderExtents(const Plan &plan, bool isInput, uint32_t index) {
  const PlanBlock &block = plan.blocks.front();
  std::vector<Extent> own = block.values[(isInput ? block.inputs : block.outputs)[index]].extents;
  const PlanState *state = stateOf(plan, isInput, index);
  if (!state || state->order.empty())
    return own;
  std::vector<Extent> shown(own.size());
  for (size_t d = 0; d < own.size(); ++d)
    shown[state->order[d]] = own[d];
  return shown;
}

std::vector<int64_t> inPlanOrder(const PlanState *state, std::vector<int64_t> numbers) {
  if (!state || state->order.size() != numbers.size())
    return numbers;
  std::vector<int64_t> result;
  for (uint32_t dimension : state->order)
    result.push_back(numbers[dimension]);
  return result;
}

std::vector<int64_t> inModelOrder(const PlanState *state, std::vector<int64_t> numbers) {
  if (!state || state->order.size() != numbers.size())
    return numbers;
  std::vector<int64_t> result(numbers.size());
  for (size_t d = 0; d < numbers.size(); ++d)
    result[state->order[d]] = numbers[d];
  return result;
}

} // namespace dovetail
