// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "HostExecutor.h"

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>

namespace dovetail::test {

namespace {

constexpr size_t kStackBytes = 64 << 10;

/// One block whose threads are contexts: each runs until it waits or ends.
class Block {
public:
  Block(HostEntry function, void *const *arguments, uint32_t threads)
      : function(function), arguments(arguments), contexts(threads), done(threads),
        stacks(threads * kStackBytes) {}

  Status run(uint32_t block, void *shared) {
    std::fill(done.begin(), done.end(), false);
    for (uint32_t i = 0; i < contexts.size(); ++i) {
      ::getcontext(&contexts[i]);
      contexts[i].uc_stack.ss_sp = stacks.data() + i * kStackBytes;
      contexts[i].uc_stack.ss_size = kStackBytes;
      contexts[i].uc_link = &scheduler;
      auto self = reinterpret_cast<uintptr_t>(this);
      ::makecontext(&contexts[i], reinterpret_cast<void (*)()>(&start), 3, unsigned(self),
                    unsigned(self >> 32), i);
    }
    thread = HostThread{block, 0, shared, &wait, this};
    for (size_t ended = 0; ended < contexts.size();) {
      size_t before = ended;
      for (current = 0; current < contexts.size(); ++current)
        if (!done[current]) {
          ::swapcontext(&scheduler, &contexts[current]);
          ended += done[current];
        }
      if (ended != 0 && ended != contexts.size() && before == 0)
        return internalError("{} of {} threads ended while others wait", ended, contexts.size());
    }
    return Status::success();
  }

private:
  static void start(unsigned low, unsigned high, uint32_t number) {
    auto *self = reinterpret_cast<Block *>(uintptr_t(low) | uintptr_t(high) << 32);
    HostThread own = self->thread;
    own.thread = number;
    self->function(self->arguments, &own);
    self->done[number] = true;
  }
  static void wait(void *context) {
    auto *self = static_cast<Block *>(context);
    ::swapcontext(&self->contexts[self->current], &self->scheduler);
  }

  HostEntry function;
  void *const *arguments;
  std::vector<ucontext_t> contexts;
  std::vector<char> done;
  std::vector<char> stacks;
  ucontext_t scheduler;
  HostThread thread;
  uint32_t current = 0;
};

} // namespace

Expected<HostExecutor> HostExecutor::load(const DeviceImage &image) {
  auto parsed = HostKernels::parse(image.bytes);
  if (!parsed)
    return parsed.takeError();
  HostExecutor executor;
  executor.kernels = std::move(*parsed);
  executor.bytes = executor.kernels.code.size();
  executor.memory =
      ::mmap(nullptr, executor.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (executor.memory == MAP_FAILED) {
    executor.memory = nullptr;
    return unavailable("no memory for code");
  }
  std::memcpy(executor.memory, executor.kernels.code.data(), executor.bytes);
  if (::mprotect(executor.memory, executor.bytes, PROT_READ | PROT_EXEC) != 0)
    return unavailable("no executable memory");
  return executor;
}

HostExecutor::~HostExecutor() {
  if (memory)
    ::munmap(memory, bytes);
}

HostExecutor::HostExecutor(HostExecutor &&other) noexcept
    : kernels(std::move(other.kernels)), memory(std::exchange(other.memory, nullptr)),
      bytes(other.bytes) {}

Status HostExecutor::launch(const std::string &name, int64_t blocks, uint32_t threads,
                            void *const *arguments, size_t argumentCount) {
  const HostKernels::Entry *entry = kernels.find(name);
  if (!entry)
    return badInput("no entry {}", name);
  if (entry->threads != threads || entry->arguments != argumentCount)
    return badInput("{} takes {} threads and {} arguments, not {} and {}", name, entry->threads,
                    entry->arguments, threads, argumentCount);
  auto function = reinterpret_cast<HostEntry>(static_cast<char *>(memory) + entry->offset);
  std::unique_ptr<void, decltype(&std::free)> shared(
      std::aligned_alloc(64, (entry->sharedBytes + 64) / 64 * 64), &std::free);
  if (entry->barriers) {
    Block block(function, arguments, threads);
    for (int64_t i = 0; i < blocks; ++i)
      if (Status status = block.run(uint32_t(i), shared.get()); !status)
        return status;
    return Status::success();
  }
  for (int64_t i = 0; i < blocks; ++i)
    for (uint32_t number = 0; number < threads; ++number) {
      HostThread thread{uint32_t(i), number, shared.get(), nullptr, nullptr};
      function(arguments, &thread);
    }
  return Status::success();
}

} // namespace dovetail::test
