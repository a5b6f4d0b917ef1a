// SPDX-License-Identifier: Apache-2.0
//
// Memory in the order of streams. The address is known at once; whoever uses it before the stream
// has come to the allocation, or after it came to the freeing, is found when the work runs.
#include "State.h"

namespace simulated {

namespace {

PoolState *findPool(Handle handle) {
  auto found = state().pools.find(numberOf(handle));
  if (found != state().pools.end())
    return &found->second;
  refuse(InvalidHandle, "there is no pool {}", handle);
  return nullptr;
}

} // namespace

Code checkOrdered(const char *what, uint64_t address) {
  auto block = state().ordered.find(state().memory.blockOf(address));
  if (block == state().ordered.end())
    return Success;
  auto stream = state().streams.find(block->second.stream);
  if (stream == state().streams.end() || stream->second.done >= block->second.position)
    return Success;
  return refuse(InvalidValue,
                "{}: {:#x} is out of a pool, whose stream has not come to the allocation yet", what,
                address);
}

Code createPool(Handle *pool, const PoolProperties *properties) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  constexpr int kPinned = 1, kDevice = 1;
  if (!pool || !properties || properties->allocation != kPinned || properties->handles != 0 ||
      properties->location != kDevice || properties->device != 0)
    return refuse(InvalidValue, "pools are of memory of device 0 that stays where it is");
  for (uint64_t word : properties->rest)
    if (word)
      return refuse(InvalidValue, "what follows a pool's properties is not zero");
  uint64_t number = state().nextHandle++;
  state().pools[number];
  *pool = handleOf(number);
  return Success;
}

Code destroyPool(Handle pool) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  PoolState *found = findPool(pool);
  if (!found)
    return InvalidHandle;
  if (found->live > 0)
    return refuse(InvalidValue, "{} blocks of the pool were not freed", found->live);
  state().pools.erase(numberOf(pool));
  return Success;
}

Code setPoolAttribute(Handle pool, int attribute, const void *value) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  constexpr int kKeptBytes = 4;
  PoolState *found = findPool(pool);
  if (!found)
    return InvalidHandle;
  if (attribute != kKeptBytes || !value)
    return refuse(InvalidValue, "pools have no attribute {} to be set", attribute);
  found->keptBytes = *static_cast<const uint64_t *>(value);
  return Success;
}

/// What was freed went back already.
Code trimPool(Handle pool) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  return findPool(pool) ? Success : InvalidHandle;
}

Code allocateFromPool(uint64_t *address, uint64_t bytes, Handle pool, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (Code code = spoilRecording("an allocation"))
    return code;
  PoolState *found = findPool(pool);
  StreamState *queue = found ? findStream(stream) : nullptr;
  if (!queue)
    return InvalidHandle;
  if (bytes == 0 || !address)
    return refuse(InvalidValue, "no bytes are allocated");
  *address = state().memory.allocate(bytes);
  if (!*address)
    return refuse(OutOfMemory, "{} bytes are wanted and {} are left", bytes,
                  state().memory.freeBytes());
  ++state().counts["pool allocations"];
  ++found->live;
  give(*queue, [] { return Success; });
  state().ordered[*address] = {numberOf(pool), numberOf(stream), queue->given};
  return Success;
}

Code freeInOrder(uint64_t address, Handle stream) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  if (Code code = spoilRecording("giving memory back"))
    return code;
  StreamState *queue = findStream(stream);
  if (!queue)
    return InvalidHandle;
  auto block = state().ordered.find(address);
  if (block == state().ordered.end())
    return refuse(InvalidValue, "{:#x} is not the beginning of a block of a pool", address);
  if (block->second.isFreed)
    return refuse(InvalidValue, "{:#x} was freed before", address);
  block->second.isFreed = true;
  --state().pools[block->second.pool].live;
  give(*queue, [address] {
    if (checkOrdered("freeing", address))
      return breakDown(IllegalAddress, lastReason);
    std::string why = state().memory.release(address);
    state().ordered.erase(address);
    return why.empty() ? Success : breakDown(IllegalAddress, why);
  });
  return Success;
}

} // namespace simulated
