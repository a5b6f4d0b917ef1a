// SPDX-License-Identifier: Apache-2.0
//
// Lifetimes from the order of steps, then one call of assignBuffers.
#include "artifact/BlockMemory.h"

#include <algorithm>

#include "artifact/BufferAssignment.h"

namespace dovetail {

namespace {
constexpr int64_t kMostElements = int64_t(1) << 46;
} // namespace

std::optional<uint64_t> checkedBytes(dvt_type type, const std::vector<int64_t> &extents,
                                     const Layout &layout) {
  std::vector<int64_t> block;
  if (!layout.isRowMajor())
    block = layout.blockOf(extents.size());
  int64_t count = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t padded, unit = block.empty() ? 1 : block[d];
    if (extents[d] < 0 || __builtin_add_overflow(extents[d], unit - 1, &padded) ||
        __builtin_mul_overflow(count, padded / unit * unit, &count))
      return std::nullopt;
  }
  if (count > kMostElements)
    return std::nullopt;
  return bytesOf(type, count);
}

bool staysInside(dvt_type type, const std::vector<int64_t> &extents,
                 const std::vector<int64_t> &strides, uint64_t offset, uint64_t bytes) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end())
    return true;
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t reach;
    if (extents[d] < 0 || strides[d] < 0 ||
        __builtin_mul_overflow(extents[d] - 1, strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > kMostElements)
      return false;
  }
  return offset <= bytes && bytesOf(type, last + 1) <= bytes - offset;
}

std::vector<uint32_t> aliasRoots(const PlanBlock &block) {
  std::vector<uint32_t> roots(block.values.size());
  for (uint32_t i = 0; i < roots.size(); ++i) {
    uint32_t root = i;
    while (block.values[root].storage == Storage::Alias)
      root = block.values[root].index;
    roots[i] = root;
  }
  return roots;
}

std::vector<uint32_t> bufferRoots(const PlanBlock &block) {
  std::vector<uint32_t> roots = aliasRoots(block), buffers = roots;
  for (uint32_t &buffer : buffers)
    while (block.values[buffer].inPlaceOf != kNoValue)
      buffer = roots[block.values[buffer].inPlaceOf];
  return buffers;
}

std::vector<uint32_t> lastReads(const PlanBlock &block) {
  std::vector<uint32_t> roots = aliasRoots(block), last(block.values.size(), 0);
  for (uint32_t s = 0; s < block.steps.size(); ++s)
    for (uint32_t value : block.steps[s].inputs)
      if (value != kNoValue)
        last[roots[value]] = s;
  for (uint32_t value : block.outputs)
    last[roots[value]] = static_cast<uint32_t>(block.steps.size());
  return last;
}

std::vector<Lifetime> arenaLifetimes(const PlanBlock &block) {
  std::vector<uint32_t> roots = bufferRoots(block);
  std::vector<Lifetime> lives(block.values.size());
  auto touch = [&](uint32_t value, uint32_t step) {
    uint32_t root = roots[value];
    if (block.values[root].storage != Storage::Arena)
      return;
    Lifetime &life = lives[root];
    if (life.first > life.last)
      life = {step, step};
    life.last = std::max(life.last, step);
  };
  for (uint32_t s = 0; s < block.steps.size(); ++s) {
    for (uint32_t value : block.steps[s].inputs)
      if (value != kNoValue)
        touch(value, s);
    for (uint32_t value : block.steps[s].outputs)
      if (value != kNoValue)
        touch(value, s);
  }
  for (uint32_t value : block.outputs)
    touch(value, block.steps.size());
  return lives;
}

BlockPlacement placeBlock(const PlanBlock &block, const std::vector<uint64_t> &valueBytes,
                          const std::vector<uint64_t> &workspaceBytes) {
  std::vector<Lifetime> lives = arenaLifetimes(block);
  std::vector<uint32_t> buffers = bufferRoots(block);
  struct ArenaRequests {
    std::vector<BufferRequest> requests;
    std::vector<uint64_t *> targets;
  } host, device;
  auto request = [&](dvt_memory_kind memory, uint64_t bytes, uint32_t first, uint32_t last,
                     uint64_t &target) {
    ArenaRequests &arena = memory == DVT_MEMORY_HOST ? host : device;
    if (memory != DVT_MEMORY_HOST) // so that all offsets are multiples of it
      bytes = (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
    arena.requests.push_back({bytes, first, last});
    arena.targets.push_back(&target);
  };
  BlockPlacement placement;
  placement.valueOffsets.assign(block.values.size(), 0);
  placement.workspaceOffsets.assign(block.steps.size(), 0);
  // Those that share a buffer are of one size, but the runtime may not know yet that of each.
  std::vector<uint64_t> bufferBytes(block.values.size(), 0);
  for (uint32_t v = 0; v < block.values.size(); ++v)
    if (block.values[v].storage == Storage::Arena)
      bufferBytes[buffers[v]] = std::max(bufferBytes[buffers[v]], valueBytes[v]);
  for (uint32_t v = 0; v < block.values.size(); ++v)
    if (lives[v].first <= lives[v].last && bufferBytes[v] > 0)
      request(block.values[v].memory, bufferBytes[v], lives[v].first, lives[v].last,
              placement.valueOffsets[v]);
  for (uint32_t s = 0; s < block.steps.size(); ++s)
    if (workspaceBytes[s] > 0)
      request(block.steps[s].choice.candidate.memory, workspaceBytes[s], s, s,
              placement.workspaceOffsets[s]);
  auto place = [](const ArenaRequests &arena) {
    BufferAssignment assignment = assignBuffers(arena.requests);
    for (size_t i = 0; i < arena.requests.size(); ++i)
      *arena.targets[i] = assignment.offsets[i];
    return assignment.arenaBytes;
  };
  placement.arenaBytes = place(host);
  placement.deviceArenaBytes = place(device);
  for (uint32_t v = 0; v < block.values.size(); ++v)
    if (block.values[v].inPlaceOf != kNoValue)
      placement.valueOffsets[v] = placement.valueOffsets[buffers[v]];
  return placement;
}

uint64_t physicalBytes(const PlanValue &value) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents) {
    if (!extent.isStatic())
      return 0;
    extents.push_back(extent.value());
  }
  auto layout = Layout::parse(value.layout);
  return layout ? bytesOf(value.type, layout->physicalElements(extents)) : 0;
}

void placeStaticBlock(PlanBlock &block) {
  std::vector<uint64_t> sizes, workspaces;
  for (PlanValue &value : block.values)
    sizes.push_back(value.bytes = physicalBytes(value));
  for (const PlanStep &step : block.steps)
    workspaces.push_back(step.workspaceBytes);
  BlockPlacement placement = placeBlock(block, sizes, workspaces);
  for (size_t v = 0; v < block.values.size(); ++v)
    if (block.values[v].storage == Storage::Arena)
      block.values[v].offset = placement.valueOffsets[v];
  for (size_t s = 0; s < block.steps.size(); ++s)
    block.steps[s].workspaceOffset = placement.workspaceOffsets[s];
  block.arenaBytes = placement.arenaBytes;
  block.deviceArenaBytes = placement.deviceArenaBytes;
}

} // namespace dovetail
