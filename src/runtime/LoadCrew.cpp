// SPDX-License-Identifier: Apache-2.0
//
// Two queues under one lock: jobs are few and take microseconds to milliseconds.
#include "runtime/LoadCrew.h"

namespace dovetail {

LoadCrew::~LoadCrew() {
  {
    std::lock_guard guard(mutex);
    soon.clear();
    later.clear();
    ends = true;
  }
  changed.notify_all();
  for (pthread_t thread : threads)
    ::pthread_join(thread, nullptr);
}

void LoadCrew::add(std::deque<Job> &queue, Job job) {
  {
    std::lock_guard guard(mutex);
    queue.push_back(std::move(job));
  }
  changed.notify_one();
  if (threads.size() == helpers)
    return;
  auto enter = [](void *crew) -> void * {
    static_cast<LoadCrew *>(crew)->help();
    return nullptr;
  };
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, enter, this) == 0)
    threads.push_back(thread);
}

bool LoadCrew::work(std::unique_lock<std::mutex> &lock) {
  std::deque<Job> &queue = soon.empty() ? later : soon;
  if (queue.empty())
    return false;
  Job job = std::move(queue.front());
  queue.pop_front();
  ++busy;
  lock.unlock();
  job();
  job = nullptr;
  lock.lock();
  --busy;
  return true;
}

void LoadCrew::help() {
  std::unique_lock lock(mutex);
  for (;;) {
    if (work(lock))
      continue;
    changed.notify_all(); // the owner may be waiting for the last one
    if (ends)
      return;
    changed.wait(lock, [&] { return ends || !soon.empty() || !later.empty(); });
  }
}

void LoadCrew::finish() {
  std::unique_lock lock(mutex);
  while (work(lock))
    ;
  changed.wait(lock, [&] { return busy == 0 && soon.empty() && later.empty(); });
}

} // namespace dovetail
