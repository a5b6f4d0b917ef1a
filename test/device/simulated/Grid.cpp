// SPDX-License-Identifier: Apache-2.0
//
// Threads of a block are contexts that are switched between at barriers. Kernels without barriers
// run in a plain loop.
#include "HostImage.h"

#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>

namespace simulated {
namespace {

constexpr size_t kStackBytes = size_t(64) << 10;
constexpr uint8_t kNonsense = 0xCD; // of shared memory nobody has written yet

class Block {
public:
  Block(const HostFunction &function, void *const *arguments, uint32_t threads, void *shared)
      : function(function), arguments(arguments), contexts(threads), views(threads), shared(shared),
        waits(threads) {
    stackBytes = kStackBytes * threads;
    stacks = ::mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Block() { ::munmap(stacks, stackBytes); }

  bool run(uint32_t block) {
    for (uint32_t i = 0; i < contexts.size(); ++i) {
      views[i] = {block, i, shared, &Block::barrier, this};
      waits[i] = false;
      ::getcontext(&contexts[i]);
      contexts[i].uc_stack.ss_sp = static_cast<uint8_t *>(stacks) + i * kStackBytes;
      contexts[i].uc_stack.ss_size = kStackBytes;
      contexts[i].uc_link = &scheduler;
      auto self = reinterpret_cast<uintptr_t>(this);
      ::makecontext(&contexts[i], reinterpret_cast<void (*)()>(&Block::begin), 2,
                    static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
    }
    // Each round takes every thread to the next barrier, or to its end.
    for (;;) {
      uint32_t waiting = 0;
      for (current = 0; current < contexts.size(); ++current) {
        waits[current] = false;
        ::swapcontext(&scheduler, &contexts[current]);
        waiting += waits[current];
      }
      if (waiting == 0)
        return true;
      if (waiting != contexts.size())
        return false;
    }
  }

private:
  static void begin(unsigned low, unsigned high) {
    auto *self = reinterpret_cast<Block *>(uintptr_t(high) << 32 | low);
    self->function.entry(self->arguments, &self->views[self->current]);
  }
  static void barrier(void *context) {
    auto *self = static_cast<Block *>(context);
    self->waits[self->current] = true;
    ::swapcontext(&self->contexts[self->current], &self->scheduler);
  }

  const HostFunction &function;
  void *const *arguments;
  std::vector<ucontext_t> contexts;
  std::vector<Thread> views;
  void *shared;
  std::vector<bool> waits;
  ucontext_t scheduler{};
  void *stacks;
  size_t stackBytes;
  uint32_t current = 0;
};

} // namespace

bool runGrid(const HostFunction &function, void *const *arguments, uint32_t blocks,
             uint32_t threads, uint32_t sharedBytes) {
  std::vector<uint8_t> memory(sharedBytes + 64);
  auto *shared =
      reinterpret_cast<uint8_t *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  Block team(function, arguments, function.barriers ? threads : 0, shared);
  for (uint32_t block = 0; block < blocks; ++block) {
    std::memset(shared, kNonsense, sharedBytes);
    if (function.barriers) {
      if (!team.run(block))
        return false;
      continue;
    }
    for (uint32_t i = 0; i < threads; ++i) {
      Thread thread{block, i, shared, nullptr, nullptr};
      function.entry(arguments, &thread);
    }
  }
  return true;
}

} // namespace simulated
