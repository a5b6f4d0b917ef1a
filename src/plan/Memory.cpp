// SPDX-License-Identifier: Apache-2.0
//
// Lifetimes follow aliases to the value that owns the memory.
#include "plan/Memory.h"

#include <algorithm>
#include <map>

#include "artifact/BufferAssignment.h"
#include "support/Layout.h"

namespace dovetail::plan {
namespace {

uint32_t owner(const PlanBlock &block, uint32_t number) {
  while (block.values[number].storage == Storage::Alias)
    number = block.values[number].index;
  return number;
}

bool setBytes(PlanValue &value) {
  auto layout = Layout::parse(value.layout);
  Extent elements = layout ? layout->physicalElements(value.extents) : elementCount(value.extents);
  if (!elements.isStatic())
    return false;
  value.bytes = bytesOf(value.type, elements.value());
  return true;
}

} // namespace

void assignMemory(PlanBlock &block) {
  bool isStatic = true;
  for (PlanValue &value : block.values)
    isStatic &= setBytes(value);
  for (PlanStep &step : block.steps)
    if (step.kind == StepKind::Kernel && step.choice.candidate.workspaceBytes != UINT64_MAX)
      step.workspaceBytes = step.choice.candidate.workspaceBytes;
  if (!isStatic)
    return;
  std::vector<BufferRequest> requests;
  std::map<uint32_t, size_t> requestOf;
  auto touch = [&](uint32_t number, uint32_t step) {
    number = owner(block, number);
    if (block.values[number].storage != Storage::Arena)
      return;
    auto [found, isNew] = requestOf.try_emplace(number, requests.size());
    if (isNew)
      requests.push_back({block.values[number].bytes, step, step});
    requests[found->second].last = step;
  };
  std::vector<std::pair<uint32_t, size_t>> workspaces;
  for (uint32_t i = 0; i < block.steps.size(); ++i) {
    for (uint32_t number : block.steps[i].inputs)
      touch(number, i);
    for (uint32_t number : block.steps[i].outputs)
      touch(number, i);
    if (block.steps[i].workspaceBytes > 0) {
      workspaces.emplace_back(i, requests.size());
      requests.push_back({block.steps[i].workspaceBytes, i, i});
    }
  }
  BufferAssignment assignment = assignBuffers(requests);
  for (auto [number, request] : requestOf)
    block.values[number].offset = assignment.offsets[request];
  for (auto [step, request] : workspaces)
    block.steps[step].workspaceOffset = assignment.offsets[request];
  block.arenaBytes = assignment.arenaBytes;
}

} // namespace dovetail::plan
