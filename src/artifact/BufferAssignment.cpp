// SPDX-License-Identifier: Apache-2.0
//
// Largest first, each into the smallest gap that holds it among the buffers that live at the same
// time. Two orders of those of one size are tried.
#include "artifact/BufferAssignment.h"

#include <algorithm>
#include <numeric>

namespace dovetail {

namespace {

constexpr uint64_t kAlignment = 64;

struct Placed {
  uint64_t offset, end;
  uint32_t first, last;
};

uint64_t roundUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

BufferAssignment assignInOrder(const std::vector<BufferRequest> &requests,
                               const std::vector<uint32_t> &order) {
  BufferAssignment result;
  result.offsets.assign(requests.size(), 0);
  std::vector<Placed> placed; // by offset
  for (uint32_t index : order) {
    const BufferRequest &request = requests[index];
    uint64_t bytes = roundUp(request.bytes);
    if (bytes == 0)
      continue;
    uint64_t bestOffset = 0, bestGap = UINT64_MAX, free = 0;
    for (const Placed &other : placed) {
      if (other.last < request.first || request.last < other.first)
        continue;
      if (other.offset > free) {
        uint64_t gap = other.offset - free;
        if (gap >= bytes && gap < bestGap) {
          bestGap = gap;
          bestOffset = free;
        }
      }
      free = std::max(free, other.end);
    }
    if (bestGap == UINT64_MAX)
      bestOffset = free;
    Placed entry{bestOffset, bestOffset + bytes, request.first, request.last};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed &a, const Placed &b) { return a.offset < b.offset; }),
        entry);
    result.offsets[index] = bestOffset;
    result.arenaBytes = std::max(result.arenaBytes, entry.end);
  }
  return result;
}

} // namespace

BufferAssignment assignBuffers(const std::vector<BufferRequest> &requests) {
  std::vector<uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return requests[a].bytes > requests[b].bytes; });
  BufferAssignment asTheyCome = assignInOrder(requests, order);
  // Of one size, those that live long leave fewer holes when they come first; mostly.
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const BufferRequest &x = requests[a], &y = requests[b];
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.last - x.first > y.last - y.first;
  });
  BufferAssignment longFirst = assignInOrder(requests, order);
  return longFirst.arenaBytes < asTheyCome.arenaBytes ? longFirst : asTheyCome;
}

} // namespace dovetail
